-- Releases of different locks. If all are held and nobody waits, the usual case, they are ended here, and one number says so.
local count, answers = #ARGV, {}
local held, nobody_waits = redis.call('MGET', unpack(KEYS, 3, count + 2)), redis.call('EXISTS', unpack(KEYS, count + 3)) == 0

local function is_mine(i) return held[i] and string.find(held[i], ARGV[i], 1, true) == 1 end

local all_end = nobody_waits
for i = 1, count do all_end = all_end and is_mine(i) end
if all_end then
  redis.call('DEL', unpack(KEYS, 3, count + 2))
  return 1
end

