
-- A tombstone refuses the claims of an owner that arrive later. While there is any, a key that is shared like the counter says so, so that
-- most claims need not look for theirs.
local GIVEN_UP = redis.error_reply('GIVENUP this claim was given up')

local function was_given_up(queue, owner) return redis.call('EXISTS', beside(queue, 't:' .. owner)) == 1 end

local function refuse_later(queue, owner, life)
  redis.call('SET', beside(queue, 't:' .. owner), '', 'PX', life)
  local any = shared_key('tombstones')
  if redis.call('PTTL', any) < tonumber(life) then redis.call('SET', any, '', 'PX', life) end
end
