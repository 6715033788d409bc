-- A claim that shares its name. Nobody holds, waits, gave up or set a limit, or only readers hold and this is another one: so most claims
-- end, and nothing more is set up for them.
local lock, mine, terms, limit = KEYS[3], ARGV[4], ARGV[5], tonumber(ARGV[6])
local others = ARGV[3] .. lock .. '}:'
local queue, holders, leases, limits = others .. 'q', others .. 'h', others .. 's', others .. 'l'
lasts = ARGV[2]
local owner, drawn = string.sub(mine, 5, -2)
local there = redis.call('EXISTS', dwell, tombstones, lock, queue, holders, limits)
local joins = there == 2 and limit == 2147483647 and redis.call('EXISTS', dwell, tombstones, queue) == 0
if joins then
  local held = redis.pcall('GET', lock)
  joins = held == 'lh2:s:2147483647:' and not redis.call('HGET', leases, owner)
end
if (there == 0 or joins) and counting == 'stored' then
  local ttl, width, note = string.match(terms, '^(%d+) (%d+) %S* (.*)$')
  drawn = redis.call('INCRBY', counter, width)
  local low = drawn - width + 1
  -- Otherwise the counter was lost, or is used up: what follows sees to that.
  if low > 1 and low > tonumber(ARGV[1]) and drawn <= LAST_TOKEN then
    local time, slots = redis.call('TIME'), ''
    local now = time[1] * 1000 + math.floor(time[2] / 1000)
    local over = string.format('%.0f', now + ttl)
    if joins then
      local ended = redis.call('ZRANGE', holders, 0, string.format('%.0f', now), 'BYSCORE', 'LIMIT', 0, 32)
      if ended[1] then
        redis.call('ZREM', holders, unpack(ended))
        redis.call('HDEL', leases, unpack(ended))
      end
    end
    if limit == 2147483647 then
      redis.call('ZADD', holders, over, owner)
    else
      for slot = 0, width - 1 do
        redis.call('ZADD', holders, over, string.format('%s:%010d', owner, slot))
        slots = slot == 0 and '0' or slots .. ',' .. slot
      end
    end
    redis.call('HSET', leases, owner, string.format('%.0f:%.0f:%s:%s', low, drawn, slots, note))
    if there == 0 then
      redis.call('SET', lock, string.format('lh2:s:%.0f:', limit), 'PXAT', over)
    elseif redis.call('PTTL', lock) < tonumber(ttl) then
      redis.call('PEXPIREAT', lock, over)
    else
      over = nil
    end
    if over then
      redis.call('PEXPIREAT', holders, over)
      redis.call('PEXPIREAT', leases, over)
    end
    return {'granted', low, drawn, slots, 0}
  end
end

