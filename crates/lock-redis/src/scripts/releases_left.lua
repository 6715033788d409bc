
for i = 1, count do
  local lock, queue, mine = KEYS[i + 2], queues[i], ARGV[i + 1]
  local is_mine = held[i] and find(held[i], mine, 1, true) == 1
  local ends = is_mine and (nobody_waits or redis.call('EXISTS', queue) == 0)
  answers[i] = ends and redis.call('DEL', lock) or guarded(give_up, lock, queue, mine, held[i], true)
end
return answers
