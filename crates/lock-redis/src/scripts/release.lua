
local released = give_up(lock, queue, mine, type(held) == 'string' and held, ARGV[3] ~= 'doubtful')
if tombstone_life then refuse_later(queue, string.sub(mine, 5, -2), tombstone_life) end
return released
