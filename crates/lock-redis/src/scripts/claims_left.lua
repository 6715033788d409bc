
local refused
if total > 0 then
  refused = type(drawn) == 'table' and drawn or guarded(function()
    local low, refusal = draw(total, floor, drawn)
    if not low then return refusal end
    grant_from(low)
  end)
end

local function acquire_busy(i)
  local lock, tombstone, queue = KEYS[i + 2], KEYS[i + count + 2], KEYS[i + 2 * count + 2]
  return acquire(lock, tombstone, queue, ARGV[1], ARGV[2 * i + 1], ARGV[2 * i + 2])
end

for i = 1, count do
  if not answers[i] then answers[i] = busy[i] and guarded(acquire_busy, i) or refused end
end
return answers
