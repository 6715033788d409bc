local node, epoch, members, max_ttl = KEYS[1], unpack(ARGV, 2)
local known = redis.call('HMGET', node, 'seal', 'pending', 'incarnation')

if not counts(known[3]) or not of_this_run(known[1]) and not of_this_run(known[2]) then
  redis.call('HDEL', node, 'seal')
  redis.call('HSET', node, 'pending', run .. epoch, 'incarnation', incarnation,
    'since', string.format('%.0f', microseconds()), 'marked_members', members, 'marked_max_ttl', max_ttl)
end
