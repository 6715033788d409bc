
local known = redis.call('HMGET', KEYS[1], 'seal', 'pending', 'since', 'fence', 'longest', 'members', 'max_ttl',
  'marked_members', 'marked_max_ttl', 'predecessor', 'predecessor_max_ttl')
known[#known + 1] = microseconds()
return known
