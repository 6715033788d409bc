
-- About how many leases one script searches. The next one begins at the cursor that it returns.
local SEARCHED = 200
local lock, queue, token = KEYS[3], KEYS[4], tonumber(ARGV[1])
local held = redis.pcall('GET', lock)
if type(held) == 'table' then return held end
local share = sharing()
local name = share.visited(lock, queue, held or nil)

local function spans(low, high) return low and tonumber(low) <= token and token <= tonumber(high) end

-- Searching changes nothing. Then what the queue has to be rid of goes first.
local function reads_queue()
  share.next_waiter(name)
  return not stopped
end

local highest, left
if name.limit == 0 then
  local low, high = string.match(held or '', '^lh1:%x+:(%d+):(%d+):')
  if not spans(low, high) then return 0 end
  if not reads_queue() then return PASSING end
  highest, left = high, redis.call('PTTL', lock)
  name.used, name.changed = 0, true
else
  local step, lease = redis.call('HSCAN', name.leases, ARGV[4], 'COUNT', SEARCHED)
  local stored = step[2]
  for i = 1, #stored, 2 do
    if spans(string.match(stored[i + 1], '^(%d+):(%d+):')) then lease = share.lease_of(name, stored[i]) end
  end
  if not lease and step[1] ~= '0' then return step[1] end
  if not lease or not lease.lives then return 0 end
  if not reads_queue() then return PASSING end
  highest, left = lease.high, lease.over - name.now
  share.end_lease(name, lease)
end
share.hand_over(name)
share.settle(name)
-- After the other writes: a full server takes this only behind them. The lease has ended even if it is not taken.
redis.pcall('SET', string.sub(queue, 1, -2) .. 'r:' .. highest, ARGV[2], 'PX', math.max(left, tonumber(ARGV[3])))
redis.pcall('PUBLISH', 'leasehold:inbox:all', 'revoked ' .. lock)
return 1
