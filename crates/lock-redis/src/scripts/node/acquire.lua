local call, lock, node, tombstone = redis.call, KEYS[1], KEYS[2], KEYS[3]
local mine, ttl, width, note = ARGV[2], ARGV[3], ARGV[4], ARGV[7]
local known = call('HMGET', node, 'seal', 'fence', 'longest', 'incarnation')
if known[1] ~= ARGV[1] or not counts(known[4]) then return 'abstains' end
local lengthens = tonumber(ttl) > tonumber(known[3])
local time = call('TIME')
local now = time[1] * 1000000 + time[2]

-- Nobody holds or gave up: so most claims end.
if call('EXISTS', lock, tombstone) == 0 then
  -- A wish or a floor far ahead of the clock is no token of this deployment's and must not use up the numbers.
  local token, wish, floor = known[2] + width, tonumber(ARGV[5]), tonumber(ARGV[6])
  if wish > token then token = math.max(token, math.min(wish, now + 1000000)) end
  if floor + width > token then token = math.max(token, math.min(floor, now + 86400000000) + width) end
  if token > 9007199254740991 then return redis.error_reply('SPENT the fencing tokens are used up') end
  local high = token == wish and ARGV[5] or string.format('%.0f', token)
  local low = width == '1' and high or string.format('%.0f', token - width + 1)
  if lengthens then call('HSET', node, 'longest', ttl) end
  if known[4] ~= incarnation then call('HSET', node, 'incarnation', incarnation) end
  -- First, since nothing is rolled back: a token that nobody has does no harm.
  call('HSET', node, 'fence', high)
  call('SET', lock, mine .. low .. ':' .. high .. ':' .. note, 'PX', ttl)
  if token == wish then return now end
  return {token, now}
end

local held = redis.pcall('GET', lock)
if type(held) == 'table' then return held end
if not held then return redis.error_reply('GIVENUP this claim was given up') end
if string.sub(held, 1, #mine) == mine then
  call('PEXPIRE', lock, ttl)
  if lengthens then call('HSET', node, 'longest', ttl) end
  return {tonumber(string.match(held, '^%d+:(%d+):', #mine + 1)), now}
end
local inboxes, inbox = KEYS[4], ARGV[8]
if inbox ~= '' then
  -- It is a hint only: nothing depends on whether it can be kept.
  if not redis.pcall('LPOS', inboxes, inbox) then redis.pcall('RPUSH', inboxes, inbox) end
  call('PEXPIRE', inboxes, 10000)
end
return {string.sub(held, 1, 600), call('PTTL', lock)}
