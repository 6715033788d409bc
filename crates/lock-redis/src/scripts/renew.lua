local held, lost = redis.call('MGET', unpack(KEYS)), {}
for i, lock in ipairs(KEYS) do
  local mine = ARGV[i + 2]
  if not held[i] or string.find(held[i], mine, 1, true) ~= 1 or redis.call('PEXPIRE', lock, ttl_of(i)) == 0 then
    lost[#lost + 1] = {i, revoked_by(lock, mine)}
  end
end
return lost
