local owners, token = redis.call('SMEMBERS', KEYS[2]), tonumber(ARGV[1])
local held = redis.call('MGET', KEYS[1])[1]
local owner, low, high = string.match(held or '', '^lh1:(%x+):(%d+):(%d+):')
if owner and #owner == 32 and tonumber(low) <= token and token <= tonumber(high) then
  owners[#owners + 1] = string.sub(redis.sha1hex(owner), 1, 32)
end
return owners
