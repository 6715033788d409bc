
local released = give_up(lock, queue, mine, type(held) == 'string' and held, ARGV[2] ~= 'doubtful')
if tombstone then redis.call('SET', tombstone, '', 'PX', ARGV[3]) end
return released
