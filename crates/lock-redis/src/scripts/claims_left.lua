
local refused
if total > 0 then
  refused = type(drawn) == 'table' and drawn or guarded(function()
    local low, refusal = draw(total, floor, drawn)
    if not low then return refusal end
    grant_from(low)
  end)
end

-- The keys of waiters and numbers differ from that of the queue only in the last letter.
local function acquire_busy(i)
  local queue = KEYS[i + 2 * count + 2]
  local beside = string.sub(queue, 1, -2)
  local lock, tombstone, mine, terms = KEYS[i + 2], KEYS[i + count + 2], ARGV[2 * i + 1], ARGV[2 * i + 2]
  return acquire(lock, tombstone, queue, beside .. 'w', beside .. 'n', ARGV[1], mine, terms)
end

for i = 1, count do
  if not answers[i] then answers[i] = busy[i] and guarded(acquire_busy, i) or refused end
end
return answers
