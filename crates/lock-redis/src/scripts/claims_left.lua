
local refused
if total > 0 then
  refused = type(drawn) == 'table' and drawn or guarded(function()
    local low, refusal = draw(total, floor, drawn)
    if not low then return refusal end
    grant_from(low)
  end)
end

local function acquire_busy(i)
  read_terms(i)
  return acquire(KEYS[i + 2], queues[i], ARGV[1], ARGV[i + 3], terms)
end

for i = 1, count do
  if not answers[i] then answers[i] = busy[i] and guarded(acquire_busy, i) or refused end
end
return answers
