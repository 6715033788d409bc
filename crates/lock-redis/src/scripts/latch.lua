local header, watchers, act, name = KEYS[1], KEYS[4], ARGV[1], ARGV[2]
-- When each of the inboxes was last looked for, and is not notified any more.
local watched = string.sub(watchers, 1, -2) .. 't'
-- More ids than any count asks for are not stored. A client is notified for so long after it has looked. So many inboxes are dropped, or
-- notified, together: other clients wait meanwhile.
local COUNT_MAX, WATCHED, DROPPED_MAX, TOLD_MAX = 100000, 10000, 500, 100
local PASSING = redis.error_reply('PASSING more inboxes are to be notified: send this again')

local stored = redis.call('HMGET', header, 'g', 'n', 's', 'c')
local generation, expected, side, completed = unpack(stored)
generation, expected, side, completed = tonumber(generation), tonumber(expected), tonumber(side), tonumber(completed)
local arrived = side and redis.call('HLEN', KEYS[side]) or 0

local function decimal(number) return string.format('%.0f', number) end
-- Milliseconds with their fractions: a generation may begin and be looked at within one.
local function exact(number) return string.format('%.3f', number) end
local function is_complete() return expected ~= nil and arrived >= expected end

-- Makes the latch if there is none.
local function make()
  if generation then return end
  generation, side = microseconds(), 2
  redis.call('HSET', header, 'g', decimal(generation), 's', side)
  redis.call('DEL', KEYS[2], KEYS[3])
end

-- Never shortens what is left.
local function keep(ttl)
  local life = math.max(redis.call('PTTL', header), tonumber(ttl))
  for i = 1, 3 do redis.call('PEXPIRE', KEYS[i], life) end
end

-- Notifies the first of those that wait for what has happened: all if the latch is complete, and those that looked before this
-- generation began. Says whether there are more.
local function tell()
  local last = is_complete() and '+inf' or exact((generation or 0) / 1000 + WATCHED)
  local told = redis.call('ZRANGE', watched, 0, last, 'BYSCORE', 'LIMIT', 0, TOLD_MAX)
  if not told[1] then return false end
  for _, inbox in ipairs(told) do redis.pcall('PUBLISH', inbox, 'latch ' .. name) end
  redis.call('ZREM', watched, unpack(told))
  redis.call('HDEL', watchers, unpack(told))
  return #told == TOLD_MAX
end

-- Drops the inboxes of waits that are over.
local function drop_ended(now)
  local ended = redis.call('ZRANGE', watched, 0, now, 'BYSCORE', 'LIMIT', 0, DROPPED_MAX)
  if not ended[1] then return end
  redis.call('ZREM', watched, unpack(ended))
  redis.call('HDEL', watchers, unpack(ended))
end

local run = {}

function run.arrive(ttl, id, call)
  make()
  local here, before = KEYS[side], KEYS[5 - side]
  local is_late = redis.call('HGET', before, id) == call
  if not is_late and arrived < (expected or COUNT_MAX) and not redis.call('HGET', here, id) then
    redis.call('HSET', here, id, call)
    arrived = arrived + 1
  end
  keep(ttl)
  return 0
end

function run.make(ttl)
  make()
  keep(ttl)
  return 0
end

function run.expect(ttl, count, named)
  count = tonumber(count)
  if generation ~= tonumber(named) or (expected and expected ~= count) then return 0 end
  if not expected then
    redis.call('HSET', header, 'n', decimal(count))
    expected = count
  end
  keep(ttl)
  return 0
end

function run.reset(ttl, ended)
  if generation ~= tonumber(ended) then return 0 end
  if is_complete() then completed = generation end
  generation, side, expected, arrived = math.max(microseconds(), generation + 1), 5 - side, nil, 0
  redis.call('HSET', header, 'g', decimal(generation), 's', side, 'c', decimal(completed or 0))
  redis.call('HDEL', header, 'n')
  redis.call('DEL', KEYS[side])
  keep(ttl)
  return 0
end

-- Answers 1 if the client will be notified, and 2 if it is not subscribed here.
function run.look(inbox)
  if inbox == '-' or is_complete() then return 0 end
  if not listens(inbox) then return 2 end
  -- In a full server, it polls.
  local watches = redis.pcall('HSET', watchers, inbox, inbox)
  if type(watches) == 'table' then return 0 end
  local now = microseconds() / 1000
  redis.call('ZADD', watched, exact(now + WATCHED), inbox)
  drop_ended(exact(now))
  for _, key in ipairs({watchers, watched}) do redis.call('PEXPIRE', key, WATCHED) end
  return 1
end

local told = run[act](unpack(ARGV, 3))
-- The same request does nothing more to the latch, and notifies the next ones.
if act ~= 'look' and tell() then return PASSING end
return {generation or 0, expected or 0, arrived, completed or 0, told}
