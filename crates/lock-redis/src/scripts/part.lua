local lock, queue, waiters, tombstone, mine = KEYS[2], KEYS[3], KEYS[4], KEYS[5], ARGV[1]
local held = redis.pcall('GET', lock)
local is_mine = type(held) == 'string' and string.sub(held, 1, #mine) == mine
-- Nobody waits and nothing is to be remembered: so most releases end, and nothing more is set up for them.
if is_mine and not tombstone and redis.call('EXISTS', queue) == 0 then return redis.call('DEL', lock) end
