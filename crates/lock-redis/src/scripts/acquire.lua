
local owner = string.sub(mine, 5, -2)

local function grant()
  local low, high = draw(counter, width, floor, drawn)
  if not low then return redis.error_reply('SPENT the fencing tokens are used up') end
  redis.call('SET', lock, mine .. string.format('%.0f:%.0f:', low, high) .. note, 'PX', ttl)
  return low
end

if nothing_there then return grant() end
local held = redis.pcall('GET', lock)
if type(held) == 'table' then return held end
if redis.call('EXISTS', tombstone) == 1 then return redis.error_reply('GIVENUP this claim was given up') end
if held and string.sub(held, 1, #mine) == mine then
  redis.call('PEXPIRE', lock, ttl)
  leave(queue, waiters, owner)
  local low, high = string.match(held, '^lh1:%x+:(%d+):(%d+):')
  return {'granted', tonumber(low), tonumber(high)}
end
held = held or hand_over(lock, counter, queue, waiters, redis.call('LPOP', queue), owner)
if not held then return grant() end
local seen, left = string.sub(held, 1, 600), redis.call('PTTL', lock)
if inbox == '' then
  leave(queue, waiters, owner)
  return {'held', seen, left}
end
-- A client may be told at another server than this one, after a failover behind one address.
local unheard = inbox ~= '-' and not listens(inbox)
if unheard then inbox = '-' end
local place = place_of(ttl)
local waiter = table.concat({string.format('%.0f', milliseconds() + place), ttl, ARGV[3], ARGV[4], inbox, note}, ' ')
local position
if redis.call('HSET', waiters, owner, waiter) == 0 then position = redis.call('LPOS', queue, owner) end
position = position and position + 1 or redis.call('RPUSH', queue, owner)
-- While somebody lives, the dead would stay until their turn.
if position % 16 == 0 then
  sweep(queue, waiters)
  position = redis.call('LPOS', queue, owner) + 1
end
local life = math.max(redis.call('PTTL', waiters), place)
redis.call('PEXPIRE', queue, life)
redis.call('PEXPIRE', waiters, life)
return {'queued', seen, left, position, place, unheard and 1 or 0}
