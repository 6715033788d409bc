
local released = give_up(lock, queue, waiters, mine, is_mine)
if tombstone then redis.call('SET', tombstone, '', 'PX', ARGV[2]) end
return released
