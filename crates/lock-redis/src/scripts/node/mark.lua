local node, run, epoch, members, max_ttl = KEYS[1], unpack(ARGV)

local function of_this_run(field)
  local value = redis.call('HGET', node, field)
  return value and string.sub(value, 1, #run) == run
end

if not of_this_run('seal') and not of_this_run('pending') then
  redis.call('HDEL', node, 'seal')
  redis.call('HSET', node, 'pending', run .. epoch, 'since', string.format('%.0f', microseconds()),
    'marked_members', members, 'marked_max_ttl', max_ttl)
end
