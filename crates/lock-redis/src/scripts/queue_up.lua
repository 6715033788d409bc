
-- Takes the place of a claim in the queue, or refreshes it.
local function queue_up(queue, waiters, numbers, claim, seen, left)
  -- After a failover behind one address, a client may be subscribed at another server.
  local inbox = claim.inbox
  local unheard = inbox ~= '-' and not listens(inbox)
  if unheard then inbox = '-' end
  local place, now, owner = place_of(claim.ttl), milliseconds(), claim.owner
  local head, ahead = first(queue, waiters, owner, function(waiter) return not is_over(waiter, now) end)
  if stopped then return PASSING end
  local used_as = head and head ~= owner and limit_of_waiter(queue, ahead) or claim.limit
  if kind_of(used_as) ~= kind_of(claim.limit) and listens(ahead.inbox) then return {'otherkind', used_as} end
  local own = read(redis.call('HGET', waiters, owner))
  local number, last = own and own.n, ahead and ahead.n or 0
  -- An owner with a number below the head's is not in the list: the list was evicted, or expired first.
  local joins = not head or not number or number < last
  if joins then
    number = redis.call('INCRBY', numbers, 1)
    if number <= math.max(last, 1) then
      -- The counter starts at the clock, above any number that was evicted: no server adds a place in a microsecond.
      number = math.max(microseconds(), last + 1)
      redis.call('SET', numbers, string.format('%.0f', number))
    end
  end
  local limited = claim.limit > 0 and string.format(' x%.0f', claim.limit) or ''
  local fields = string.format('n%.0f%s j%.0f', number, limited, own and own.j or math.floor(now / 1000))
  local over = string.format('%.0f', now + place)
  local entry = {over, claim.ttl, claim.width, claim.floor, inbox, fields, unstamped(claim.note)}
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
  -- Where several hold, the holder that is shown does not say which came last.
  local drawn = claim.limit > 0 and redis.call('GET', counter) or nil
  return {'queued', seen, left, position, place, unheard and 1 or 0, drawn}
end
