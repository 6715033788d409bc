local node, seal, counter, longest, moves, members, max_ttl = KEYS[1], unpack(ARGV)
local known = redis.call('HMGET', node, 'pending', 'incarnation')

local function highest(field, ...)
  return string.format('%.0f', math.max(redis.call('HGET', node, field) or 0, ...))
end

if known[1] == seal and counts(known[2]) then
  -- A clock that is beyond all tokens is wrong, and would use them up.
  local height = microseconds()
  if height > 9007199254740991 then height = 0 end
  redis.call('HDEL', node, 'pending', 'since', 'marked_members', 'marked_max_ttl')
  redis.call('HSET', node, 'seal', seal, 'incarnation', incarnation, 'fence', highest('fence', counter, height),
    'longest', highest('longest', longest), 'members', members, 'max_ttl', max_ttl,
    'moves', highest('moves', moves), 'voted', 1)
end
