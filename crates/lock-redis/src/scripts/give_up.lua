
-- The digits of the owner under which a lock is kept for an owner.
local function kept_for(owner)
  local digits = {}
  for i = 0, 15 do digits[string.format('%x', i)] = string.format('%x', 15 - i) end
  return (string.gsub(owner, '%x', digits))
end

-- Ends a hold, the time for which a lock is kept, or a place. Gives 1 for the first two, 2 for a place, 0 for none of them.
local function give_up(lock, queue, mine, held, was_valid)
  local owner, waiters = string.sub(mine, 5, -2), beside(queue, 'w')
  local holder = held and string.match(held, '^lh1:(%x+):')
  if holder and (holder == owner or holder == kept_for(owner)) then
    -- It may have kept the lock and asked again.
    if holder ~= owner then leave(queue, waiters, owner) end
    return free(lock, queue, waiters, was_valid) or 1
  end
  -- If the lock has expired, nobody may have asked for it since.
  local has_expired = not held and redis.call('EXISTS', queue) == 1 and redis.call('EXISTS', lock) == 0
  if has_expired and not dwells() or is_shared(held) then return sharing().give_up(lock, queue, held, owner) end
  return leave(queue, waiters, owner) and 2 or 0
end
