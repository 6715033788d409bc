local node, seal, members, max_ttl, predecessor, predecessor_max_ttl = KEYS[1], unpack(ARGV)
local known = redis.call('HMGET', node, 'seal', 'pending', 'incarnation', 'members')
local remembers = counts(known[3]) and (of_this_run(known[1]) or of_this_run(known[2]))
-- What comes late finds its epoch here and changes nothing.
if not remembers or known[1] ~= seal and known[2] ~= seal then
  if not known[4] then
    -- It has no counter that could be out of date.
    redis.call('HDEL', node, 'marked_members', 'marked_max_ttl')
  elseif not remembers then
    redis.call('HSET', node, 'marked_members', members, 'marked_max_ttl', max_ttl)
  end
  redis.call('HDEL', node, 'seal')
  redis.call('HSET', node, 'pending', seal, 'incarnation', incarnation, 'since', string.format('%.0f', microseconds()),
    'members', members, 'max_ttl', max_ttl,
    'predecessor', predecessor, 'predecessor_max_ttl', predecessor_max_ttl)
end
