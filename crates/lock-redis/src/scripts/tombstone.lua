
-- A tombstone refuses the claims of an owner that arrive later. While there is any, `tombstones` is there, so that most claims need not
-- look for theirs.
local GIVEN_UP = redis.error_reply('GIVENUP this claim was given up')

local function was_given_up(queue, owner) return redis.call('EXISTS', beside(queue, 't:' .. owner)) == 1 end

local function refuse_later(queue, owner, life)
  redis.call('SET', beside(queue, 't:' .. owner), '', 'PX', life)
  if redis.call('PTTL', tombstones) < tonumber(life) then redis.call('SET', tombstones, '', 'PX', life) end
end
