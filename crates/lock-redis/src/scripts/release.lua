
local released = give_up(lock, queue, waiters, mine, type(held) == 'string' and held)
if tombstone then redis.call('SET', tombstone, '', 'PX', ARGV[2]) end
return released
