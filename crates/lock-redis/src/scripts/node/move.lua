local node, seal, members, max_ttl, predecessor, predecessor_max_ttl = KEYS[1], unpack(ARGV)
local known = redis.call('HMGET', node, 'seal', 'pending', 'incarnation')
-- What comes late finds its epoch here and changes nothing.
if not counts(known[3]) or known[1] ~= seal and known[2] ~= seal then
  redis.call('HDEL', node, 'seal', 'marked_members', 'marked_max_ttl')
  redis.call('HSET', node, 'pending', seal, 'incarnation', incarnation, 'since', string.format('%.0f', microseconds()),
    'members', members, 'max_ttl', max_ttl,
    'predecessor', predecessor, 'predecessor_max_ttl', predecessor_max_ttl)
end
