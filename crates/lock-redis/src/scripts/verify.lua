local counter, marker = KEYS[1], KEYS[2]
if redis.call('GET', marker) == ARGV[1] then return 0 end
-- A full server takes this, and then what follows: nobody could even release without a connection.
redis.call('DEL', marker)
local now = microseconds()
if (tonumber(redis.call('GET', counter) or '') or 0) < now then
  redis.call('SET', counter, string.format('%.0f', now))
end
redis.call('SET', marker, ARGV[1])
return 1
