-- At a primary of a cluster: what a greeting finds is read here, as hash slots are verified long after it. Arguments: the run, the
-- longest ttl of this client, and how much longer a dwell lasts (ms).
local info = redis.call('INFO', 'replication')
local unpromoted = string.find(info, 'master_replid2:' .. string.rep('0', 40), 1, true)
local ARGV = {
  ARGV[1] .. ':' .. (string.match(info, 'master_replid:(%x+)') or ''), redis.call('GET', KEYS[2]) or '',
  unpromoted and 'unpromoted' or 'promoted', ARGV[2], ARGV[3]
}

