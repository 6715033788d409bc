-- How many dead waiters are passed over together, and after how many a script ends, because other clients wait for it.
local BATCH, PASSED_MAX = 64, 128
local passed, stopped = 0, false
-- Nothing else was done for the request. The client sends it again, and that goes on from there.
local PASSING = redis.error_reply('PASSING the first waiters were dead, and there are more: send this again')

-- Another key of a lock. Most claims and releases do not need it, and each key that is passed takes time.
local function beside(queue, letter) return string.sub(queue, 1, -2) .. letter end

-- What is set up only for names that several hold or wait for.
local sharing

-- The note of a lease begins with when it was granted, in seconds, and that of a waiter does not.
local function stamped(note, now) return string.format('%.0f~', math.floor(now / 1000)) .. note end
local function unstamped(note) return (string.gsub(note, '^%d+~', '')) end

-- Draws tokens above the floor, or makes good those that were drawn. Where they are used up, or the server has forgotten, nothing
-- and the refusal.
local function draw(width, floor, drawn)
  local high = drawn or redis.call('INCRBY', counter, width)
  local was_missing = high <= width
  if was_missing or high - width < floor or counting == 'clock' then
    local now = microseconds()
    -- A floor far ahead of the clock is no token of this deployment's and must not use up the numbers.
    high = math.max(high - width, now, math.min(floor, now + 86400000000)) + width
    redis.call('SET', counter, string.format('%.0f', high))
  end
  if was_missing then
    begin_dwell()
    local refusal = dwells()
    if refusal then return nil, refusal end
  end
  if high <= LAST_TOKEN then return high - width + 1, high end
  return nil, redis.error_reply('SPENT the fencing tokens are used up')
end

-- The limit under which a waiter is served: the one in force, if one was set after it had come.
local function limit_of_waiter(queue, waiter)
  local limit = waiter.x or 0
  local record = kind_of(limit) ~= 0 and redis.call('GET', beside(queue, 'l'))
  return record and tonumber(string.match(record, '^%d+')) or limit
end

-- Takes so many owners from the head of the queue, with their entries.
local function drop(queue, waiters, owners, count)
  if count == 0 then return end
  redis.call('LPOP', queue, count)
  redis.call('HDEL', waiters, unpack(owners, 1, count))
end

-- The first owner that has a place and is `me` or counts, and its entry. Those before it are dropped. If it finds none, `stopped` says
-- whether it looked at all of them.
local function first(queue, waiters, me, counts)
  local last = 0
  stopped = false
  while true do
    local owners = redis.call('LRANGE', queue, 0, last)
    if not owners[1] then return end
    local entries = redis.call('HMGET', waiters, unpack(owners))
    for i, owner in ipairs(owners) do
      local waiter = entries[i] and read(entries[i])
      if waiter and (owner == me or counts(waiter)) then
        drop(queue, waiters, owners, i - 1)
        return owner, waiter
      end
    end
    drop(queue, waiters, owners, #owners)
    passed, last = passed + #owners, BATCH - 1
    if passed > PASSED_MAX then
      stopped = true
      return
    end
  end
end

-- Hands a lock that nobody holds over to the first waiter that lives, unless `me` comes first. Gives the lock's new value,
-- or nothing where nobody was there, or '' where the first one would share it, or PASSING where it did not look at all of them.
local function hand_over(lock, queue, waiters, me)
  local now = milliseconds()
  local function lives(waiter) return not is_over(waiter, now) and listens(waiter.inbox) end
  local owner, waiter = first(queue, waiters, me, lives)
  if stopped then return PASSING end
  if not owner then return end
  if owner ~= me and (waiter.x or 0) ~= 0 then return '' end
  drop(queue, waiters, {owner}, 1)
  if owner == me then return end
  local low, high = draw(waiter.width, waiter.floor)
  if not low then return end
  local tokens, place = string.format('%.0f:%.0f', low, high), place_of(waiter.ttl)
  local held = 'lh1:' .. owner .. ':' .. tokens .. ':' .. stamped(waiter.note, now)
  redis.call('SET', lock, held, 'PX', place)
  if waiter.inbox ~= '-' then
    redis.pcall('PUBLISH', waiter.inbox, table.concat({'granted', owner, tokens, waiter.ttl, place, lock}, ' '))
  end
  return held
end

-- Ends a hold: the first waiters that live have the lock, or nobody. During a dwell, others may hold the lock who were forgotten,
-- unless the hold was valid. Gives PASSING if it has to be sent again.
local function free(lock, queue, waiters, was_valid)
  local held = (was_valid or not dwells()) and hand_over(lock, queue, waiters)
  if held == PASSING then return PASSING end
  if not held then redis.call('DEL', lock) elseif held == '' then sharing().free(lock, queue) end
end

-- Drops an owner's place. In the list, it is passed over when its turn comes: to look for it would cost more, the longer
-- the queue.
local function leave(queue, waiters, owner)
  if redis.call('HDEL', waiters, owner) == 0 then return false end
  if redis.call('EXISTS', waiters) == 0 then redis.call('DEL', queue) end
  return true
end
