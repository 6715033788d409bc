local seen, locks = {}, #KEYS / 2
for i = 1, locks do
  local held, waiting = redis.pcall('GET', KEYS[i]), redis.pcall('LLEN', KEYS[locks + i])
  if type(held) == 'table' then held = 0 elseif held then held = string.sub(held, 1, 600) end
  if type(waiting) == 'table' then waiting = 0 end
  seen[#seen + 1] = {held, redis.call('PTTL', KEYS[i]), waiting}
end
return seen
