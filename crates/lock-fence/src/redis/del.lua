-- DEL goes first: it runs in a full server too, and lets what follows run. The fence stays.
local deleted = redis.call('DEL', KEYS[1])
redis.call('SET', KEYS[2], ARGV[1])
return {1, deleted}
