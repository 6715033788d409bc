local held, lost = redis.call('MGET', unpack(KEYS)), {}
for i, lock in ipairs(KEYS) do
  local mine = ARGV[2 * i - 1]
  if not held[i] or string.sub(held[i], 1, #mine) ~= mine or redis.call('PEXPIRE', lock, ARGV[2 * i]) == 0 then
    lost[#lost + 1] = i
  end
end
return lost
