-- The owner stays here: what is told in its place begins like the digest that a revocation names.
local told = {}
for i, value in ipairs(redis.call('MGET', unpack(KEYS))) do
  local owner, rest = string.match(value or '', '^lh1:(%x+)(:%d+:%d+:.*)$')
  if owner then
    value = 'lh1:' .. string.sub(redis.sha1hex(owner), 1, 32) .. string.sub(rest, 1, 600)
  elseif value then
    value = redis.sha1hex(value)
  end
  told[i] = {value, redis.call('PTTL', KEYS[i])}
end
return told
