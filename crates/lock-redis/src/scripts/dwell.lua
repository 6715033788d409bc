
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

-- This run and history of the server, or nothing if this user may not ask for it.
local function incarnation()
  local server, replication = redis.pcall('INFO', 'server'), redis.pcall('INFO', 'replication')
  if type(server) ~= 'string' or type(replication) ~= 'string' then return end
  local run, history = string.match(server, 'run_id:(%x+)'), string.match(replication, 'master_replid:(%x+)')
  return run and run .. ':' .. (history or '')
end

-- The counter was missing, so the data was lost while connections lived: a dwell begins for everybody. It covers all that was lost until
-- now, which the marker says: otherwise the next connection would begin another one. A release names no ttl, and 60 s stand for it.
local function begin_dwell()
  local key, longest = shared_key('dwell'), shared_key('max_ttl')
  local stored, now = tonumber(redis.call('GET', longest) or 0), incarnation()
  local ttl = math.max(tonumber(lasts or 70000) - 10000, stored)
  if stored < ttl then redis.call('SET', longest, string.format('%.0f', ttl)) end
  if redis.call('PTTL', key) < ttl + 10000 then redis.call('SET', key, '', 'PX', string.format('%.0f', ttl + 10000)) end
  if now then redis.call('SET', shared_key('incarnation'), now) end
end

