-- Claims of different locks. Free locks without waiters and tombstones, the usual case, are granted here.
local KEYS, ARGV = KEYS, ARGV
local count, floor, lead, busy, answers, queues = #KEYS - 2, tonumber(ARGV[1]), ARGV[3], {}, {}, {}
lasts = ARGV[2]
for i = 1, count do queues[i] = lead .. KEYS[i + 2] .. '}:q' end
local nothing_there = redis.call('EXISTS', tombstones, unpack(KEYS, 2)) + redis.call('EXISTS', unpack(queues)) == 0
if not nothing_there then
  local grants_none = redis.call('EXISTS', dwell) == 1
  for i = 1, count do
    local tombstone = lead .. KEYS[i + 2] .. '}:t:' .. string.sub(ARGV[i + 3], 5, -2)
    busy[i] = grants_none or redis.call('EXISTS', KEYS[i + 2], queues[i], tombstone) ~= 0
  end
end

-- Most claims of a client have the same terms, which are then sent and parsed once.
local same_terms, terms, ttl, width, note = #ARGV == count + 4
local function read_terms(i)
  local text = ARGV[count + (same_terms and 4 or i + 3)]
  if text == terms then return end
  terms, ttl, width, note = text, string.match(text, '^(%d+) (%d+) %S* (.*)$')
  width = tonumber(width)
end
read_terms(1)

local total, all_set = 0, nothing_there
for i = 1, count do
  if not busy[i] then
    if not same_terms then read_terms(i) end
    total = total + width
  end
end

-- A number in two parts, of which the first is formatted for ten numbers at a time: formatting is a good part of a claim's cost.
local DIGITS, tens, written_tens = {[0] = '0', '1', '2', '3', '4', '5', '6', '7', '8', '9'}
local function decimal(number)
  local last = number % 10
  if tens ~= number - last then
    tens = number - last
    written_tens = tens > 0 and string.format('%.0f', tens / 10) or ''
  end
  return written_tens, DIGITS[last]
end

-- Grants the locks that are not busy, with tokens from `low` on.
local function grant_from(low)
  local call = redis.pcall
  for i = 1, count do
    if not busy[i] then
      if not same_terms then read_terms(i) end
      local high = low + width - 1
      local first, first_digit = decimal(low)
      local last, last_digit = decimal(high)
      local value = ARGV[i + 3] .. first .. first_digit .. ':' .. last .. last_digit .. ':' .. note
      local set = call('SET', KEYS[i + 2], value, 'PX', ttl)
      if set.err then answers[i], all_set = set, false else answers[i] = low end
      low = high + 1
    end
  end
end

local drawn
if total > 0 and counting == 'stored' then
  drawn = redis.pcall('INCRBY', counter, total)
  -- Otherwise the counter was lost or is used up, which `draw` handles below.
  if type(drawn) == 'number' and drawn > total and drawn - total >= floor and drawn <= LAST_TOKEN then
    grant_from(drawn - total + 1)
    -- Where each has one token, the first number says them all.
    if all_set and total == count then return answers[1] end
    if nothing_there then return answers end
    total = 0
  end
end

