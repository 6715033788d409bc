local now = milliseconds()

-- Where the lease of an owner lives that shares the lock of these waiters: the keys of holders and leases, and its members. Nothing if
-- it has ended, or has other tokens.
local function living(waiters, owner, tokens)
  local beside = string.sub(waiters, 1, -2)
  local holders, leases = beside .. 'h', beside .. 's'
  local stored = redis.call('HGET', leases, owner)
  if not stored or string.sub(stored, 1, #tokens) ~= tokens then return end
  local members = members_of(owner, string.match(stored, '^%d+:%d+:([%d,]*):'))
  if tonumber(redis.call('ZSCORE', holders, members[1]) or 0) > now then return holders, leases, members end
end

