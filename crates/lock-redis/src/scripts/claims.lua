-- Claims of different locks. Free locks without waiters and tombstones, the usual case, are granted here.
local KEYS, ARGV = KEYS, ARGV
local count, floor, busy, answers = #ARGV / 2 - 1, tonumber(ARGV[1]), {}, {}
lasts = ARGV[2]
local nothing_there = redis.call('EXISTS', unpack(KEYS, 2)) == 0
if not nothing_there then
  local grants_none = redis.call('EXISTS', dwell) == 1
  for i = 1, count do
    busy[i] = grants_none or redis.call('EXISTS', KEYS[i + 2], KEYS[i + count + 2], KEYS[i + 2 * count + 2]) ~= 0
  end
end

-- Most claims of a client have the same terms, which are then parsed once.
local terms, ttl, width, note
local function read_terms(text)
  terms = text
  ttl, width, note = string.match(text, '^(%d+) (%d+) %S* (.*)$')
  width = tonumber(width)
end

local total, all_set = 0, nothing_there
for i = 1, count do
  if not busy[i] then
    if ARGV[2 * i + 2] ~= terms then read_terms(ARGV[2 * i + 2]) end
    total = total + width
  end
end

-- `%d` is much faster than `%.0f`, and formatting is a good part of a claim's cost. Some servers cut it to 32 bits.
local decimal = string.format('%d', LAST_TOKEN) == '9007199254740991' and '%d:' or '%.0f:'

-- Grants the locks that are not busy, with tokens from `low` on.
local function grant_from(low)
  local call, format = redis.pcall, string.format
  for i = 1, count do
    if not busy[i] then
      if ARGV[2 * i + 2] ~= terms then read_terms(ARGV[2 * i + 2]) end
      local high = low + width - 1
      local last = format(decimal, high)
      local first = width == 1 and last or format(decimal, low)
      local set = call('SET', KEYS[i + 2], ARGV[2 * i + 1] .. first .. last .. note, 'PX', ttl)
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

