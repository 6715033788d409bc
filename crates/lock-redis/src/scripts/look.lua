local seen, locks, heard = {}, math.ceil(#KEYS / 2), {}
local now = milliseconds()
-- How many leases and waiters of a lock are listed, and how many permits are looked at for that.
local LISTED, MEMBERS = 100, 500
-- Once it has looked at so many waiters and leases, a script leaves the other locks to the next one: other clients wait meanwhile.
local ENOUGH, looked_at = 100, 0
-- In a long queue, the waiters are searched among so many times LISTED places, some of which may have been left.
local WINDOWS = 4

local function lives(waiter)
  if not waiter or is_over(waiter, now) then return false end
  local inbox = waiter.inbox
  if heard[inbox] == nil then heard[inbox] = listens(inbox) end
  return heard[inbox]
end

-- The entries of those that come first in the list.
local function first_entries(waiters)
  local queue, entries, known = string.sub(waiters, 1, -2) .. 'q', {}, {}
  for window = 0, WINDOWS - 1 do
    local owners = redis.call('LRANGE', queue, window * LISTED, (window + 1) * LISTED - 1)
    if not owners[1] then return entries end
    for i, entry in ipairs(redis.call('HMGET', waiters, unpack(owners))) do
      if entry and not known[owners[i]] then
        known[owners[i]], entries[#entries + 1] = true, entry
        if #entries == LISTED then return entries end
      end
    end
  end
  return entries
end

-- How many wait beside a lock, and who: limit, width and note of each, in their order, and for how many seconds it has waited, or -1.
-- Nobody where they were not asked for. Of more than are listed, the others count as living.
local function waiting(waiters)
  local count = waiters and redis.call('HLEN', waiters) or 0
  if count == 0 then return 0, {} end
  local entries = count > LISTED and first_entries(waiters) or redis.call('HVALS', waiters)
  local living, listed = {}, {}
  looked_at = looked_at + #entries
  for _, entry in ipairs(entries) do
    local waiter = read(entry)
    if lives(waiter) then
      living[#living + 1] = waiter
    else
      count = count - 1
    end
  end
  table.sort(living, function(one, other) return (one.n or 0) < (other.n or 0) end)
  for _, waiter in ipairs(living) do
    local waited = waiter.j and math.max(math.floor(now / 1000) - waiter.j, 0) or -1
    for _, value in ipairs({waiter.x or 0, waiter.width, string.sub(waiter.note, 1, 600), waited}) do listed[#listed + 1] = value end
  end
  return count, listed
end

-- How many leases share a lock, and value, time and slots of each, those that end last first. Of more permits than are looked at,
-- those leases count as well that have ended and were not dropped yet.
local function sharing_leases(waiters, limit)
  local beside, most = string.sub(waiters, 1, -2), limit == READERS and LISTED or MEMBERS
  local after, listed, owners, known = '(' .. string.format('%.0f', now), {}, {}, {}
  local members = redis.call('ZRANGE', beside .. 'h', '+inf', after, 'BYSCORE', 'REV', 'LIMIT', 0, most, 'WITHSCORES')
  for i = 1, #members, 2 do
    local owner = string.sub(members[i], 1, 32)
    if not known[owner] then
      known[owner] = members[i + 1] - now
      owners[#owners + 1] = owner
    end
  end
  local shown, count = math.min(#owners, LISTED), #owners
  looked_at = looked_at + shown + math.floor(#members / LISTED)
  if limit == READERS then
    count = redis.call('ZCOUNT', beside .. 'h', after, '+inf')
  elseif #members == 2 * MEMBERS then
    count = math.max(count, redis.call('HLEN', beside .. 's'))
  end
  for i = 1, shown do
    local stored = redis.call('HGET', beside .. 's', owners[i]) or ''
    local low, high, slots, note = string.match(stored, '^(%d+):(%d+):([%d,]*):(.*)$')
    if low then
      listed[#listed + 1] = string.sub(table.concat({'lh1', owners[i], low, high, note}, ':'), 1, 600)
      listed[#listed + 1] = known[owners[i]]
      listed[#listed + 1] = slots
    end
  end
  return count, listed
end

for i = 1, locks do
  if looked_at >= ENOUGH then break end
  local lock = KEYS[i]
  local held = redis.pcall('GET', lock)
  if type(held) == 'table' then held = 0 elseif held then held = string.sub(held, 1, 600) end
  local waiters, queue = waiting(KEYS[locks + i])
  seen[i] = {held, redis.call('PTTL', lock), waiters, queue}
  if KEYS[locks + i] and held ~= 0 and is_shared(held) then
    local limit = tonumber(string.match(held, '%d+', #SHARED))
    local leases, listed = sharing_leases(KEYS[locks + i], limit)
    seen[i] = {held, seen[i][2], waiters, queue, limit, leases, listed}
  end
end
return seen
