
-- A claim that ends another lease of the same client, past the queue.
local lock, queue, floor, mine, terms = KEYS[3], ARGV[3] .. KEYS[3] .. '}:q', tonumber(ARGV[1]), ARGV[4], ARGV[5]
local limit, old, life, waiters = tonumber(ARGV[6]), ARGV[7], ARGV[8], beside(queue, 'w')
lasts = ARGV[2]
local ttl, width, note = string.match(terms, '^(%d+) (%d+) %S* (.*)$')
local owner, old_owner = string.sub(mine, 5, -2), string.sub(old, 5, -2)
width = tonumber(width)

local held = redis.pcall('GET', lock)
if type(held) == 'table' then return held end
if was_given_up(queue, owner) then return GIVEN_UP end
local share = sharing()
local name = share.visited(lock, queue, held or nil)
limit = share.under(name, limit)
local is_ours = name.limit > 0 or string.sub(held or '', 1, 4) == 'lh1:'
if is_ours and kind_of(name.limit) ~= kind_of(limit) then return {'otherkind', name.limit} end

-- How many first members of a lease go on, or nothing if this claim cannot take its place. 0 if it is the only lease, or becomes it.
local function kept_of(old_limit, members)
  if old_limit == 0 or limit == 0 then return kind_of(old_limit) == kind_of(limit) and 0 end
  return limit == old_limit and width <= members and width
end

-- In the same mode, it is still the lease that was granted first.
local function note_of(lease)
  if limit ~= name.limit then return note end
  local stored = lease and redis.call('HGET', name.leases, old_owner) or held
  return (string.match(stored, '^[^@~]*:(%d+~)') or '') .. unstamped(note)
end

local function grant(lease)
  local kept = kept_of(name.limit, lease and #lease.members)
  if not kept then return redis.error_reply('UNREPLACED a lease cannot be replaced by one of this mode') end
  if kept == 0 and lease and name.used > 1 then return {'held', share.shown(name, limit, width, old_owner)} end
  share.next_waiter(name)
  if stopped then return PASSING end
  -- Readers that were forgotten may still read.
  local refusal = limit == 0 and name.limit > 0 and dwells()
  if refusal then return refusal end
  local low, high = draw(width, floor)
  if not low then return high end
  local slots, note = '', note_of(lease)
  if kept > 0 then
    slots = limit == READERS and '' or string.match(lease.slots, '^' .. string.rep('%d+,', kept - 1) .. '%d+')
    name.used = name.used - #lease.members
    redis.call('ZREM', name.holders, unpack(lease.members))
    redis.call('HDEL', name.leases, old_owner)
    share.free_slots(name, {unpack(lease.members, kept + 1)})
    share.touched(name, lease.over)
    share.store(name, owner, slots, low, high, note, ttl)
  else
    name.used = 0
    slots = share.put(name, limit, owner, width, low, high, note, ttl)
  end
  leave(queue, waiters, owner)
  share.hand_over(name)
  share.settle(name)
  return {'granted', low, high, slots, redis.call('EXISTS', waiters), limit}
end

local function replace()
  if held and string.sub(held, 1, #mine) == mine then
    if limit ~= 0 then return share.OTHER_MODE end
    redis.call('PEXPIRE', lock, ttl)
    local low, high = string.match(held, '^lh1:%x+:(%d+):(%d+):')
    return {'granted', tonumber(low), tonumber(high), '', redis.call('EXISTS', waiters)}
  end
  local lease = share.lease_of(name, owner)
  if lease and lease.lives then return share.again(name, lease, limit, width, ttl) end
  lease = share.lease_of(name, old_owner)
  if lease and lease.lives or held and string.sub(held, 1, #old) == old then return grant(lease) end
  return redis.error_reply('NOTHELD the lease to replace is not held')
end

local answer = replace()
if answer[1] == 'granted' then refuse_later(queue, old_owner, life) end
return answer
