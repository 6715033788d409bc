local count, ttl, last, next_ttl = tonumber(ARGV[1]), nil, 0, ARGV[1] + 3

-- Each ttl comes once for all leases in a row that have it, with the number of the last one.
local function ttl_of(i)
  while i > last do ttl, last, next_ttl = ARGV[next_ttl], tonumber(ARGV[next_ttl + 1]), next_ttl + 2 end
  return ttl
end

-- Who revoked a lease that is lost; nothing if that cannot be read here.
local function revoked_by(lock, mine)
  local by = redis.pcall('GET', ARGV[2] .. lock .. '}:r:' .. string.match(mine, '(%d+):$'))
  return type(by) == 'string' and by
end
