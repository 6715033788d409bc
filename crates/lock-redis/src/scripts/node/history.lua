-- What a seal or mark was written for, and whether it still counts: within one run only a promotion brings other data.
local run, info = string.match(ARGV[1], '^[^:]*:'), redis.call('INFO', 'replication')
-- A replica that takes writes would not refuse by itself.
if not string.find(info, 'role:master', 1, true) then return redis.error_reply('READONLY it is a replica') end
local _, at = string.find(info, 'master_replid:', 1, true)
local incarnation = run .. (at and string.sub(info, at + 1, at + 40) or '')
-- A promotion leaves the name before it as the second one. A first replica, such as a backup, names the history anew and leaves no second.
local unpromoted = string.find(info, 'master_replid2:' .. string.rep('0', 40), 1, true)

local function of_this_run(written)
  return written and string.sub(written, 1, #run) == run
end

local function counts(written)
  -- Nothing, or of another run: written by a version that does not say it.
  return unpromoted or written == incarnation or not of_this_run(written)
end

