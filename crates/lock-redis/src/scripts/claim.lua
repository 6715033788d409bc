-- Nobody holds, waits or gave up: so most claims end, and nothing more is set up for them.
local lock, mine, width, floor, note = KEYS[2], ARGV[1], tonumber(ARGV[3]), tonumber(ARGV[4]), ARGV[5]
local nothing_there, drawn = redis.call('EXISTS', lock, KEYS[3], KEYS[4]) == 0
if nothing_there and counting == 'stored' then
  drawn = redis.call('INCRBY', counter, width)
  local low = drawn - width + 1
  -- Otherwise the counter was lost, or is used up: what follows sees to that.
  if low > 1 and low > floor and drawn <= LAST_TOKEN then
    local last = string.format('%.0f:', drawn)
    local first = width == 1 and last or string.format('%.0f:', low)
    redis.call('SET', lock, mine .. first .. last .. note, 'PX', ARGV[2])
    return low
  end
end

