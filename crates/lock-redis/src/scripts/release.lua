
local released = 0
if is_mine then
  free(lock, counter, queue, waiters)
  released = 1
elseif leave(queue, waiters, string.sub(mine, 5, -2)) then
  released = 2
end
if tombstone then redis.call('SET', tombstone, '', 'PX', life) end
return released
