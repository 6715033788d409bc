local counter, counting, LAST_TOKEN = KEYS[1], 'stored', 9007199254740991
-- Nobody holds, waits or gave up: so most claims end, and nothing more is set up for them.
local _, lock, tombstone, queue, waiters, numbers = unpack(KEYS)
local mine, nothing_there, drawn = ARGV[2], redis.call('EXISTS', lock, tombstone, queue) == 0
if nothing_there and counting == 'stored' then
  local ttl, width, note = string.match(ARGV[3], '^(%d+) (%d+) %S* (.*)$')
  drawn = redis.call('INCRBY', counter, width)
  local low = drawn - width + 1
  -- Otherwise the counter was lost, or is used up: what follows sees to that.
  if low > 1 and low > tonumber(ARGV[1]) and drawn <= LAST_TOKEN then
    local last = string.format('%.0f:', drawn)
    local first = low == drawn and last or string.format('%.0f:', low)
    redis.call('SET', lock, mine .. first .. last .. note, 'PX', ttl)
    return low
  end
end

local function microseconds()
  local time = redis.call('TIME')
  return time[1] * 1000000 + time[2]
end

local function milliseconds() return math.floor(microseconds() / 1000) end

-- The longest that a place lasts.
local PLACE_MAX = 10000

-- How long a place lasts, and a lease that was handed over to it.
local function place_of(ttl) return math.min(tonumber(ttl), PLACE_MAX) end

-- Reads an entry: `over ttl width floor inbox`, fields that are a letter and a number, and the note.
local function read(entry)
  local over, ttl, width, floor, inbox, rest = string.match(entry or '', '^(%d+) (%d+) (%d+) (%d+) (%S+) (.*)$')
  if not over then return end
  local waiter = {over = tonumber(over), ttl = ttl, width = tonumber(width), floor = tonumber(floor), inbox = inbox}
  local letter, number, note = string.match(rest, '^(%l)(%d+) (.*)$')
  while letter do
    waiter[letter], rest = tonumber(number), note
    letter, number, note = string.match(rest, '^(%l)(%d+) (.*)$')
  end
  waiter.note = rest
  return waiter
end

-- Whether a place is over. After a step back of the clock, one that nobody can ask about would last for all of the step.
local function is_over(waiter, now)
  return waiter.over <= now or waiter.inbox == '-' and waiter.over > now + PLACE_MAX
end

-- Whether anybody is told by an inbox. A server that will not say is taken to have somebody.
local function listens(inbox)
  if inbox == '-' then return true end
  local subscribers = redis.pcall('PUBSUB', 'NUMSUB', inbox)
  return subscribers.err ~= nil or subscribers[2] > 0
end

-- How many dead waiters are passed over together.
local BATCH = 64

-- Draws tokens above the floor, or makes good those that were drawn; nothing where they are used up.
local function draw(width, floor, drawn)
  local high = drawn or redis.call('INCRBY', counter, width)
  if high <= width or high - width < floor or counting == 'clock' then
    local now = microseconds()
    -- A floor far ahead of the clock is no token of this deployment's and must not use up the numbers.
    high = math.max(high - width, now, math.min(floor, now + 86400000000)) + width
    redis.call('SET', counter, string.format('%.0f', high))
  end
  if high <= LAST_TOKEN then return high - width + 1, high end
end

-- Takes so many owners from the head of the queue, with their entries.
local function drop(queue, waiters, owners, count)
  if count == 0 then return end
  redis.call('LPOP', queue, count)
  redis.call('HDEL', waiters, unpack(owners, 1, count))
end

