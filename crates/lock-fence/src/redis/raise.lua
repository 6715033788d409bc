redis.call('SET', KEYS[2], ARGV[1])
return {1, 1}
