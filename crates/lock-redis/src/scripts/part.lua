local lock, mine, tombstone_life = KEYS[3], ARGV[2], ARGV[4]
local queue = ARGV[1] .. lock .. '}:q'
local held = redis.pcall('GET', lock)
local is_mine = type(held) == 'string' and string.sub(held, 1, #mine) == mine
-- Nobody waits and nothing is to be remembered: so most releases end, and nothing more is set up for them.
if is_mine and not tombstone_life and redis.call('EXISTS', queue) == 0 then return redis.call('DEL', lock) end
-- A reader leaves others to read, or is the last one; or permits were all that were taken.
if not is_mine and not tombstone_life and type(held) == 'string' and string.sub(held, 1, 6) == 'lh2:s:'
  and redis.call('EXISTS', queue) == 0 then
  local beside, owner = string.sub(queue, 1, -2), string.sub(mine, 5, -2)
  local holders, leases = beside .. 'h', beside .. 's'
  if held ~= 'lh2:s:2147483647:' then
    local slots = string.match(redis.call('HGET', leases, owner) or '', '^%d+:%d+:([%d,]*):')
    local _, commas = string.gsub(slots or '', ',', ',')
    if slots and redis.call('ZCOUNT', holders, 0, '+inf') == commas + 1 then
      redis.call('UNLINK', lock, holders, leases)
      return 1
    end
  else
    local over, time = redis.call('ZSCORE', holders, owner), redis.call('TIME')
    local now = time[1] * 1000 + math.floor(time[2] / 1000)
    if over and tonumber(over) > now then
      redis.call('ZREM', holders, owner)
      local last = redis.call('ZRANGE', holders, -1, -1, 'WITHSCORES')[2]
      if not last or tonumber(last) <= now then return redis.call('UNLINK', lock, holders, leases) and 1 end
      redis.call('HDEL', leases, owner)
      if tonumber(last) < tonumber(over) then
        for _, key in ipairs({lock, holders, leases}) do redis.call('PEXPIREAT', key, last) end
      end
      return 1
    end
  end
end
