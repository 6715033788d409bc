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

