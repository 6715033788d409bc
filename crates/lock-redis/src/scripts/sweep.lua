-- How many places are looked at together, and at which lengths of the list.
local WINDOW, EVERY = 16, 4
-- A prime, so that a list that grows has all of its windows looked at, and not those at its ends only.
local STRIDE = 7919

-- Removes places from the list, by their indexes. That searches it from the nearer end, once for all of them. Whoever lacks the right
-- leaves the list as long as it is.
local function cut(queue, places, is_nearer_the_head)
  for _, place in ipairs(places) do
    local set = redis.pcall('LSET', queue, place, '-')
    if set.err then return end
  end
  redis.pcall('LREM', queue, is_nearer_the_head and #places or -#places, '-')
end

-- Forgets the dead in one window of the queue, also while nobody's turn comes; which one goes by the length. Where most owners in the
-- list have no entry, those in the window are removed from it: more than come meanwhile.
local function sweep(queue, waiters, length, now)
  if length % EVERY ~= 0 then return end
  local from, over, seen, gone = length / EVERY * STRIDE % math.ceil(length / WINDOW) * WINDOW, {}, {}, {}
  local owners = redis.call('LRANGE', queue, from, from + WINDOW - 1)
  for i, entry in ipairs(redis.call('HMGET', waiters, unpack(owners))) do
    local owner, ends = owners[i], entry and tonumber(string.match(entry, '^%d+') or 0)
    local is_dead = ends and (ends <= now or ends > now + PLACE_MAX and is_over(read(entry), now))
    if is_dead then over[#over + 1] = owner end
    if is_dead or not entry or seen[owner] then gone[#gone + 1] = from + i - 1 end
    seen[owner] = true
  end
  if over[1] then redis.call('HDEL', waiters, unpack(over)) end
  if gone[1] and length > 2 * redis.call('HLEN', waiters) + 8 then cut(queue, gone, 2 * from < length) end
end
