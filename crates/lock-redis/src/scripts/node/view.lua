
local known = redis.call('HMGET', KEYS[1], 'seal', 'pending', 'since', 'fence', 'longest', 'members', 'max_ttl',
  'marked_members', 'marked_max_ttl', 'predecessor', 'predecessor_max_ttl', 'moves')
if not counts(redis.call('HGET', KEYS[1], 'incarnation')) then known[1], known[2] = false, false end
return { known, redis.call('HGET', KEYS[1], 'voted'), microseconds() }
