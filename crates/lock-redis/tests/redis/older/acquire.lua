local counting, LAST_TOKEN = 'stored', 9007199254740991
-- Nobody holds, waits or gave up: so most claims end, and nothing more is set up for them.
local lock, counter, tombstone, queue, waiters = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local mine, ttl, width, floor, note, inbox = ARGV[1], ARGV[2], tonumber(ARGV[3]), tonumber(ARGV[4]), ARGV[5], ARGV[6]
local nothing_there, drawn = redis.call('EXISTS', lock, tombstone, queue) == 0
if nothing_there and counting == 'stored' then
  drawn = redis.call('INCRBY', counter, width)
  local low = drawn - width + 1
  -- Otherwise the counter was lost, or is used up: what follows sees to that.
  if low > 1 and low > floor and drawn <= LAST_TOKEN then
    local last = string.format('%.0f:', drawn)
    local first = width == 1 and last or string.format('%.0f:', low)
    redis.call('SET', lock, mine .. first .. last .. note, 'PX', ttl)
    return low
  end
end

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

local owner = string.sub(mine, 5, -2)

local function grant()
  local low, high = draw(counter, width, floor, drawn)
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
held = held or hand_over(lock, counter, queue, waiters, redis.call('LPOP', queue), owner)
if not held then return grant() end
local seen, left = string.sub(held, 1, 600), redis.call('PTTL', lock)
if inbox == '' then
  leave(queue, waiters, owner)
  return {'held', seen, left}
end
-- A client may be told at another server than this one, after a failover behind one address.
local unheard = inbox ~= '-' and not listens(inbox)
if unheard then inbox = '-' end
local place = place_of(ttl)
local waiter = table.concat({string.format('%.0f', milliseconds() + place), ttl, ARGV[3], ARGV[4], inbox, note}, ' ')
local position
if redis.call('HSET', waiters, owner, waiter) == 0 then position = redis.call('LPOS', queue, owner) end
position = position and position + 1 or redis.call('RPUSH', queue, owner)
-- While somebody lives, the dead would stay until their turn.
if position % 16 == 0 then
  sweep(queue, waiters)
  position = redis.call('LPOS', queue, owner) + 1
end
local life = math.max(redis.call('PTTL', waiters), place)
redis.call('PEXPIRE', queue, life)
redis.call('PEXPIRE', waiters, life)
return {'queued', seen, left, position, place, unheard and 1 or 0}
