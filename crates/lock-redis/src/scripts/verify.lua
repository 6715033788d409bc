local counter, marker, dwell, longest = unpack(KEYS)
local incarnation, seen, history, max_ttl, grace = ARGV[1], ARGV[2], ARGV[3], tonumber(ARGV[4]), tonumber(ARGV[5])
local verified, stored = redis.call('GET', marker) or '', tonumber(redis.call('GET', longest) or 0)
if verified == incarnation and stored >= max_ttl then return {0, stored} end
-- A full server takes this, and then what follows: nobody could even release without a connection.
redis.call('DEL', marker)
local now = microseconds()
if verified ~= incarnation and (tonumber(redis.call('GET', counter) or '') or 0) < now then
  redis.call('SET', counter, string.format('%.0f', now))
end
if stored < max_ttl then redis.call('SET', longest, ARGV[4]) end

-- Within one run, only a promotion brings other data.
local run = string.match(incarnation, '^[^:]*:')
local is_untouched = verified == incarnation or history == 'unpromoted' and string.sub(verified, 1, #run) == run
local left = redis.call('PTTL', dwell)
-- What was forgotten may have been leases as long as this client's.
if not is_untouched or left > 0 and stored < max_ttl then
  local life = math.max(stored, max_ttl) + grace
  if left ~= -1 and left < life then redis.call('SET', dwell, '', 'PX', string.format('%.0f', life)) end
end
-- What was verified meanwhile may be newer than what this client was told.
redis.call('SET', marker, (verified == seen or verified == incarnation) and incarnation or verified)
return {verified == incarnation and 0 or 1, math.max(stored, max_ttl)}
