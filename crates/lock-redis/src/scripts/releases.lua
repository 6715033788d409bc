-- Releases of different locks. If all are held and nobody waits, the usual case, they are ended here, and one number says so.
local KEYS, ARGV = KEYS, ARGV
local count, lead, queues, answers = #KEYS - 2, ARGV[1], {}, {}
local held, find = redis.call('MGET', unpack(KEYS, 3)), string.find

local all_end = true
for i = 1, count do
  queues[i] = lead .. KEYS[i + 2] .. '}:q'
  all_end = all_end and held[i] and find(held[i], ARGV[i + 1], 1, true) == 1
end
local nobody_waits = redis.call('EXISTS', unpack(queues)) == 0
if all_end and nobody_waits then
  redis.call('DEL', unpack(KEYS, 3))
  return 1
end

