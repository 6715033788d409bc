
-- While a server may have forgotten leases, it grants no free lock to a client that heeds this: a dwell. Others are given a key
-- that is never there.

-- A key that is shared like the counter.
local function shared_key(name) return string.sub(counter, 1, -8) .. name end

-- Makes a dwell last for the longest ttl of the client that claims: what it announced on connecting was lost if the data was lost
-- while its connection lived, and another client may have begun the dwell. Gives what is left.
local function covered(left)
  local longest, life = shared_key('max_ttl'), tonumber(lasts or 0)
  if life <= tonumber(redis.call('GET', longest) or 0) + 10000 then return left end
  redis.call('SET', longest, string.format('%.0f', life - 10000))
  if left == -1 or left >= life then return left end
  redis.call('SET', dwell, '', 'PX', string.format('%.0f', life))
  return life
end

-- The answer to a claim then, and otherwise nothing.
local function dwells()
  local left = redis.call('PTTL', dwell)
  if left ~= -2 then return {'dwells', covered(left)} end
end

-- The counter was missing, so the data was lost while connections lived: a dwell begins for everybody.
local function begin_dwell()
  local key, longest = shared_key('dwell'), shared_key('max_ttl')
  local stored = tonumber(redis.call('GET', longest) or 60000)
  local life = math.max(tonumber(lasts or 0), stored + 10000)
  if redis.call('PTTL', key) < life then redis.call('SET', key, '', 'PX', string.format('%.0f', life)) end
end

