
-- One claim of any mode for a name that others hold or wait for together, or that it would share with them.
local function acquire_shared(lock, queue, floor, mine, terms, limit, drawn, barging)
  local share, owner, waiters, numbers = sharing(), string.sub(mine, 5, -2), beside(queue, 'w'), beside(queue, 'n')
  local ttl, width, inbox, note = string.match(terms, '^(%d+) (%d+) (%S*) (.*)$')
  width = tonumber(width)
  local held = redis.pcall('GET', lock)
  if type(held) == 'table' then return held end
  if was_given_up(queue, owner) then return GIVEN_UP end
  -- With its own exclusive hold, a claim comes here only by mistake.
  if held and string.sub(held, 1, #mine) == mine then return share.OTHER_MODE end
  local name = share.visited(lock, queue, held or nil)
  local lease = share.lease_of(name, owner)
  local is_served
  limit, is_served = share.under(name, limit)
  if lease and lease.lives then return share.again(name, lease, limit, width, ttl) end
  if not is_served then return {'otherkind', limit} end
  if kind_of(limit) ~= 0 and width > limit then
    leave(queue, waiters, owner)
    return {'above', limit}
  end
  local used_as = share.used_as(name, owner)
  if stopped then return PASSING end
  if used_as and kind_of(used_as) ~= kind_of(limit) then return {'otherkind', used_as} end

  if lease then share.end_lease(name, lease) end
  local head, waiter
  if name.used == 0 or name.limit > 0 then head, waiter = share.hand_over(name, owner) end
  if stopped then
    share.settle(name)
    return PASSING
  end
  local is_next = not head or head == owner
  local fits = (is_next or barging) and share.fits(name, limit, width)
  local refusal = (fits or name.used == 0) and dwells()
  if refusal then
    share.settle(name)
    return refusal
  end
  if fits then
    if head == owner then drop(queue, waiters, {owner}, 1) elseif head then leave(queue, waiters, owner) end
    local low, high = draw(width, tonumber(floor), drawn)
    if not low then return high end
    local slots = share.put(name, limit, owner, width, low, high, note, ttl)
    if head then share.hand_over(name) end
    share.settle(name)
    return limit == 0 and low or {'granted', low, high, slots, head and redis.call('EXISTS', waiters) or 0, limit}
  end
  local left_the_queue = inbox == '' and leave(queue, waiters, owner)
  if left_the_queue then head, waiter = share.next_waiter(name) end
  is_next = not head or head == owner
  local seen, left = share.shown(name, is_next and limit or waiter.x or 0, is_next and width or waiter.width)
  if left_the_queue and name.limit > 0 then share.hand_over(name) end
  share.settle(name)
  if inbox == '' then return {'held', seen, left} end
  local claim = {owner = owner, limit = limit, ttl = ttl, width = width, floor = floor, inbox = inbox, note = note}
  return queue_up(queue, waiters, numbers, claim, seen, left)
end
