-- Tells the first of those that want to know that a lock is free.
local function tell_one(inboxes, lock)
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

