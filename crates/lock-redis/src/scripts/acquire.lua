
-- One claim. `drawn` is the counter after its tokens were drawn, if that was done already.
local function acquire(lock, tombstone, queue, waiters, numbers, floor, mine, terms, nothing_there, drawn)
  local ttl, width, inbox, note = string.match(terms, '^(%d+) (%d+) (%S*) (.*)$')
  local owner = string.sub(mine, 5, -2)

  local function grant()
    local low, high = draw(tonumber(width), tonumber(floor), drawn)
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
  held = held or hand_over(lock, queue, waiters, owner)
  if not held then return grant() end
  local seen, left = string.sub(held, 1, 600), redis.call('PTTL', lock)
  if inbox == '' then
    leave(queue, waiters, owner)
    return {'held', seen, left}
  end
  -- After a failover behind one address, a client may be subscribed at another server.
  local unheard = inbox ~= '-' and not listens(inbox)
  if unheard then inbox = '-' end
  local place, now = place_of(ttl), milliseconds()
  local head, ahead = first(queue, waiters, owner, function(waiter) return not is_over(waiter, now) end)
  local own = redis.call('HGET', waiters, owner)
  local number, last = own and tonumber(string.match(own, '^%d+ %d+ %d+ %d+ %S+ n(%d+) ')), ahead and ahead.n or 0
  -- An owner with a number below the head's is not in the list: the list was evicted, or expired first.
  local joins = not head or not number or number < last
  if joins then
    number = redis.call('INCRBY', numbers, 1)
    if number <= math.max(last, 1) then
      -- The counter starts at the clock, above any number that was evicted.
      number = math.max(now, last + 1)
      redis.call('SET', numbers, string.format('%.0f', number))
    end
  end
  local entry = {string.format('%.0f', now + place), ttl, width, floor, inbox, string.format('n%.0f', number), note}
  redis.call('HSET', waiters, owner, table.concat(entry, ' '))
  local position, length = 1, joins and redis.call('RPUSH', queue, owner)
  if head and (joins or head ~= owner) then
    length = length or redis.call('LLEN', queue)
    -- An older version gives the head no number.
    position = ahead.n and math.max(2, math.min(number - ahead.n + 1, length)) or length
  end
  if joins then sweep(queue, waiters, length, now) end
  local life = math.max(redis.call('PTTL', waiters), place)
  for _, key in ipairs({queue, waiters, numbers}) do redis.call('PEXPIRE', key, life) end
  return {'queued', seen, left, position, place, unheard and 1 or 0}
end
