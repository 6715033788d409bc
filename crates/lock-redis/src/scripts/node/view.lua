
local known = redis.call('HMGET', KEYS[1], 'seal', 'pending', 'since', 'fence', 'longest', 'members', 'max_ttl')
known[#known + 1] = microseconds()
return known
