-- Releases of different locks. Holds without waiters, the usual case, are ended here.
local count, over, answers = #ARGV, {}, {}
local held, nobody_waits = redis.call('MGET', unpack(KEYS, 3, count + 2)), redis.call('EXISTS', unpack(KEYS, count + 3)) == 0
local is_mine = {}
for i, mine in ipairs(ARGV) do
  is_mine[i] = held[i] and string.find(held[i], mine, 1, true) == 1
  if is_mine[i] and (nobody_waits or redis.call('EXISTS', KEYS[i + count + 2]) == 0) then
    over[#over + 1], answers[i] = KEYS[i + 2], 1
  end
end
if over[1] then redis.call('DEL', unpack(over)) end
if #over == count then return answers end

