-- Claims of one lock or of several. Those that find their lock free and were not given up, the usual case, are granted together.
local call, node, lead, count = redis.call, KEYS[1], ARGV[2], #KEYS - 1
local known = call('HMGET', node, 'seal', 'fence', 'longest', 'incarnation', 'barred')
if known[1] ~= ARGV[1] or not counts(known[4]) then return 'abstains' end
local time = call('TIME')
local now = time[1] * 1000000 + time[2]

local owners, wishes, terms = 2, 2 + count, 2 + 2 * count
local same_terms, tombstones, busy, answers = #ARGV == terms + 1, {}, {}, {}
for i = 1, count do tombstones[i] = lead .. KEYS[i + 1] .. '}:t:' .. string.sub(ARGV[owners + i], 5, -2) end
-- Owners whose leases were revoked while a claim of theirs was under way are known by their digests.
local barred = known[5] and tonumber(known[5]) > now
local function bar(i)
  return lead .. KEYS[i + 1] .. '}:r:' .. string.sub(redis.sha1hex(string.sub(ARGV[owners + i], 5, -2)), 1, 32)
end
if barred or call('EXISTS', unpack(KEYS, 2)) + call('EXISTS', unpack(tombstones)) > 0 then
  for i = 1, count do busy[i] = call('EXISTS', KEYS[i + 1], tombstones[i], barred and bar(i) or tombstones[i]) > 0 end
end

-- Gives ttl, width, floor, inbox and note of a claim.
local function terms_of(i)
  return string.match(ARGV[terms + (same_terms and 1 or i)], '^(%d+) (%d+) (%d+) (%S*) (.*)$')
end

local longest = tonumber(known[3])
local function lengthen(ttl)
  if tonumber(ttl) <= longest then return end
  call('HSET', node, 'longest', ttl)
  longest = tonumber(ttl)
end

-- A wish or a floor far ahead of the clock is no token of this deployment's and must not use up the numbers.
local fence = tonumber(known[2])
local function draw(width, wish, floor)
  local token = fence + width
  if wish > token then token = math.max(token, math.min(wish, now + 1000000)) end
  if floor + width > token then token = math.max(token, math.min(floor, now + 86400000000) + width) end
  if token > 9007199254740991 then return redis.error_reply('SPENT the fencing tokens are used up') end
  fence = token
end

local values, ttls, as_wished = {}, {}, true
for i = 1, count do
  if not busy[i] then
    local ttl, width, floor, _, note = terms_of(i)
    local wish = ARGV[wishes + i]
    answers[i] = draw(width, tonumber(wish), tonumber(floor))
    if answers[i] then
      as_wished = false
    else
      local is_wish = fence == tonumber(wish)
      local high = is_wish and wish or string.format('%.0f', fence)
      local low = width == '1' and high or string.format('%.0f', fence - width + 1)
      as_wished = as_wished and is_wish
      values[i], ttls[i] = ARGV[owners + i] .. low .. ':' .. high .. ':' .. note, ttl
      answers[i] = is_wish and now or {fence, now}
    end
  end
end

local function set_all()
  if not next(values) then return end
  for _, ttl in pairs(ttls) do lengthen(ttl) end
  if known[4] ~= incarnation then call('HSET', node, 'incarnation', incarnation) end
  -- First, since nothing is rolled back: a token that nobody has does no harm.
  call('HSET', node, 'fence', string.format('%.0f', fence))
  for i = 1, count do
    if values[i] then
      call('SET', KEYS[i + 1], values[i], 'PX', ttls[i])
      values[i] = nil
    end
  end
end

-- What a server does not write, because it is full for instance, does not concern the other claims.
local refused = guarded(set_all)
for i in pairs(values) do answers[i], as_wished = refused, false end

local function acquire_busy(i)
  local lock, mine = KEYS[i + 1], ARGV[owners + i]
  local ttl, _, _, inbox = terms_of(i)
  local held = redis.pcall('GET', lock)
  if type(held) == 'table' then return held end
  if not held then return redis.error_reply('GIVENUP this claim was given up') end
  if string.sub(held, 1, #mine) == mine then
    call('PEXPIRE', lock, ttl)
    lengthen(ttl)
    return {tonumber(string.match(held, '^%d+:(%d+):', #mine + 1)), now}
  end
  if inbox ~= '' then
    local inboxes = lead .. lock .. '}:i'
    -- It is a hint only: nothing depends on whether it can be kept.
    if not redis.pcall('LPOS', inboxes, inbox) then redis.pcall('RPUSH', inboxes, inbox) end
    call('PEXPIRE', inboxes, 10000)
  end
  return {string.sub(held, 1, 600), call('PTTL', lock)}
end

for i = 1, count do
  if busy[i] then answers[i], as_wished = guarded(acquire_busy, i), false end
end
if as_wished then return now end
return count == 1 and answers[1] or answers
