local dwell, marker = unpack(KEYS)
local mark, incarnation = unpack(ARGV)
local found = redis.call('GET', dwell)
-- Another dwell has begun since this one was marked, or another server answers.
if found and (found ~= mark or redis.call('GET', marker) ~= incarnation) then return -3 end
local left = redis.call('PTTL', dwell)
redis.call('DEL', dwell)
return left
