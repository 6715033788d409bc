local answers, held = {}, redis.call('MGET', unpack(KEYS, 1, count))

local function renew_shared(lock, waiters, owner, tokens, ttl)
  local holders, leases, members = living(waiters, owner, tokens)
  if not holders then return false end
  -- A full server takes this, and then what follows.
  redis.call('HDEL', leases, '')
  redis.call('ZADD', holders, 'XX', 'GT', scored(now + ttl, members))
  if redis.call('PTTL', lock) < tonumber(ttl) then
    local over = string.format('%.0f', now + ttl)
    for _, key in ipairs({lock, holders, leases}) do redis.call('PEXPIREAT', key, over) end
  end
  return true
end

for i = 1, count do
  local lock, waiters = KEYS[i], KEYS[count + i]
  local mine, ttl = ARGV[i + 2], ttl_of(i)
  local owner, tokens = string.match(mine, '^lh2:(%x+):(.*)$')
  local lives, wanted
  if owner then
    lives = is_shared(held[i]) and renew_shared(lock, waiters, owner, tokens, ttl)
    wanted = lives and redis.call('EXISTS', waiters)
  else
    lives = held[i] and string.sub(held[i], 1, #mine) == mine and redis.call('PEXPIRE', lock, ttl) == 1
  end
  answers[i] = lives and {1 + (wanted or 0), false} or {0, revoked_by(lock, mine)}
end
return answers
