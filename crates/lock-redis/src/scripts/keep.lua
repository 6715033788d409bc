
-- A release that lets nobody have the lock for a while. Nobody holds it then, so its value names an owner that nobody is.
local lock, queue = KEYS[3], ARGV[1] .. KEYS[3] .. '}:q'
local mine, kept, time, tombstone_life = ARGV[2], ARGV[3], tonumber(ARGV[4]), ARGV[5]
local owner, waiters, held = string.sub(mine, 5, -2), beside(queue, 'w'), redis.pcall('GET', lock)
if type(held) ~= 'string' then held = false end

local function begins(with) return held and string.sub(held, 1, #with) == with end

-- Where the next in line is told, which then asks how long the lock is kept, and asks again when that is over.
local function next_inbox()
  local now = milliseconds()
  local function lives(waiter) return not is_over(waiter, now) and listens(waiter.inbox) end
  local _, waiter = first(queue, waiters, nil, lives)
  return waiter and waiter.inbox ~= '-' and waiter.inbox
end

local function keep()
  if is_shared(held) then
    local share = sharing()
    local lease = share.lease_of(share.visited(lock, queue, held), owner)
    if lease and lease.lives then return redis.error_reply('UNKEPT only an exclusive lease can be kept') end
  end
  if not begins(mine) and not begins(kept) then return give_up(lock, queue, mine, held) end
  -- It may have kept the lock and asked again. A full server takes this, and then what follows.
  leave(queue, waiters, owner)
  local inbox = next_inbox()
  if stopped then return PASSING end
  if begins(mine) then
    redis.call('SET', lock, kept .. string.sub(held, #mine + 1), 'PX', time)
  else
    -- Also if nothing changes: a wait for replicas covers what its connection wrote.
    local left = redis.call('PTTL', lock)
    redis.call('PEXPIRE', lock, left > 0 and math.min(left, time) or time)
  end
  if inbox then redis.pcall('PUBLISH', inbox, 'recheck ' .. lock) end
  return 1
end

local released = keep()
if tombstone_life and type(released) == 'number' then refuse_later(queue, owner, tombstone_life) end
return released
