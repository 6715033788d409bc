-- Who revoked a lease that is lost: the value of that key, or nothing if it cannot be read here.
local function revoked_by(key)
  local by = redis.pcall('GET', key)
  return type(by) == 'string' and by
end

