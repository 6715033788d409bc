
-- What is set up only for a name that several hold or wait for.
function sharing()
  -- How many members of ended leases are dropped together. One lease has at most 64, and so is never cut.
  local SWEPT = 64
  local OTHER_MODE = {err = 'OTHERMODE this owner holds the lock in another mode'}

  local function limit_of(held) return is_shared(held) and tonumber(string.match(held, '%d+', #SHARED)) or 0 end

  -- Who holds a name, for one visit. `fresh` says that its holders are only those of this visit.
  local function visited(lock, queue, held)
    local beside = string.sub(queue, 1, -2)
    local name = {
      lock = lock, queue = queue, waiters = beside .. 'w', holders = beside .. 'h', leases = beside .. 's',
      limits = beside .. 'l',
      now = milliseconds(), held = held, limit = limit_of(held), used = held and 1 or 0
    }
    if name.limit > 0 then
      name.used = redis.call('ZCOUNT', name.holders, '(' .. string.format('%.0f', name.now), '+inf')
    end
    return name
  end

  -- The limit in force by a record, and whether a claim is served that knows this one. Nothing if none was set.
  local function in_force(record, known)
    if not record then return end
    local is_known = string.find(' ' .. record .. ' ', string.format(' %.0f ', known), 1, true) ~= nil
    return tonumber(string.match(record, '^%d+')), is_known
  end

  -- Those that hold permits go on under another limit.
  local function set_limit(name, limit)
    if kind_of(name.limit) == 0 or name.limit == limit then return end
    name.limit = limit
    redis.call('SET', name.lock, string.format('%s%.0f:', SHARED, limit), 'KEEPTTL')
  end

  -- What a claim that knows this limit is served under, and false if it is not served, because another one was set.
  local function under(name, known)
    local record = kind_of(known) ~= 0 and redis.call('GET', name.limits)
    local limit, is_known = in_force(record, known)
    if not limit then return known, true end
    -- A client of an earlier version, which does not know the record, may have been the first to hold.
    set_limit(name, limit)
    return limit, is_known
  end

  local function fits(name, limit, width)
    return name.used == 0 or limit > 0 and limit == name.limit and name.used + width <= limit
  end

  -- The lease of an owner among those that share the name. It may have ended.
  local function lease_of(name, owner)
    local stored = name.limit > 0 and redis.call('HGET', name.leases, owner)
    if not stored then return end
    local low, high, slots = string.match(stored, '^(%d+):(%d+):([%d,]*):')
    local lease = {owner = owner, low = low, high = high, slots = slots, members = members_of(owner, slots)}
    lease.over = tonumber(redis.call('ZSCORE', name.holders, lease.members[1]) or 0)
    lease.lives = lease.over > name.now
    return lease
  end

  -- Marks the slots of members as free.
  local function free_slots(name, members)
    local free = {}
    for _, member in ipairs(members) do
      if #member > 32 then
        free[#free + 1] = -1
        free[#free + 1] = string.sub(member, 33)
      end
    end
    if free[1] then redis.call('ZADD', name.holders, unpack(free)) end
  end

  -- Drops members of leases that have ended, and those leases: enough for as many more slots.
  local function sweep_ended(name, more)
    local most = SWEPT + more
    local ended = redis.call('ZRANGE', name.holders, 0, string.format('%.0f', name.now), 'BYSCORE', 'LIMIT', 0, most)
    if #ended == most then
      local cut = string.sub(ended[most], 1, 32)
      while ended[1] and string.sub(ended[#ended], 1, 32) == cut do ended[#ended] = nil end
    end
    if not ended[1] then return false end
    local owners = {}
    for i, member in ipairs(ended) do owners[i] = string.sub(member, 1, 32) end
    redis.call('ZREM', name.holders, unpack(ended))
    redis.call('HDEL', name.leases, unpack(owners))
    free_slots(name, ended)
    return true
  end

  -- The lowest slots that are free. Each slot that was ever given is a member: of its lease, or as free.
  local function take_slots(name, count)
    local slots, free, given, swept = {}, {}, name.used
    repeat
      if not name.fresh then
        swept = sweep_ended(name, count)
        free = redis.call('ZRANGE', name.holders, '-inf', '(0', 'BYSCORE', 'LIMIT', 0, count)
        given = redis.call('ZCARD', name.holders)
      end
      for i = 1, count do slots[i] = free[i] and tonumber(string.sub(free[i], 2)) or given + i - #free - 1 end
      -- After the limit was lowered, the slots below it may be those of leases that have ended and were not dropped yet.
    until slots[count] < name.limit or not swept
    if free[1] then redis.call('ZREM', name.holders, unpack(free)) end
    return table.concat(slots, ',')
  end

  -- Notes that a lease with this end began or ended in this visit.
  local function touched(name, over)
    name.last, name.changed = math.max(name.last or 0, over), true
  end

  -- Stores a lease among those that share the name, with these slots.
  local function store(name, owner, slots, low, high, note, life)
    local over, members = name.now + life, members_of(owner, slots)
    redis.call('ZADD', name.holders, scored(over, members))
    redis.call('HSET', name.leases, owner, string.format('%.0f:%.0f:%s:%s', low, high, slots, note))
    name.used = name.used + #members
    touched(name, over)
  end

  -- Stores a grant for which there is room, and gives its slots.
  local function put(name, limit, owner, width, low, high, note, life)
    if name.used == 0 and not name.fresh and (limit > 0 or name.limit > 0) then
      redis.call('UNLINK', name.holders, name.leases)
      name.fresh, name.last = true, 0
    end
    name.limit, name.changed = limit, true
    if limit == 0 then
      name.used, name.held = 1, string.format('lh1:%s:%.0f:%.0f:%s', owner, low, high, note)
      redis.call('SET', name.lock, name.held, 'PX', life)
      return ''
    end
    local slots = ''
    if limit ~= READERS then slots = take_slots(name, width) elseif not name.fresh then sweep_ended(name, 0) end
    store(name, owner, slots, low, high, note, life)
    return slots
  end

  -- Ends a lease that shares the name.
  local function end_lease(name, lease)
    if lease.lives then name.used = name.used - #lease.members end
    touched(name, lease.over)
    -- Of the last one, everything is dropped together.
    if name.used == 0 then return end
    redis.call('ZREM', name.holders, unpack(lease.members))
    redis.call('HDEL', name.leases, lease.owner)
    free_slots(name, lease.members)
  end

  -- Ends a visit that changed who holds: the lock's key lasts as long as the last lease.
  local function settle(name)
    if not name.changed then return end
    if name.used == 0 then
      if name.limit == 0 then redis.call('DEL', name.lock) else redis.call('UNLINK', name.lock, name.holders, name.leases) end
      return
    end
    if name.limit == 0 then return end
    local last = name.fresh and string.format('%.0f', name.last)
    last = last or redis.call('ZRANGE', name.holders, -1, -1, 'WITHSCORES')[2]
    if name.fresh then
      redis.call('SET', name.lock, string.format('%s%.0f:', SHARED, name.limit), 'PXAT', last)
    elseif name.last >= tonumber(last) then
      redis.call('PEXPIREAT', name.lock, last)
    else
      return
    end
    redis.call('PEXPIREAT', name.holders, last)
    redis.call('PEXPIREAT', name.leases, last)
  end

  -- What is shown to a claim for which there is no room: the last holder that is not `me`, as the value of an exclusive lock,
  -- and how long it takes at least until there is room for this limit and width.
  local function shown(name, limit, width, me)
    if name.limit == 0 then return string.sub(name.held, 1, 600), redis.call('PTTL', name.lock) end
    local last = redis.call('ZRANGE', name.holders, -1, -1, 'WITHSCORES')
    if string.sub(last[1], 1, 32) == me then last = redis.call('ZRANGE', name.holders, -2, -2, 'WITHSCORES') end
    local owner, left = string.sub(last[1], 1, 32), last[2] - name.now
    local low, high, note = string.match(redis.call('HGET', name.leases, owner) or '', '^(%d+):(%d+):[%d,]*:(.*)$')
    local seen = low and table.concat({'lh1', owner, low, high, note}, ':') or 'lh2:'
    if limit == name.limit then
      local now, missing = string.format('%.0f', name.now), name.used + width - limit
      local ends = missing > 0 and redis.call(
        'ZRANGE', name.holders, '(' .. now, '+inf', 'BYSCORE', 'LIMIT', missing - 1, 1, 'WITHSCORES')
      left = ends and ends[2] - name.now or -2
    end
    return string.sub(seen, 1, 600), left
  end

  -- The first waiter that lives, or `me` if that comes first, and its entry, with the limit in force. One that was to have more permits
  -- than there are now loses its place, and asks again.
  local function next_waiter(name, me)
    local function can_be_served(waiter)
      if is_over(waiter, name.now) or not listens(waiter.inbox) then return false end
      waiter.x = limit_of_waiter(name.queue, waiter)
      local is_too_wide = kind_of(waiter.x) ~= 0 and waiter.width > waiter.x
      if is_too_wide and waiter.inbox ~= '-' then redis.pcall('PUBLISH', waiter.inbox, 'recheck ' .. name.lock) end
      return not is_too_wide
    end
    return first(name.queue, name.waiters, me, can_be_served)
  end

  -- What a name is used as: by those that hold it if they are ours, or else by the first that waits and is not `me`.
  local function used_as(name, me)
    stopped = false
    if name.used > 0 and (name.limit > 0 or string.sub(name.held, 1, 4) == 'lh1:') then return name.limit end
    local head, waiter = next_waiter(name, me)
    return head and head ~= me and (waiter.x or 0)
  end

  -- How many waiters are served in one visit.
  local SERVED_MAX = 32
  -- Among how many of the latest waiters one is sought that lives.
  local LATEST = 16

  -- Grants a waiter what it asked for, for the length of a place. Gives what it is to be told.
  local function serve(name, owner, waiter)
    drop(name.queue, name.waiters, {owner}, 1)
    local low, high = draw(waiter.width, waiter.floor)
    if not low then return end
    local limit, place = waiter.x or 0, place_of(waiter.ttl)
    local slots = put(name, limit, owner, waiter.width, low, high, stamped(waiter.note, name.now), place)
    local told = {'granted', owner, string.format('%.0f:%.0f', low, high), waiter.ttl, place}
    if limit > 0 then
      told[1], told[6], told[7] = 'shared', string.format('%.0f', limit), slots == '' and '-' or slots
    end
    return {inbox = waiter.inbox, told = told}
  end

  -- Tells waiters what they were granted; those that share also whether others wait.
  local function tell(name, notices)
    local wanted = notices[1] and redis.call('EXISTS', name.waiters)
    for _, notice in ipairs(notices) do
      local told = notice.told
      if told[6] then told[8] = wanted end
      told[#told + 1] = name.lock
      if notice.inbox ~= '-' then redis.pcall('PUBLISH', notice.inbox, table.concat(told, ' ')) end
    end
  end

  -- Where one of the latest waiters is told, who come last in the list.
  local function latest_inbox(name)
    local owners = redis.call('LRANGE', name.queue, -LATEST, -1)
    local entries = owners[1] and redis.call('HMGET', name.waiters, unpack(owners)) or {}
    for i = #owners, 1, -1 do
      local waiter = entries[i] and read(entries[i])
      if waiter and waiter.inbox ~= '-' and not is_over(waiter, name.now) and listens(waiter.inbox) then return waiter.inbox end
    end
  end

  -- Serves the first waiters that live while there is room for them, unless `me` comes first. Gives the owner that is first
  -- then, and its entry; nothing if nobody waits, or an exclusive hold was handed over. During a dwell, nobody is served unless
  -- nobody else can hold the name.
  local function hand_over(name, me, is_alone)
    local notices, head, waiter, asks = {}
    local serves_none = not is_alone and dwells()
    repeat
      head, waiter = next_waiter(name, me)
      if not head or head == me or serves_none or not fits(name, waiter.x or 0, waiter.width) then break end
      if #notices == SERVED_MAX then
        asks = waiter.inbox
        break
      end
      notices[#notices + 1], head = serve(name, head, waiter), nil
    until name.used > 0 and name.limit == 0 or not notices[1]
    tell(name, notices)
    -- Whoever asks next goes on behind the dead.
    if stopped then asks = latest_inbox(name) end
    if asks and asks ~= '-' then redis.pcall('PUBLISH', asks, 'recheck ' .. name.lock) end
    return head, head and waiter
  end

  -- The answer to a claim whose owner has its lease already: it gets all of its time again.
  local function again(name, lease, limit, width, ttl)
    if limit ~= name.limit or limit ~= READERS and width ~= #lease.members then return OTHER_MODE end
    -- A full server takes this, and then what follows.
    leave(name.queue, name.waiters, lease.owner)
    redis.call('ZADD', name.holders, 'XX', 'GT', scored(name.now + ttl, lease.members))
    touched(name, name.now + ttl)
    hand_over(name)
    settle(name)
    return {'granted', tonumber(lease.low), tonumber(lease.high), lease.slots, redis.call('EXISTS', name.waiters), limit}
  end

  -- Ends the hold of an exclusive lock, which may be handed over.
  local function free(lock, queue)
    local name = visited(lock, queue)
    name.changed = true
    hand_over(name, nil, true)
    settle(name)
  end

  -- Ends a hold or a place at a name that is shared. Gives 1 for a hold, 2 for a place, 0 for neither.
  local function give_up(lock, queue, held, owner)
    local name = visited(lock, queue, held)
    local lease = lease_of(name, owner)
    if lease then
      next_waiter(name)
      if stopped then return PASSING end
      end_lease(name, lease)
    end
    local ended = lease and lease.lives
    local left = not ended and leave(queue, name.waiters, owner)
    hand_over(name)
    settle(name)
    return ended and 1 or left and 2 or 0
  end

  return {
    OTHER_MODE = OTHER_MODE, visited = visited, in_force = in_force, set_limit = set_limit, under = under, fits = fits,
    lease_of = lease_of, free_slots = free_slots, store = store,
    touched = touched, put = put, end_lease = end_lease, settle = settle, again = again, shown = shown,
    next_waiter = next_waiter, used_as = used_as, hand_over = hand_over, free = free, give_up = give_up
  }
end
