local counting, LAST_TOKEN = 'stored', 9007199254740991
local lock, counter, queue, waiters, tombstone = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local mine, life = ARGV[1], ARGV[2]
local held = redis.pcall('GET', lock)
local is_mine = type(held) == 'string' and string.sub(held, 1, #mine) == mine
local first = is_mine and redis.call('LPOP', queue)
-- Nobody waits and nothing is to be remembered: so most releases end, and nothing more is set up for them.
if is_mine and not first and not tombstone then return redis.call('DEL', lock) end
local function microseconds()
  local time = redis.call('TIME')
  return time[1] * 1000000 + time[2]
end

local function milliseconds() return math.floor(microseconds() / 1000) end

-- Draws tokens above the floor, or makes good those that were drawn; nothing where they are used up.
local function draw(counter, width, floor, drawn)
  local high = drawn or redis.call('INCRBY', counter, width)
  if high <= width or high - width < floor or counting == 'clock' then
    local now = microseconds()
    -- A floor far ahead of the clock is no token of this deployment's and must not use up the numbers.
    high = math.max(high - width, now, math.min(floor, now + 86400000000)) + width
    redis.call('SET', counter, string.format('%.0f', high))
  end
  if high <= LAST_TOKEN then return high - width + 1, high end
end

-- How long a place lasts, and a lease that was handed over to it.
local function place_of(ttl) return math.min(tonumber(ttl), 10000) end

-- Whether anybody is told by an inbox. A server that will not say is taken to have somebody.
local function listens(inbox)
  if inbox == '-' then return true end
  local subscribers = redis.pcall('PUBSUB', 'NUMSUB', inbox)
  return subscribers.err or subscribers[2] > 0
end

-- Hands a lock that nobody holds over to the first waiter that lives, unless `me` comes first. `owner` was taken from the
-- queue already. Gives the lock's new value, or nothing where nobody was there.
local function hand_over(lock, counter, queue, waiters, owner, me)
  if not owner then return end
  local now = milliseconds()
  while owner do
    local waiter = redis.call('HGET', waiters, owner) or ''
    redis.call('HDEL', waiters, owner)
    if owner == me then return end
    local over, ttl, width, floor, inbox, note = string.match(waiter, '^(%d+) (%d+) (%d+) (%d+) (%S+) (.*)$')
    if over and tonumber(over) > now and listens(inbox) then
      local low, high = draw(counter, tonumber(width), tonumber(floor))
      if not low then return end
      local tokens, place = string.format('%.0f:%.0f', low, high), place_of(ttl)
      local held = 'lh1:' .. owner .. ':' .. tokens .. ':' .. note
      redis.call('SET', lock, held, 'PX', place)
      if inbox ~= '-' then
        redis.pcall('PUBLISH', inbox, table.concat({'granted', owner, tokens, ttl, place, lock}, ' '))
      end
      return held
    end
    owner = redis.call('LPOP', queue)
  end
end

local function leave(queue, waiters, owner)
  if redis.call('HDEL', waiters, owner) == 0 then return false end
  redis.call('LREM', queue, 1, owner)
  return true
end

-- Drops the places that are over, wherever they are.
local function sweep(queue, waiters)
  local now, all = milliseconds(), redis.call('HGETALL', waiters)
  for i = 1, #all, 2 do
    if (tonumber(string.match(all[i + 1], '^%d+')) or 0) <= now then leave(queue, waiters, all[i]) end
  end
end

local released = 0
if is_mine then
  if not hand_over(lock, counter, queue, waiters, first) then redis.call('DEL', lock) end
  released = 1
elseif leave(queue, waiters, string.sub(mine, 5, -2)) then
  released = 2
end
if tombstone then redis.call('SET', tombstone, '', 'PX', life) end
return released
