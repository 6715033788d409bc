
for i, mine in ipairs(ARGV) do
  if not answers[i] then
    -- The key of the waiters differs from that of the queue only in the last letter.
    local queue = KEYS[i + count + 2]
    answers[i] = guarded(give_up, KEYS[i + 2], queue, string.sub(queue, 1, -2) .. 'w', mine, held[i], true)
  end
end
return answers
