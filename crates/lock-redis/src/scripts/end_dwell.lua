local left = redis.call('PTTL', KEYS[1])
redis.call('DEL', KEYS[1])
return left
