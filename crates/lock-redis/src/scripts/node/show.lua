-- The owner stays here: what is told in its place begins like the digest that a revocation names. Of a value that is not ours only the length
-- and the beginning count: to hash a long one would keep the server busy.
local told = {}
for i, value in ipairs(redis.call('MGET', unpack(KEYS))) do
  local owner, rest = string.match(value or '', '^lh1:(%x+)(:%d+:%d+:.*)$')
  if owner and #owner == 32 then
    value = 'lh1:' .. string.sub(redis.sha1hex(owner), 1, 32) .. string.sub(rest, 1, 600)
  elseif value then
    value = redis.sha1hex(#value .. ':' .. string.sub(value, 1, 64))
  end
  told[i] = {value, redis.call('PTTL', KEYS[i])}
end
return told
