local function microseconds()
  local time = redis.call('TIME')
  return time[1] * 1000000 + time[2]
end

local function milliseconds() return math.floor(microseconds() / 1000) end

