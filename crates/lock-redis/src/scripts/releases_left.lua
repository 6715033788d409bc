
for i, mine in ipairs(ARGV) do
  local lock, queue = KEYS[i + 2], KEYS[i + count + 2]
  local ends = is_mine(i) and (nobody_waits or redis.call('EXISTS', queue) == 0)
  answers[i] = ends and redis.call('DEL', lock) or guarded(give_up, lock, queue, mine, held[i], true)
end
return answers
