
local lock, queue, waiters = KEYS[2], KEYS[3], KEYS[4]
local held = redis.pcall('GET', lock)
if type(held) == 'table' then return held end
local low, high = string.match(held or '', '^lh1:%x+:(%d+):(%d+):')
local token = tonumber(ARGV[1])
if not low or token < tonumber(low) or tonumber(high) < token then return 0 end
free(lock, queue, waiters)
return 1
