local seen, locks, now, heard = {}, math.ceil(#KEYS / 2), milliseconds(), {}

local function lives(waiter)
  if not waiter or is_over(waiter, now) then return false end
  local inbox = waiter.inbox
  if heard[inbox] == nil then heard[inbox] = listens(inbox) end
  return heard[inbox]
end

-- Those that wait beside a lock; nobody where they were not asked for.
local function waiting(waiters)
  local count = 0
  for _, entry in ipairs(waiters and redis.call('HVALS', waiters) or {}) do
    if lives(read(entry)) then count = count + 1 end
  end
  return count
end

for i = 1, locks do
  local held = redis.pcall('GET', KEYS[i])
  if type(held) == 'table' then held = 0 elseif held then held = string.sub(held, 1, 600) end
  seen[i] = {held, redis.call('PTTL', KEYS[i]), waiting(KEYS[locks + i])}
end
return seen
