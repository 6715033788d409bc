-- Keys: value, fence. The first argument is the token. Both are numbers below 2^53, which Lua compares exactly.
local fence = redis.call('GET', KEYS[2]) or '0'
if not string.match(fence, '^%d+$') or tonumber(fence) > 9007199254740991 then
  return redis.error_reply('BADFENCE the fence ' .. KEYS[2] .. ' is not a fencing token; delete this key once no paused holder can write any more')
end
if tonumber(fence) > tonumber(ARGV[1]) then
  return {0, fence}
end
