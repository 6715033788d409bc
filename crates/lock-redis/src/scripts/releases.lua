
-- Releases of different locks. Those that nobody waits for are deleted together, the others end one by one.
local locks, queues, answers = {}, {}, {}
for i = 1, #ARGV do locks[i], queues[i] = KEYS[3 * i - 1], KEYS[3 * i] end
local held, nobody_waits = redis.call('MGET', unpack(locks)), redis.call('EXISTS', unpack(queues)) == 0
local is_mine, over = {}, {}
for i, mine in ipairs(ARGV) do
  is_mine[i] = held[i] and string.sub(held[i], 1, #mine) == mine
  if is_mine[i] and (nobody_waits or redis.call('EXISTS', queues[i]) == 0) then
    over[#over + 1], answers[i] = locks[i], 1
  end
end
if over[1] then redis.call('DEL', unpack(over)) end
for i, mine in ipairs(ARGV) do
  answers[i] = answers[i] or guarded(give_up, locks[i], queues[i], KEYS[3 * i + 1], mine, is_mine[i])
end
return answers
