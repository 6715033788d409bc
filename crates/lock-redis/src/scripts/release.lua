
local released = 0
if is_mine then
  if not hand_over(lock, counter, queue, waiters, first) then redis.call('DEL', lock) end
  released = 1
elseif leave(queue, waiters, string.sub(mine, 5, -2)) then
  released = 2
end
if tombstone then redis.call('SET', tombstone, '', 'PX', life) end
return released
