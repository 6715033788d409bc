local node, lock, lead, token, by, lasts = KEYS[1], KEYS[2], unpack(ARGV)
local beside = lead .. lock .. '}:'
local held = redis.call('MGET', lock)[1]
local owner, low, high = string.match(held or '', '^lh1:(%x+):(%d+):(%d+):')
local digest, ends, others = owner and string.sub(redis.sha1hex(owner), 1, 32), false, false
for i = 5, #ARGV do
  if ARGV[i] == digest then ends = true else others = true end
end

-- Claims of these may be under way, and the operator may ask again who they are.
local function bar()
  local until_then = microseconds() + lasts * 1000
  if until_then > tonumber(redis.call('HGET', node, 'barred') or 0) then
    redis.call('HSET', node, 'barred', string.format('%.0f', until_then))
  end
  for i = 5, #ARGV do
    redis.call('SET', beside .. 'r:' .. ARGV[i], '', 'PX', lasts)
    redis.call('SADD', beside .. 'o:' .. token, ARGV[i])
  end
  redis.call('PEXPIRE', beside .. 'o:' .. token, lasts)
end

-- First, as a full server takes it, and then what follows.
if ends then redis.call('DEL', lock) end
-- An owner that held here has its answer already: a full server ends its lease all the same.
if others then bar() else pcall(bar) end
if not ends then return 0 end
-- The lease has ended, even if nobody learns by whom.
redis.pcall('SET', beside .. 'r:' .. high, by, 'PX', lasts)
if low ~= high then redis.pcall('SET', beside .. 'r:' .. low, by, 'PX', lasts) end
redis.pcall('PUBLISH', 'leasehold:inbox:all', 'revoked ' .. lock)
tell_one(beside .. 'i', lock)
return 1
