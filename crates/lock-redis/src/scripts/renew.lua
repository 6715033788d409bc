local held, lost = redis.call('MGET', unpack(KEYS)), {}
for i, lock in ipairs(KEYS) do
  local mine = ARGV[3 * i - 2]
  if not held[i] or string.sub(held[i], 1, #mine) ~= mine or redis.call('PEXPIRE', lock, ARGV[3 * i - 1]) == 0 then
    lost[#lost + 1] = {i, revoked_by(ARGV[3 * i])}
  end
end
return lost
