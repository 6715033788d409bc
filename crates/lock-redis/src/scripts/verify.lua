local counter, marker, incarnation, seen = KEYS[1], KEYS[2], ARGV[1], ARGV[2]
local verified = redis.call('GET', marker) or ''
if verified == incarnation then return 0 end
-- A full server takes this, and then what follows: nobody could even release without a connection.
redis.call('DEL', marker)
local now = microseconds()
if (tonumber(redis.call('GET', counter) or '') or 0) < now then
  redis.call('SET', counter, string.format('%.0f', now))
end
-- What was verified meanwhile may be newer than what this client was told.
redis.call('SET', marker, verified == seen and incarnation or verified)
return 1
