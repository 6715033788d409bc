-- Further arguments: fields and values. A key of another type is found before anything is written.
local kind = redis.call('TYPE', KEYS[1]).ok
if kind ~= 'hash' and kind ~= 'none' then
  return redis.error_reply('WRONGTYPE ' .. KEYS[1] .. ' is a ' .. kind .. ', not a hash')
end
redis.call('SET', KEYS[2], ARGV[1])
-- Lua passes at most about 8,000 arguments to one call.
local added = 0
for first = 2, #ARGV, 4000 do
  added = added + redis.call('HSET', KEYS[1], unpack(ARGV, first, math.min(first + 3999, #ARGV)))
end
return {1, added}
