local seen, locks, now = {}, #KEYS / 2, milliseconds()

local function waiting(waiters)
  local count = 0
  for _, waiter in ipairs(redis.call('HVALS', waiters)) do
    if tonumber(string.match(waiter, '^%d+') or 0) > now then count = count + 1 end
  end
  return count
end

for i = 1, locks do
  local held = redis.pcall('GET', KEYS[i])
  if type(held) == 'table' then held = 0 elseif held then held = string.sub(held, 1, 600) end
  seen[i] = {held, redis.call('PTTL', KEYS[i]), waiting(KEYS[locks + i])}
end
return seen
