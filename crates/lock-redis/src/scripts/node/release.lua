local lock, inboxes, tombstone = KEYS[1], KEYS[2], KEYS[3]
local mine, life = ARGV[1], ARGV[2]
local held, released = redis.pcall('GET', lock), 0
if type(held) == 'string' and string.sub(held, 1, #mine) == mine then
  released = redis.call('DEL', lock)
  local inbox = redis.pcall('LPOP', inboxes)
  while type(inbox) == 'string' do
    -- A server that will not say is taken to have somebody.
    local listeners = redis.pcall('PUBSUB', 'NUMSUB', inbox)
    if listeners.err or listeners[2] > 0 then
      redis.pcall('PUBLISH', inbox, 'freed ' .. lock)
      break
    end
    inbox = redis.pcall('LPOP', inboxes)
  end
end
-- A full server takes the first of them, and then what follows.
if tombstone and redis.call('PEXPIRE', tombstone, life) == 0 then redis.call('SET', tombstone, '', 'PX', life) end
return released
