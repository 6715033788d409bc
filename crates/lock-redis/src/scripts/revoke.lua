
local lock, queue, token = KEYS[3], KEYS[4], tonumber(ARGV[1])
local held = redis.pcall('GET', lock)
if type(held) == 'table' then return held end
local share = sharing()
local name = share.visited(lock, queue, held or nil)

local function spans(low, high) return low and tonumber(low) <= token and token <= tonumber(high) end

if name.limit == 0 then
  if not spans(string.match(held or '', '^lh1:%x+:(%d+):(%d+):')) then return 0 end
  name.used, name.changed = 0, true
else
  local stored, lease = redis.call('HGETALL', name.leases)
  for i = 1, #stored, 2 do
    if spans(string.match(stored[i + 1], '^(%d+):(%d+):')) then lease = share.lease_of(name, stored[i]) end
  end
  if not lease or not lease.lives then return 0 end
  share.end_lease(name, lease)
end
share.hand_over(name)
share.settle(name)
return 1
