-- How the value of a name begins that several hold; their limit follows.
local SHARED = 'lh2:s:'
-- The limit of readers. A semaphore's is the number of its permits, and that of an exclusive hold 0.
local READERS = 2147483647

local function is_shared(held) return held and string.sub(held, 1, #SHARED) == SHARED end

-- Two limits are of one kind if they give the same number.
local function kind_of(limit) return limit == READERS and 0 or limit end

-- The members of a lease among the holders: its owner, or one for each of its slots.
local function members_of(owner, slots)
  local members = {}
  for slot in string.gmatch(slots, '%d+') do members[#members + 1] = string.format('%s:%010d', owner, slot) end
  if not members[1] then members[1] = owner end
  return members
end

-- Members with one end, as `ZADD` takes them.
local function scored(over, members)
  local pairs = {}
  for i, member in ipairs(members) do pairs[2 * i - 1], pairs[2 * i] = string.format('%.0f', over), member end
  return unpack(pairs)
end

