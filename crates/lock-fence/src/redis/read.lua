-- Further arguments: the command that reads, and its arguments after the key. A reader changes nothing.
return {1, redis.call(ARGV[2], KEYS[1], unpack(ARGV, 3))}
