local now, told = microseconds(), {}
for i, key in ipairs(KEYS) do
  local epoch, anew = string.match(ARGV[i + 1], '^(%x+)(!?)$')
  local noted, at = string.match(redis.call('GET', key) or '', '^(%x+) (%d+)$')
  -- A time that is ahead of the clock: the clock was set back since, and the dwell would last until it has caught up.
  if epoch and (noted ~= epoch or anew == '!' or tonumber(at) > now) then
    noted, at = epoch, string.format('%.0f', now)
    -- A full server takes this, and then what follows.
    redis.call('DEL', key)
    redis.call('SET', key, noted .. ' ' .. at, 'PX', ARGV[1])
  end
  told[2 * i - 1] = noted or ''
  told[2 * i] = noted and math.max(now - at, 0) or 0
end
return told
