-- Further arguments: the value, and its expiry (ms), if it has one. The fence goes first, since nothing is rolled back.
redis.call('SET', KEYS[2], ARGV[1])
if ARGV[3] then
  redis.call('SET', KEYS[1], ARGV[2], 'PX', ARGV[3])
else
  redis.call('SET', KEYS[1], ARGV[2])
end
return {1, 1}
