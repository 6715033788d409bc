local node, run, epoch = KEYS[1], ARGV[1], ARGV[2]

local function of_this_run(field)
  local value = redis.call('HGET', node, field)
  return value and string.sub(value, 1, #run) == run
end

if not of_this_run('seal') and not of_this_run('pending') then
  redis.call('HDEL', node, 'seal')
  redis.call('HSET', node, 'pending', run .. epoch, 'since', string.format('%.0f', microseconds()))
end
