local call, node = redis.call, KEYS[1]
local known = call('HMGET', node, 'seal', 'fence', 'longest', 'incarnation')
if known[1] ~= ARGV[1] or not counts(known[4]) then return 'abstains' end
local fence, longest = known[2], known[3]
local held, told = call('MGET', unpack(KEYS, 2)), {}
for i, value in ipairs(held) do
  local mine, low, high, ttl = unpack(ARGV, 4 * i - 2, 4 * i + 1)
  if tonumber(high) > tonumber(fence) then fence = high end
  if tonumber(ttl) > tonumber(longest) then longest = ttl end
  told[i] = 0
  local first = value and string.match(value, '^lh1:%x+:(%d+):')
  if first and string.sub(value, 1, #mine) ~= mine then
    if tonumber(first) > tonumber(high) then told[i] = tonumber(first) end
  elseif first then
    local lock = KEYS[i + 1]
    local stored, note = string.match(value, '^%d+:(%d+):()', #mine + 1)
    if tonumber(stored) > tonumber(high) then
      told[i] = tonumber(stored)
    elseif call('PEXPIRE', lock, ttl) == 1 then
      told[i] = 1
      -- A full server takes these after the expiry.
      if stored ~= high then call('SET', lock, mine .. low .. ':' .. high .. ':' .. string.sub(value, note), 'PX', ttl) end
    end
  end
end
if fence ~= known[2] then call('HSET', node, 'fence', fence) end
if longest ~= known[3] then call('HSET', node, 'longest', longest) end
return told
