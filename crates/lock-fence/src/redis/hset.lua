-- Further arguments: fields and values. A key of another type is found before anything is written.
local kind = redis.call('TYPE', KEYS[1]).ok
if kind ~= 'hash' and kind ~= 'none' then
  return redis.error_reply('WRONGTYPE ' .. KEYS[1] .. ' is a ' .. kind .. ', not a hash')
end
redis.call('SET', KEYS[2], ARGV[1])
return {1, redis.call('HSET', KEYS[1], unpack(ARGV, 2))}
