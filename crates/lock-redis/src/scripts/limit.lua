
-- Sets the limit of a semaphore, or looks at limit and use.
local _, _, lock, queue, waiters, limits = unpack(KEYS)
local act, known, wished, life = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3]), ARGV[4]
-- How many earlier limits are remembered.
local EARLIER_MAX = 8
-- How many places are looked at when the limit changes. Other clients wait meanwhile.
local CHANGED_MAX = 100

local held = redis.pcall('GET', lock)
if type(held) == 'table' then return held end
local share = sharing()
local name = share.visited(lock, queue, held or nil)
if act == 'set' then share.next_waiter(name) end
local used_as = not stopped and share.used_as(name)
if stopped then return PASSING end
if used_as and kind_of(used_as) == 0 then return {'otherkind', used_as} end
local record = redis.call('GET', limits)

local function decimal(number) return string.format('%.0f', number) end

-- While another library holds the name, no permit is free.
local function usage(limit) return {'usage', limit, name.limit > 0 and name.used or held and limit or 0} end

if act == 'look' then
  local limit, is_known = share.in_force(record, known)
  limit = limit or used_as or known
  if is_known == nil then is_known = limit == known end
  return is_known and usage(limit) or {'otherkind', limit}
end

-- The record: the limit in force, and then those that it replaced, each once, the latest first.
local function replaced()
  local earlier, listed = {decimal(wished)}, {[decimal(wished)] = true}
  local function add(limit)
    if #earlier <= EARLIER_MAX and not listed[limit] then
      listed[limit], earlier[#earlier + 1] = true, limit
    end
  end
  if used_as then add(decimal(used_as)) end
  add(decimal(known))
  for limit in string.gmatch(record or '', '%d+') do add(limit) end
  return table.concat(earlier, ' ')
end

-- The first waiters go on under the limit, without those that could never be served under it, which are told to ask again. The others
-- find out when they ask again, or when their turn comes.
local function change_first_waiters()
  local owners = redis.call('LRANGE', queue, 0, CHANGED_MAX - 1)
  local entries, gone = owners[1] and redis.call('HMGET', waiters, unpack(owners)) or {}, {}
  for i, entry in ipairs(entries) do
    local waiter = entry and read(entry)
    local limit = waiter and waiter.x or 0
    if kind_of(limit) ~= 0 and waiter.width > wished then
      leave(queue, waiters, owners[i])
      gone[#gone + 1] = i - 1
      if waiter.inbox ~= '-' then redis.pcall('PUBLISH', waiter.inbox, 'recheck ' .. lock) end
    elseif kind_of(limit) ~= 0 and limit ~= wished then
      entry = string.gsub(entry, '^(%d+ %d+ %d+ %d+ %S+ n%d+) x%d+ ', '%1 x' .. decimal(wished) .. ' ')
      redis.call('HSET', waiters, owners[i], entry)
    end
  end
  -- Under a higher limit, they may come back.
  if gone[1] then cut(queue, gone, true) end
end

-- Whoever lacks a right for what may follow fails here, where none of these changes anything, and not after half of it.
local function check_rights()
  local nothing = string.sub(queue, 1, -2) .. '-'
  redis.call('ZADD', nothing, 'XX', 0, '')
  redis.call('ZRANGE', nothing, 0, 0)
  redis.call('ZCARD', nothing)
  redis.call('ZREM', nothing, '')
  redis.call('PEXPIREAT', nothing, 1)
  redis.call('UNLINK', nothing)
end

check_rights()
redis.call('SET', limits, replaced(), 'PX', life)
share.set_limit(name, wished)
change_first_waiters()
if name.used == 0 or name.limit > 0 then
  share.hand_over(name)
  share.settle(name)
end
return usage(wished)
