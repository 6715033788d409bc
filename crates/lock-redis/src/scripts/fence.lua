local held = redis.pcall('GET', KEYS[1])
if type(held) ~= 'string' then return 0 end
if not is_shared(held) then return string.sub(held, 1, 600) end
return living(KEYS[2], ARGV[1], ARGV[2]) and 1 or 0
