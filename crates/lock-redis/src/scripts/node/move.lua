local node, seal, moves, members, max_ttl, predecessor, predecessor_max_ttl, seen, seen_max_ttl =
  KEYS[1], unpack(ARGV)
local known = redis.call('HMGET', node, 'seal', 'pending', 'incarnation', 'members', 'max_ttl', 'marked_members', 'marked_max_ttl',
  'moves')
local remembers = counts(known[3]) and (of_this_run(known[1]) or of_this_run(known[2]))
local own, own_max_ttl = known[4], known[5]
if not own and remembers then own, own_max_ttl = known[6], known[7] end
-- What comes late finds another deployment, a later move, or its epoch, and changes nothing.
local is_as_seen = (own or '') == seen and (own_max_ttl or '') == seen_max_ttl and tonumber(known[8] or 0) <= tonumber(moves)
if is_as_seen and (not remembers or known[1] ~= seal and known[2] ~= seal) then
  if not known[4] then
    -- It has no counter that could be out of date.
    redis.call('HDEL', node, 'marked_members', 'marked_max_ttl')
  elseif not remembers then
    redis.call('HSET', node, 'marked_members', members, 'marked_max_ttl', max_ttl)
  end
  redis.call('HDEL', node, 'seal', 'voted')
  redis.call('HSET', node, 'pending', seal, 'incarnation', incarnation, 'since', string.format('%.0f', microseconds()),
    'members', members, 'max_ttl', max_ttl, 'moves', moves,
    'predecessor', predecessor, 'predecessor_max_ttl', predecessor_max_ttl)
end
