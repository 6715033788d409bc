
-- Ends a hold or a place. Gives 1 for a hold, 2 for a place, 0 for neither.
local function give_up(lock, queue, waiters, mine, held)
  if held and string.sub(held, 1, #mine) == mine then
    free(lock, queue, waiters)
    return 1
  end
  local owner = string.sub(mine, 5, -2)
  if is_shared(held) then return sharing().give_up(lock, queue, held, owner) end
  return leave(queue, waiters, owner) and 2 or 0
end
