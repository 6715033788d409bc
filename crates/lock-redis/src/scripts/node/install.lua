local node, seal, counter, longest, members, max_ttl = KEYS[1], unpack(ARGV)

local function highest(field, ...)
  return string.format('%.0f', math.max(redis.call('HGET', node, field) or 0, ...))
end

if redis.call('HGET', node, 'pending') == seal then
  redis.call('HDEL', node, 'pending', 'since')
  redis.call('HSET', node, 'seal', seal, 'fence', highest('fence', counter, microseconds()),
    'longest', highest('longest', longest), 'members', members, 'max_ttl', max_ttl)
end
