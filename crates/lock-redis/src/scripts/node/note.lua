local now = microseconds()
redis.call('SET', KEYS[1], string.format('%.0f', now), 'NX', 'PX', ARGV[1])
return math.max(now - redis.call('GET', KEYS[1]), 0)
