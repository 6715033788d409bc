-- Nobody holds, waits or gave up: so most claims end, and nothing more is set up for them.
local lock, lead, mine, terms = KEYS[3], ARGV[3], ARGV[4], ARGV[5]
local queue = lead .. lock .. '}:q'
lasts = ARGV[2]
local nothing_there, drawn = redis.call('EXISTS', dwell, tombstones, lock, queue) == 0
if nothing_there and counting == 'stored' then
  local ttl, width, note = string.match(terms, '^(%d+) (%d+) %S* (.*)$')
  drawn = redis.call('INCRBY', counter, width)
  local low = drawn - width + 1
  -- Otherwise the counter was lost, or is used up: what follows sees to that.
  if low > 1 and low > tonumber(ARGV[1]) and drawn <= LAST_TOKEN then
    local last = string.format('%.0f:', drawn)
    local first = low == drawn and last or string.format('%.0f:', low)
    redis.call('SET', lock, mine .. first .. last .. note, 'PX', ttl)
    return low
  end
end

