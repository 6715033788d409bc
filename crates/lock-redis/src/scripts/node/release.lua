-- Releases of one lock or of several. If all are held and nobody wants to be told, the usual case, they end together.
local count, lead, inboxes, answers = #KEYS, ARGV[1], {}, {}
local held, all_end = redis.call('MGET', unpack(KEYS)), true
local function is_mine(i) return held[i] and string.sub(held[i], 1, #ARGV[i + 1]) == ARGV[i + 1] end
for i = 1, count do
  inboxes[i] = lead .. KEYS[i] .. '}:i'
  all_end = all_end and is_mine(i)
end
all_end = all_end and redis.call('EXISTS', unpack(inboxes)) == 0

if all_end then
  redis.call('DEL', unpack(KEYS))
else
  for i = 1, count do
    answers[i] = is_mine(i) and redis.call('DEL', KEYS[i]) or 0
    if answers[i] == 1 then tell_one(inboxes[i], KEYS[i]) end
  end
end
local life = ARGV[count + 2]
if life then
  local tombstone = lead .. KEYS[1] .. '}:t:' .. string.sub(ARGV[2], 5, -2)
  -- A full server takes the first of them, and then what follows.
  if redis.call('PEXPIRE', tombstone, life) == 0 then redis.call('SET', tombstone, '', 'PX', life) end
end
if all_end then return 1 end
return count == 1 and answers[1] or answers
