
-- Ends a hold or a place. Gives 1 for a hold, 2 for a place, 0 for neither.
local function give_up(lock, queue, waiters, mine, is_mine)
  if is_mine then
    free(lock, queue, waiters)
    return 1
  end
  return leave(queue, waiters, string.sub(mine, 5, -2)) and 2 or 0
end
