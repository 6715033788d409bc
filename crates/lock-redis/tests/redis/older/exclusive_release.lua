local counter, counting, LAST_TOKEN = KEYS[1], 'stored', 9007199254740991
local lock, queue, waiters, tombstone, mine = KEYS[2], KEYS[3], KEYS[4], KEYS[5], ARGV[1]
local held = redis.pcall('GET', lock)
local is_mine = type(held) == 'string' and string.sub(held, 1, #mine) == mine
-- Nobody waits and nothing is to be remembered: so most releases end, and nothing more is set up for them.
if is_mine and not tombstone and redis.call('EXISTS', queue) == 0 then return redis.call('DEL', lock) end
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

-- Ends a hold or a place. Gives 1 for a hold, 2 for a place, 0 for neither.
local function give_up(lock, queue, waiters, mine, is_mine)
  if is_mine then
    free(lock, queue, waiters)
    return 1
  end
  return leave(queue, waiters, string.sub(mine, 5, -2)) and 2 or 0
end

local released = give_up(lock, queue, waiters, mine, is_mine)
if tombstone then redis.call('SET', tombstone, '', 'PX', ARGV[2]) end
return released
