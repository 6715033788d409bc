
-- One claim. `drawn` is the counter after its tokens were drawn, if that was done already.
local function acquire(lock, queue, floor, mine, terms, nothing_there, drawn)
  local ttl, width, inbox, note = string.match(terms, '^(%d+) (%d+) (%S*) (.*)$')
  local owner, waiters, numbers = string.sub(mine, 5, -2), beside(queue, 'w'), beside(queue, 'n')

  local function grant()
    local low, high = draw(tonumber(width), tonumber(floor), drawn)
    if not low then return high end
    redis.call('SET', lock, mine .. string.format('%.0f:%.0f:', low, high) .. note, 'PX', ttl)
    return low
  end

  if nothing_there then return grant() end
  local held = redis.pcall('GET', lock)
  if type(held) == 'table' then return held end
  if was_given_up(queue, owner) then return GIVEN_UP end
  if held and string.sub(held, 1, #mine) == mine then
    redis.call('PEXPIRE', lock, ttl)
    leave(queue, waiters, owner)
    local low, high = string.match(held, '^lh1:%x+:(%d+):(%d+):')
    return {'granted', tonumber(low), tonumber(high)}
  end
  if not held then
    local refusal = dwells()
    if refusal then return refusal end
    held = hand_over(lock, queue, waiters, owner)
    if held == PASSING then return PASSING end
  end
  if held == '' or is_shared(held) then
    return acquire_shared(lock, queue, floor, mine, terms, 0)
  end
  if not held then return grant() end
  local seen, left = string.sub(held, 1, 600), redis.call('PTTL', lock)
  if inbox == '' then
    leave(queue, waiters, owner)
    return {'held', seen, left}
  end
  local claim = {owner = owner, limit = 0, ttl = ttl, width = width, floor = floor, inbox = inbox, note = note}
  return queue_up(queue, waiters, numbers, claim, seen, left)
end