-- The first owner that has a place and is `me` or counts, and its entry. Those before it are dropped.
local function first(queue, waiters, me, counts)
  local last = 0
  while true do
    local owners = redis.call('LRANGE', queue, 0, last)
    if not owners[1] then return end
    local entries = redis.call('HMGET', waiters, unpack(owners))
    for i, owner in ipairs(owners) do
      local waiter = entries[i] and read(entries[i])
      if waiter and (owner == me or counts(waiter)) then
        drop(queue, waiters, owners, i - 1)
        return owner, waiter
      end
    end
    drop(queue, waiters, owners, #owners)
    last = BATCH - 1
  end
end

-- Hands a lock that nobody holds over to the first waiter that lives, unless `me` comes first. Gives the lock's new value,
-- or nothing where nobody was there, or '' where only a later version knows what the first one may have.
local function hand_over(lock, queue, waiters, me)
  local now = milliseconds()
  local function lives(waiter) return not is_over(waiter, now) and listens(waiter.inbox) end
  local owner, waiter = first(queue, waiters, me, lives)
  if not owner then return end
  local told = waiter.inbox ~= '-'
  if owner ~= me and (waiter.x or 0) ~= 0 then
    if told then redis.pcall('PUBLISH', waiter.inbox, 'recheck ' .. lock) end
    return ''
  end
  drop(queue, waiters, {owner}, 1)
  if owner == me then return end
  local low, high = draw(waiter.width, waiter.floor)
  if not low then return end
  local tokens, place = string.format('%.0f:%.0f', low, high), place_of(waiter.ttl)
  local held = 'lh1:' .. owner .. ':' .. tokens .. ':' .. waiter.note
  redis.call('SET', lock, held, 'PX', place)
  if told then
    redis.pcall('PUBLISH', waiter.inbox, table.concat({'granted', owner, tokens, waiter.ttl, place, lock}, ' '))
  end
  return held
end

-- Ends a hold: the first waiter that lives has the lock, or nobody.
local function free(lock, queue, waiters)
  local held = hand_over(lock, queue, waiters)
  if not held or held == '' then redis.call('DEL', lock) end
end

-- Drops an owner's place. In the list, it is passed over when its turn comes: to look for it would cost more, the longer
-- the queue.
local function leave(queue, waiters, owner)
  if redis.call('HDEL', waiters, owner) == 0 then return false end
  if redis.call('EXISTS', waiters) == 0 then redis.call('DEL', queue) end
  return true
end
-- How many places are looked at together, and at which lengths of the list.
local WINDOW, EVERY = 16, 4
-- A prime, so that a list that grows has all of its windows looked at, and not those at its ends only.
local STRIDE = 7919

-- Drops what is over in one window of the queue; which one goes by the length.
local function sweep_window(queue, waiters, length, now)
  local from, over = length / EVERY * STRIDE % math.ceil(length / WINDOW) * WINDOW, {}
  local owners = redis.call('LRANGE', queue, from, from + WINDOW - 1)
  for i, entry in ipairs(redis.call('HMGET', waiters, unpack(owners))) do
    local ends = entry and tonumber(string.match(entry, '^%d+') or 0)
    if ends and (ends <= now or ends > now + PLACE_MAX and is_over(read(entry), now)) then over[#over + 1] = owners[i] end
  end
  if over[1] then redis.call('HDEL', waiters, unpack(over)) end
end

-- How many owners a command is given at most.
local TOGETHER = 1000

-- Rewrites the list with the owners that have an entry. It runs when they are in the minority, so each one that left or
-- died costs a step of this.
local function compact(queue, waiters)
  local all, kept, seen = redis.call('LRANGE', queue, 0, -1), {}, {}
  for from = 1, #all, TOGETHER do
    local to = math.min(from + TOGETHER - 1, #all)
    for i, entry in ipairs(redis.call('HMGET', waiters, unpack(all, from, to))) do
      local owner = all[from + i - 1]
      if entry and not seen[owner] then
        seen[owner], kept[#kept + 1] = true, owner
      end
    end
  end
  redis.call('DEL', queue)
  for from = 1, #kept, TOGETHER do
    redis.call('RPUSH', queue, unpack(kept, from, math.min(from + TOGETHER - 1, #kept)))
  end
end

-- Forgets the dead, also while nobody's turn comes.
local function sweep(queue, waiters, length, now)
  if length % EVERY ~= 0 then return end
  sweep_window(queue, waiters, length, now)
  if length > 2 * redis.call('HLEN', waiters) + 8 then compact(queue, waiters) end
end

-- One claim. `drawn` is the counter after its tokens were drawn, if that was done already.
local function acquire(lock, tombstone, queue, waiters, numbers, floor, mine, terms, nothing_there, drawn)
  local ttl, width, inbox, note = string.match(terms, '^(%d+) (%d+) (%S*) (.*)$')
  local owner = string.sub(mine, 5, -2)

  local function grant()
    local low, high = draw(tonumber(width), tonumber(floor), drawn)
    if not low then return redis.error_reply('SPENT the fencing tokens are used up') end
    redis.call('SET', lock, mine .. string.format('%.0f:%.0f:', low, high) .. note, 'PX', ttl)
    return low
  end

  if nothing_there then return grant() end
  local held = redis.pcall('GET', lock)
  if type(held) == 'table' then return held end
  if redis.call('EXISTS', tombstone) == 1 then return redis.error_reply('GIVENUP this claim was given up') end
  if held and string.sub(held, 1, #mine) == mine then
    redis.call('PEXPIRE', lock, ttl)
    leave(queue, waiters, owner)
    local low, high = string.match(held, '^lh1:%x+:(%d+):(%d+):')
    return {'granted', tonumber(low), tonumber(high)}
  end
  held = held or hand_over(lock, queue, waiters, owner)
  if not held then return grant() end
  local seen, left = string.sub(held, 1, 600), redis.call('PTTL', lock)
  if inbox == '' then
    leave(queue, waiters, owner)
    return {'held', seen, left}
  end
  -- After a failover behind one address, a client may be subscribed at another server.
  local unheard = inbox ~= '-' and not listens(inbox)
  if unheard then inbox = '-' end
  local place, now = place_of(ttl), milliseconds()
  local head, ahead = first(queue, waiters, owner, function(waiter) return not is_over(waiter, now) end)
  local own = redis.call('HGET', waiters, owner)
  local number, last = own and tonumber(string.match(own, '^%d+ %d+ %d+ %d+ %S+ n(%d+) ')), ahead and ahead.n or 0
  -- An owner with a number below the head's is not in the list: the list was evicted, or expired first.
  local joins = not head or not number or number < last
  if joins then
    number = redis.call('INCRBY', numbers, 1)
    if number <= math.max(last, 1) then
      -- The counter starts at the clock, above any number that was evicted.
      number = math.max(now, last + 1)
      redis.call('SET', numbers, string.format('%.0f', number))
    end
  end
  local entry = {string.format('%.0f', now + place), ttl, width, floor, inbox, string.format('n%.0f', number), note}
  redis.call('HSET', waiters, owner, table.concat(entry, ' '))
  local position, length = 1, joins and redis.call('RPUSH', queue, owner)
  if head and (joins or head ~= owner) then
    length = length or redis.call('LLEN', queue)
    -- An older version gives the head no number.
    position = ahead.n and math.max(2, math.min(number - ahead.n + 1, length)) or length
  end
  if joins then sweep(queue, waiters, length, now) end
  local life = math.max(redis.call('PTTL', waiters), place)
  for _, key in ipairs({queue, waiters, numbers}) do redis.call('PEXPIRE', key, life) end
  return {'queued', seen, left, position, place, unheard and 1 or 0}
end

return acquire(lock, tombstone, queue, waiters, numbers, ARGV[1], mine, ARGV[3], nothing_there, drawn)
