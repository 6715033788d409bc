-- How many places are looked at together, and at which lengths of the list.
local WINDOW, EVERY = 16, 4
-- A prime, so that a list that grows has all of its windows looked at, and not those at its ends only.
local STRIDE = 7919

-- Drops what is over in one window of the queue; which one goes by the length.
local function sweep_window(queue, waiters, length, now)
  local from, over = length / EVERY * STRIDE % math.ceil(length / WINDOW) * WINDOW, {}
  local owners = redis.call('LRANGE', queue, from, from + WINDOW - 1)
  for i, entry in ipairs(redis.call('HMGET', waiters, unpack(owners))) do
    local ends = entry and tonumber(string.match(entry, '^%d+') or 0)
    if ends and (ends <= now or ends > now + PLACE_MAX and is_over(read(entry), now)) then over[#over + 1] = owners[i] end
  end
  if over[1] then redis.call('HDEL', waiters, unpack(over)) end
end

-- How many owners a command is given at most.
local TOGETHER = 1000

-- Rewrites the list with the owners that have an entry. It runs when they are in the minority, so each one that left or
-- died costs a step of this.
local function compact(queue, waiters)
  local all, kept, seen = redis.call('LRANGE', queue, 0, -1), {}, {}
  for from = 1, #all, TOGETHER do
    local to = math.min(from + TOGETHER - 1, #all)
    for i, entry in ipairs(redis.call('HMGET', waiters, unpack(all, from, to))) do
      local owner = all[from + i - 1]
      if entry and not seen[owner] then
        seen[owner], kept[#kept + 1] = true, owner
      end
    end
  end
  redis.call('DEL', queue)
  for from = 1, #kept, TOGETHER do
    redis.call('RPUSH', queue, unpack(kept, from, math.min(from + TOGETHER - 1, #kept)))
  end
end

-- Forgets the dead, also while nobody's turn comes.
local function sweep(queue, waiters, length, now)
  if length % EVERY ~= 0 then return end
  sweep_window(queue, waiters, length, now)
  if length > 2 * redis.call('HLEN', waiters) + 8 then compact(queue, waiters) end
end
