
-- Claims of different locks. Those that nobody holds, waits for or gave up are granted together, the others one by one.
local count, answers, seen = #ARGV / 6, {}, {}
for i = 1, count do
  local key, at = 5 * i - 3, 3 * i
  seen[at - 2], seen[at - 1], seen[at] = KEYS[key], KEYS[key + 1], KEYS[key + 2]
end
local nothing_there, free_ones, total, highest = redis.call('EXISTS', unpack(seen)) == 0, {}, 0, 0
for i = 1, count do
  local key, before = 5 * i - 3, 6 * i - 6
  if nothing_there or redis.call('EXISTS', KEYS[key], KEYS[key + 1], KEYS[key + 2]) == 0 then
    free_ones[#free_ones + 1] = i
    local floor = tonumber(ARGV[before + 4])
    if floor > highest then highest = floor end
    total = total + ARGV[before + 3]
  end
end

local function grant_together()
  local low = draw(total, highest)
  if not low then return redis.error_reply('SPENT the fencing tokens are used up') end
  for _, i in ipairs(free_ones) do
    local before = 6 * i - 6
    local high = low + ARGV[before + 3] - 1
    local last = string.format('%.0f:', high)
    local first = low == high and last or string.format('%.0f:', low)
    local value = ARGV[before + 1] .. first .. last .. ARGV[before + 5]
    local set = redis.pcall('SET', KEYS[5 * i - 3], value, 'PX', ARGV[before + 2])
    answers[i] = set.err and set or low
    low = high + 1
  end
end

local refused = free_ones[1] and guarded(grant_together)
for _, i in ipairs(free_ones) do answers[i] = answers[i] or refused end
for i = 1, count do answers[i] = answers[i] or guarded(acquire, 5 * i - 3, 6 * i - 6) end
return answers
