-- What leasehold keeps in PostgreSQL, layout 1: the tables, the functions that clients call, and `fence` for transactions of users.
--
-- Moments are microseconds since 1970 by the server's clock. Every function that changes a lock locks the lock's row first, so under that
-- lock each statement sees all earlier changes, except renewals: these write nothing but the end of a hold. (Where REPEATABLE READ or
-- SERIALIZABLE is the default, the lock fails with 40001 if the row has changed, and the client calls the function again.)
CREATE SCHEMA leasehold;

-- The layout, and the oldest client that can use it.
CREATE TABLE leasehold.layout (version int NOT NULL, oldest int NOT NULL, swept text COLLATE "C" NOT NULL DEFAULT '');
INSERT INTO leasehold.layout VALUES (1, 1);

-- A row outlives its holders, so tokens and versions never fall. It is deleted when the lock was unused for a day.
CREATE TABLE leasehold.lock (
  name text COLLATE "C" PRIMARY KEY,
  version bigint NOT NULL,               -- rises with all changes except arrivals and renewals
  tail bigint NOT NULL DEFAULT 0,        -- the highest number of a place
  last_token bigint NOT NULL DEFAULT 0,
  permits int NOT NULL DEFAULT 0,        -- those of all holds
  slots int NOT NULL DEFAULT 0,          -- slots from here on were never taken
  record text, record_until bigint       -- the limit that was set
) WITH (fillfactor = 50);

-- A lease. `owner` is a secret: it renews and releases.
CREATE TABLE leasehold.hold (
  name text COLLATE "C", owner uuid, kind text NOT NULL, count int NOT NULL, lim int NOT NULL,
  low bigint NOT NULL, high bigint NOT NULL, slots int[] NOT NULL, granted bigint, until bigint NOT NULL, note text NOT NULL,
  kept boolean NOT NULL,                 -- its owner has released it, and nobody may use its tokens
  PRIMARY KEY (name, owner)
);
CREATE INDEX hold_until ON leasehold.hold (name, until);

-- A place in the queue. Its waiter listens to `channel`, and knows itself by `tag`.
CREATE TABLE leasehold.place (
  name text COLLATE "C", number bigint, owner uuid NOT NULL, kind text NOT NULL, count int NOT NULL, lim int NOT NULL,
  width int NOT NULL, ttl bigint NOT NULL, until bigint NOT NULL, note text NOT NULL, channel text NOT NULL, tag bigint NOT NULL,
  joined bigint,                         -- when the waiter came, for display
  PRIMARY KEY (name, number), UNIQUE (name, owner)
);

-- The slots below `lock.slots` that nobody has.
CREATE TABLE leasehold.free_slot (name text COLLATE "C", slot int, PRIMARY KEY (name, slot));
-- Owners whose late claims are refused.
CREATE TABLE leasehold.tombstone (name text COLLATE "C", owner uuid, until bigint NOT NULL, PRIMARY KEY (name, owner));
CREATE INDEX tombstone_until ON leasehold.tombstone (name, until);
-- Who ended a lease, by its highest token.
CREATE TABLE leasehold.revocation (name text COLLATE "C", token bigint, by text NOT NULL, until bigint NOT NULL, PRIMARY KEY (name, token));
-- The highest token of a lease that a transaction was fenced with. A lease is known by its lowest token.
CREATE TABLE leasehold.turn (name text COLLATE "C", low bigint, token bigint NOT NULL, PRIMARY KEY (name, low));

CREATE TABLE leasehold.latch (
  name text COLLATE "C" PRIMARY KEY, version bigint NOT NULL, until bigint NOT NULL,
  generation bigint NOT NULL, expected bigint, arrived bigint NOT NULL, completed bigint
);
CREATE INDEX latch_until ON leasehold.latch (until);
CREATE TABLE leasehold.arrival (
  name text COLLATE "C" REFERENCES leasehold.latch ON DELETE CASCADE, generation bigint, id text, call bigint NOT NULL,
  PRIMARY KEY (name, generation, id)
);

CREATE FUNCTION leasehold.clock() RETURNS bigint LANGUAGE sql VOLATILE
AS $$ SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint $$;

-- The rules refuse tokens above this one.
CREATE FUNCTION leasehold.last_token() RETURNS bigint LANGUAGE sql IMMUTABLE AS $$ SELECT 9007199254740991 $$;

-- Waits for locks of rows at most this many milliseconds, and commits without waiting for the disk. Returns how it would have committed.
CREATE FUNCTION leasehold.begin(within text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE before text := current_setting('synchronous_commit');
BEGIN
  PERFORM set_config('lock_timeout', within, true), set_config('synchronous_commit', 'off', true);
  RETURN before;
END $$;

-- The commit waits for the disk, whatever the default is; and for replicas, if the default is that.
CREATE FUNCTION leasehold.durably(before text) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  PERFORM set_config('synchronous_commit', CASE WHEN before = 'remote_apply' THEN before ELSE 'on' END, true);
END $$;

-- Notifies a waiter. Without a hold, it should ask.
CREATE FUNCTION leasehold.notify(channel text, tag bigint, h leasehold.hold, wanted boolean, t bigint) RETURNS void LANGUAGE plpgsql AS $$
DECLARE told jsonb := jsonb_build_object('tag', tag);
BEGIN
  IF channel = '' THEN RETURN; END IF;
  IF h.owner IS NOT NULL AND cardinality(h.slots) < 500 THEN
    told := told || jsonb_build_object('grant',
      jsonb_build_object('low', h.low, 'high', h.high, 'slots', h.slots, 'lim', h.lim, 'lasts', h.until - t, 'wanted', wanted));
  END IF;
  PERFORM pg_notify(channel, told::text);
END $$;

-- Makes the row of a lock, and deletes those of a few others that were unused for a day.
CREATE FUNCTION leasehold.make_1(a jsonb) RETURNS jsonb LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  t bigint := leasehold.clock(); old bigint := t - 86400000000; x text; last text;
BEGIN
  PERFORM leasehold.begin(a->>'within');
  INSERT INTO leasehold.lock (name, version) VALUES (a->>'name', t) ON CONFLICT DO NOTHING;
  SELECT swept INTO last FROM leasehold.layout FOR UPDATE SKIP LOCKED;
  IF NOT FOUND THEN RETURN 'true'; END IF;
  FOR x IN SELECT name FROM leasehold.lock WHERE name > last ORDER BY name LIMIT 8 LOOP
    last := x;
    PERFORM FROM leasehold.lock WHERE name = x AND version < old AND coalesce(record_until, 0) < old FOR UPDATE SKIP LOCKED;
    CONTINUE WHEN NOT FOUND;
    CONTINUE WHEN EXISTS (SELECT FROM leasehold.hold WHERE name = x AND until >= old)
      OR EXISTS (SELECT FROM leasehold.place WHERE name = x AND until >= old)
      OR EXISTS (SELECT FROM leasehold.tombstone WHERE name = x AND until >= old)
      OR EXISTS (SELECT FROM leasehold.revocation WHERE name = x AND until >= old);
    -- A transaction that is fenced keeps its lock, however old the lease is.
    CONTINUE WHEN (SELECT count(*) FROM leasehold.hold WHERE name = x) <>
      (SELECT count(*) FROM (SELECT FROM leasehold.hold WHERE name = x FOR UPDATE SKIP LOCKED) unlocked);
    DELETE FROM leasehold.hold WHERE name = x;
    DELETE FROM leasehold.place WHERE name = x;
    DELETE FROM leasehold.tombstone WHERE name = x;
    DELETE FROM leasehold.revocation WHERE name = x;
    DELETE FROM leasehold.free_slot WHERE name = x;
    DELETE FROM leasehold.turn WHERE name = x;
    DELETE FROM leasehold.lock WHERE name = x;
  END LOOP;
  UPDATE leasehold.layout SET swept = CASE WHEN EXISTS (SELECT FROM leasehold.lock WHERE name > last) THEN last ELSE '' END;
  RETURN 'true';
END $$;

-- What a request needs of a lock, as it was at one moment, and the clock after that; NULL if the lock has no row.
CREATE FUNCTION leasehold.load_1(a jsonb) RETURNS jsonb LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  l leasehold.lock; t bigint; owners uuid[];
BEGIN
  SELECT * INTO l FROM leasehold.lock WHERE name = a->>'name';
  IF NOT FOUND THEN RETURN NULL; END IF;
  t := leasehold.clock();
  SELECT coalesce(array_agg(o::uuid), '{}') INTO owners FROM jsonb_array_elements_text(a->'owners') o;
  RETURN jsonb_build_object(
    'now', t, 'version', l.version, 'tail', l.tail, 'last_token', greatest(l.last_token, t), 'permits', l.permits,
    'record', CASE WHEN l.record_until > t THEN l.record END,
    'expired', (SELECT coalesce(jsonb_agg(h), '[]') FROM
      (SELECT * FROM leasehold.hold WHERE name = l.name AND until <= t ORDER BY until LIMIT (a->>'expired')::int) h),
    'last', (SELECT coalesce(jsonb_agg(h), '[]') FROM
      (SELECT * FROM leasehold.hold WHERE name = l.name AND until > t ORDER BY until DESC, owner DESC LIMIT 2) h),
    'holds', (SELECT coalesce(jsonb_agg(h), '[]') FROM leasehold.hold h WHERE h.name = l.name AND h.owner = ANY(owners)),
    'queued', (SELECT coalesce(jsonb_agg(p), '[]') FROM leasehold.place p WHERE p.name = l.name AND p.owner = ANY(owners)),
    'given_up', (SELECT coalesce(jsonb_agg(owner), '[]') FROM leasehold.tombstone WHERE name = l.name AND owner = ANY(owners) AND until > t),
    'places', (SELECT coalesce(jsonb_agg(p), '[]') FROM
      (SELECT * FROM leasehold.place WHERE name = l.name AND until > t ORDER BY number LIMIT (a->>'places')::int) p),
    'numbers', (SELECT coalesce(jsonb_agg(number), '[]') FROM
      (SELECT number FROM leasehold.place WHERE name = l.name AND until > t ORDER BY number LIMIT (a->>'numbers')::int) p)
  ) || CASE WHEN (a->>'ends')::int = 0 THEN '{}' ELSE jsonb_build_object(
    'ends', (SELECT coalesce(jsonb_agg(jsonb_build_array(until, count)), '[]') FROM
      (SELECT until, count FROM leasehold.hold WHERE name = l.name AND until > t ORDER BY until LIMIT (a->>'ends')::int) h))
  END || CASE WHEN (a->>'slots')::int = 0 THEN '{}' ELSE jsonb_build_object(
    'free_slots', (SELECT coalesce(jsonb_agg(slot), '[]') FROM (SELECT slot FROM
      (SELECT slot FROM leasehold.free_slot WHERE name = l.name ORDER BY slot LIMIT (a->>'slots')::int) f
      UNION ALL SELECT generate_series(l.slots, l.slots + (a->>'slots')::int - 1)
      ORDER BY slot LIMIT (a->>'slots')::int) s))
  END || CASE WHEN a->'token' = 'null' THEN '{}' ELSE jsonb_build_object(
    'with_token', (SELECT to_jsonb(h) FROM leasehold.hold h
      WHERE h.name = l.name AND (a->>'token')::bigint BETWEEN h.low AND h.high AND until > t LIMIT 1),
    'revoked_by', (SELECT by FROM leasehold.revocation WHERE name = l.name AND token = (a->>'token')::bigint AND until > t))
  END || CASE WHEN a->'above' = 'null' THEN '{}' ELSE jsonb_build_object(
    'above', (SELECT coalesce(jsonb_agg(p ORDER BY p.number), '[]') FROM leasehold.place p
      WHERE p.name = l.name AND p.until > t AND p.count > (a->>'above')::int))
  END;
END $$;

-- The same of many locks.
CREATE FUNCTION leasehold.load_all_1(a jsonb) RETURNS jsonb LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
  SELECT coalesce(jsonb_agg(leasehold.load_1(x) ORDER BY i), '[]') FROM jsonb_array_elements(a) WITH ORDINALITY o (x, i) $$;

-- Ends a hold, whose slots are free then. No transaction is fenced by it any more.
CREATE FUNCTION leasehold.end_hold(lock text, holder uuid) RETURNS void LANGUAGE plpgsql AS $$
DECLARE ended leasehold.hold;
BEGIN
  DELETE FROM leasehold.hold WHERE name = lock AND owner = holder RETURNING * INTO ended;
  INSERT INTO leasehold.free_slot SELECT lock, unnest(ended.slots);
  DELETE FROM leasehold.turn WHERE name = lock AND low = ended.low;
END $$;

-- Stores a hold, and returns the first slot that was never taken.
CREATE FUNCTION leasehold.store_hold(h leasehold.hold, slots int) RETURNS int LANGUAGE plpgsql AS $$
DECLARE above int := (SELECT max(s) + 1 FROM unnest(h.slots) s);
BEGIN
  INSERT INTO leasehold.hold SELECT h.* ON CONFLICT (name, owner) DO UPDATE SET
    (kind, count, lim, low, high, slots, granted, until, note, kept) =
    (excluded.kind, excluded.count, excluded.lim, excluded.low, excluded.high, excluded.slots, excluded.granted, excluded.until, excluded.note,
      excluded.kept);
  IF above > slots THEN
    INSERT INTO leasehold.free_slot SELECT h.name, generate_series(slots, above - 1);
    slots := above;
  END IF;
  IF above > 0 THEN DELETE FROM leasehold.free_slot f WHERE f.name = h.name AND f.slot = ANY(h.slots); END IF;
  RETURN slots;
END $$;

-- Writes what a request has decided, unless something that the decision depends on has changed: then "conflict". The owners of leases that
-- it would end, and that transactions are fenced by, if there are any: then nothing is written either.
CREATE FUNCTION leasehold.commit_1(a jsonb) RETURNS jsonb LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  before text := leasehold.begin(a->>'within'); l leasehold.lock; h leasehold.hold; p leasehold.place; x record; w jsonb; t bigint; me uuid;
  fenced uuid[] := '{}'; changes boolean := a->'permits' <> 'null';
BEGIN
  IF a->'version' <> 'null' THEN
    SELECT * INTO l FROM leasehold.lock WHERE name = a->>'name' FOR NO KEY UPDATE;
    IF l.version IS DISTINCT FROM (a->>'version')::bigint OR l.tail <> coalesce((a->>'tail')::bigint, l.tail) THEN RETURN '"conflict"'; END IF;
  END IF;
  FOR x IN SELECT * FROM jsonb_to_recordset(a->'leases') AS r (owner uuid, high bigint, until bigint, ends boolean) ORDER BY r.owner LOOP
    SELECT * INTO h FROM leasehold.hold WHERE name = a->>'name' AND owner = x.owner FOR NO KEY UPDATE;
    IF NOT FOUND OR h.high <> x.high OR h.until <> x.until THEN RETURN '"conflict"'; END IF;
    -- This transaction has the row, so only a fence can be in the way of the stronger lock.
    IF x.ends THEN
      PERFORM FROM leasehold.hold WHERE name = a->>'name' AND owner = x.owner FOR UPDATE SKIP LOCKED;
      IF NOT FOUND THEN fenced := fenced || x.owner; END IF;
    END IF;
  END LOOP;
  IF cardinality(fenced) > 0 THEN RETURN to_jsonb(fenced); END IF;
  t := leasehold.clock();
  IF t >= (a->>'before')::bigint THEN RETURN '"conflict"'; END IF;
  FOR w IN SELECT jsonb_array_elements(a->'writes') || jsonb_build_object('name', a->'name') LOOP
    me := w->>'owner';
    CASE w->>'op'
    WHEN 'hold' THEN l.slots := leasehold.store_hold(jsonb_populate_record(NULL::leasehold.hold, w), l.slots);
    WHEN 'extend' THEN UPDATE leasehold.hold SET until = (w->>'until')::bigint WHERE name = a->>'name' AND owner = me;
    WHEN 'end' THEN PERFORM leasehold.end_hold(a->>'name', me);
    WHEN 'place' THEN
      p := jsonb_populate_record(NULL::leasehold.place, w);
      DELETE FROM leasehold.place WHERE name = p.name AND owner = p.owner;
      INSERT INTO leasehold.place SELECT p.*;
      l.tail := greatest(l.tail, p.number);
    WHEN 'leave' THEN DELETE FROM leasehold.place WHERE name = a->>'name' AND owner = me;
    WHEN 'tombstone' THEN
      DELETE FROM leasehold.tombstone WHERE name = a->>'name' AND until <= t;
      INSERT INTO leasehold.tombstone AS o VALUES (a->>'name', me, (w->>'until')::bigint)
        ON CONFLICT (name, owner) DO UPDATE SET until = greatest(o.until, excluded.until);
    WHEN 'limit' THEN
      l.record := w->>'record';
      l.record_until := (w->>'until')::bigint;
      -- In the order of renewals.
      PERFORM FROM leasehold.hold WHERE name = a->>'name' AND kind = 'permits' ORDER BY owner FOR NO KEY UPDATE;
      UPDATE leasehold.hold SET lim = (w->>'lim')::int WHERE name = a->>'name' AND kind = 'permits';
      UPDATE leasehold.place SET lim = (w->>'lim')::int WHERE name = a->>'name' AND kind = 'permits';
    WHEN 'revocation' THEN
      DELETE FROM leasehold.revocation WHERE name = a->>'name' AND until <= t;
      INSERT INTO leasehold.revocation VALUES (a->>'name', (w->>'token')::bigint, w->>'by', (w->>'until')::bigint)
        ON CONFLICT (name, token) DO UPDATE SET by = excluded.by, until = excluded.until;
    WHEN 'last-token' THEN l.last_token := (w->>'token')::bigint;
    END CASE;
  END LOOP;
  IF changes THEN
    -- Places whose waiters are gone, as far as they are in the way of others.
    DELETE FROM leasehold.place o USING
      (SELECT number, until FROM leasehold.place WHERE name = l.name ORDER BY number LIMIT 8) first
      WHERE o.name = l.name AND o.number = first.number AND first.until <= t;
    -- A crash may have lost a version that somebody has seen, so the next one is above the clock.
    l.version := greatest(l.version + 1, t);
    l.permits := (a->>'permits')::int;
  END IF;
  IF l.name IS NOT NULL THEN
    UPDATE leasehold.lock SET (version, tail, last_token, permits, slots, record, record_until) =
      (l.version, l.tail, l.last_token, l.permits, l.slots, l.record, l.record_until) WHERE name = l.name;
  END IF;
  FOR x IN SELECT * FROM jsonb_to_recordset(a->'notices') AS n (channel text, tag bigint, owner uuid, wanted boolean) LOOP
    SELECT * INTO h FROM leasehold.hold WHERE name = a->>'name' AND owner = x.owner;
    PERFORM leasehold.notify(x.channel, x.tag, h, x.wanted, t);
  END LOOP;
  IF (a->>'durable')::boolean THEN PERFORM leasehold.durably(before); END IF;
  RETURN '"written"';
END $$;

-- A claim for a free lock, or behind an exclusive holder, as the rules would answer it; NULL for any other one, whose window is loaded then.
CREATE FUNCTION leasehold.claim_1(a jsonb) RETURNS jsonb LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  before text := leasehold.begin(a->>'within'); l leasehold.lock; h leasehold.hold; t bigint; me uuid := a->>'owner'; mine leasehold.place;
  token bigint; ahead int;
BEGIN
  SELECT * INTO l FROM leasehold.lock WHERE name = a->>'name' FOR NO KEY UPDATE;
  IF NOT FOUND THEN
    PERFORM leasehold.make_1(a);
    SELECT * INTO l FROM leasehold.lock WHERE name = a->>'name' FOR NO KEY UPDATE;
  END IF;
  IF a->>'kind' = 'permits' OR EXISTS (SELECT FROM leasehold.tombstone o WHERE o.name = l.name AND o.owner = me) THEN RETURN NULL; END IF;
  SELECT * INTO h FROM leasehold.hold o WHERE o.name = l.name LIMIT 1;
  t := leasehold.clock();
  IF h.owner IS NULL THEN
    IF a->>'kind' <> 'exclusive' OR EXISTS (SELECT FROM leasehold.place o WHERE o.name = l.name) THEN RETURN NULL; END IF;
    token := greatest(l.last_token, t, (a->>'floor')::bigint) + 1;
    IF token + (a->>'width')::int > leasehold.last_token() THEN RETURN NULL; END IF;
    INSERT INTO leasehold.hold VALUES
      (l.name, me, 'exclusive', 0, 0, token, token + (a->>'width')::int - 1, '{}', t, t + (a->>'ttl')::bigint, a->>'note', false);
    UPDATE leasehold.lock o SET version = greatest(o.version + 1, t), last_token = token + (a->>'width')::int - 1 WHERE o.name = l.name;
    PERFORM leasehold.durably(before);
    RETURN jsonb_build_object('granted', token);
  END IF;
  IF h.kind <> 'exclusive' OR h.owner = me OR h.until <= t THEN RETURN NULL; END IF;
  SELECT * INTO mine FROM leasehold.place o WHERE o.name = l.name AND o.owner = me;
  IF mine.until <= t OR (mine.owner IS NOT NULL AND NOT (a->>'queue')::boolean) THEN RETURN NULL; END IF;
  IF mine.owner IS NOT NULL THEN
    -- Somebody may have read that this place was about to end.
    UPDATE leasehold.place o SET (kind, width, ttl, until, note, channel, tag) =
      (a->>'kind', (a->>'width')::int, (a->>'ttl')::bigint, t + (a->>'place')::bigint, a->>'note', a->>'channel', (a->>'tag')::bigint)
      WHERE o.name = l.name AND o.owner = me;
    UPDATE leasehold.lock o SET version = greatest(o.version + 1, t) WHERE o.name = l.name;
  ELSIF (a->>'queue')::boolean THEN
    mine.number := l.tail + 1;
    INSERT INTO leasehold.place VALUES (l.name, mine.number, me, a->>'kind', 0, 0, (a->>'width')::int, (a->>'ttl')::bigint,
      t + (a->>'place')::bigint, a->>'note', a->>'channel', (a->>'tag')::bigint, t);
    UPDATE leasehold.lock o SET tail = mine.number WHERE o.name = l.name;
  END IF;
  SELECT count(*) INTO ahead FROM
    (SELECT FROM leasehold.place o WHERE o.name = l.name AND o.number < mine.number AND o.until > t LIMIT (a->>'counted')::int) o;
  IF ahead = (a->>'counted')::int THEN
    ahead := greatest(ahead, mine.number - (SELECT min(number) FROM leasehold.place o WHERE o.name = l.name AND o.until > t));
  END IF;
  RETURN jsonb_build_object('low', h.low, 'high', h.high, 'note', h.note, 'remaining', h.until - t, 'drawn', greatest(l.last_token, t),
    'position', ahead + 1);
END $$;

-- Releases an exclusive lease and hands the lock to the first waiter, or removes a waiter behind such a lease. NULL if the rules have to decide.
CREATE FUNCTION leasehold.release_1(a jsonb) RETURNS jsonb LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  before text := leasehold.begin(a->>'within'); l leasehold.lock; h leasehold.hold; mine leasehold.place; p leasehold.place; t bigint;
  wanted boolean;
BEGIN
  SELECT * INTO l FROM leasehold.lock WHERE name = a->>'name' FOR NO KEY UPDATE;
  SELECT * INTO h FROM leasehold.hold o WHERE o.name = l.name AND o.owner = (a->>'owner')::uuid FOR UPDATE SKIP LOCKED;
  t := leasehold.clock();
  SELECT * INTO mine FROM leasehold.place o WHERE o.name = l.name AND o.owner = (a->>'owner')::uuid AND o.until > t;
  IF mine.owner IS NOT NULL THEN
    -- A kept hold has another owner's number, and may be this one's: the rules decide.
    IF NOT EXISTS (SELECT FROM leasehold.hold o
      WHERE o.name = l.name AND o.owner <> mine.owner AND o.kind = 'exclusive' AND o.until > t AND NOT o.kept) THEN RETURN NULL; END IF;
    DELETE FROM leasehold.place o WHERE o.name = l.name AND o.number = mine.number;
    UPDATE leasehold.lock o SET version = greatest(o.version + 1, t) WHERE o.name = l.name;
    RETURN '"left"';
  END IF;
  IF h.kind IS DISTINCT FROM 'exclusive' OR h.until <= t THEN RETURN NULL; END IF;
  SELECT * INTO p FROM leasehold.place o WHERE o.name = l.name AND o.until > t ORDER BY o.number LIMIT 1;
  IF p.kind <> 'exclusive' OR greatest(l.last_token, t) + p.width > leasehold.last_token() THEN RETURN NULL; END IF;
  DELETE FROM leasehold.turn o WHERE o.name = l.name AND o.low = h.low;
  IF p.owner IS NULL THEN
    DELETE FROM leasehold.hold o WHERE o.name = l.name AND o.owner = h.owner;
    UPDATE leasehold.lock o SET version = greatest(o.version + 1, t) WHERE o.name = l.name;
    RETURN '"released"';
  END IF;
  -- Expired places before it are deleted as well.
  DELETE FROM leasehold.place o WHERE o.name = l.name AND o.number <= p.number;
  h := ROW(l.name, p.owner, 'exclusive', 0, 0, greatest(l.last_token, t) + 1, greatest(l.last_token, t) + p.width, '{}'::int[], t,
    t + least(p.ttl, (a->>'place_max')::bigint), p.note, false);
  UPDATE leasehold.hold o SET (owner, low, high, granted, until, note, kept) = (h.owner, h.low, h.high, h.granted, h.until, h.note, false)
    WHERE o.name = l.name AND o.owner = (a->>'owner')::uuid;
  UPDATE leasehold.lock o SET version = greatest(o.version + 1, t), last_token = h.high WHERE o.name = l.name;
  wanted := EXISTS (SELECT FROM leasehold.place o WHERE o.name = l.name AND o.until > t);
  PERFORM leasehold.notify(p.channel, p.tag, h, wanted, t), leasehold.durably(before);
  RETURN '"released"';
END $$;

-- Renews leases, in the order of their names so that two clients never wait for each other. Each answer: how long the lease lasts, and
-- whether others wait; or who revoked it.
CREATE FUNCTION leasehold.renew_1(a jsonb) RETURNS jsonb LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE before text := leasehold.begin(a->>'within'); answers jsonb; t bigint;
BEGIN
  PERFORM FROM leasehold.hold h JOIN jsonb_to_recordset(a->'leases') AS r (name text, owner uuid) USING (name, owner)
    ORDER BY h.name, h.owner FOR NO KEY UPDATE OF h;
  t := leasehold.clock();
  WITH wanted AS (SELECT r.* FROM ROWS FROM
      (jsonb_to_recordset(a->'leases') AS (name text, owner uuid, low bigint, high bigint, ttl bigint)) WITH ORDINALITY
      AS r (name, owner, low, high, ttl, i)),
  renewed AS (UPDATE leasehold.hold h SET until = t + r.ttl FROM wanted r
    WHERE h.name = r.name AND h.owner = r.owner AND h.low = r.low AND h.high = r.high AND h.until > t RETURNING r.i, h.kind)
  SELECT jsonb_agg(CASE WHEN d.i IS NULL
      THEN jsonb_build_object('revoked_by', (SELECT by FROM leasehold.revocation v WHERE v.name = r.name AND v.token = r.high AND v.until > t))
      ELSE jsonb_build_object('wanted', d.kind <> 'exclusive' AND EXISTS
        (SELECT FROM leasehold.place p WHERE p.name = r.name AND p.until > t)) END ORDER BY r.i)
    INTO answers FROM wanted r LEFT JOIN renewed d USING (i);
  PERFORM leasehold.durably(before);
  RETURN answers;
END $$;

-- The expired leases among these that transactions are fenced by. Only a fence lets the first lock of a row pass and stops the second one.
CREATE FUNCTION leasehold.fenced(expired leasehold.hold[]) RETURNS SETOF leasehold.hold LANGUAGE plpgsql AS $$
DECLARE h leasehold.hold;
BEGIN
  PERFORM leasehold.begin('100');
  FOREACH h IN ARRAY expired LOOP
    PERFORM FROM leasehold.hold WHERE name = h.name AND owner = h.owner AND until = h.until FOR NO KEY UPDATE;
    CONTINUE WHEN NOT FOUND;
    PERFORM FROM leasehold.hold WHERE name = h.name AND owner = h.owner FOR UPDATE SKIP LOCKED;
    IF NOT FOUND THEN RETURN NEXT h; END IF;
  END LOOP;
-- Somebody is at work on one of them for long, such as a commit that waits for a standby.
EXCEPTION WHEN lock_not_available THEN RETURN;
END $$;

-- What operators see of a lock: its owners stay secret. A lease that has expired, but that a transaction is fenced by, holds it still.
CREATE FUNCTION leasehold.shown(lock text, t bigint, fenced uuid[]) RETURNS jsonb LANGUAGE sql STABLE AS $$
  SELECT jsonb_build_object('name', lock, 'now', t,
    'holds', (SELECT coalesce(jsonb_agg(to_jsonb(h) || jsonb_build_object('owner', repeat('0', 32))), '[]') FROM
      (SELECT * FROM leasehold.hold WHERE name = lock AND (until > t OR owner = ANY(fenced)) ORDER BY until DESC, owner DESC LIMIT 100) h),
    'leases', (SELECT count(*) FROM leasehold.hold WHERE name = lock AND (until > t OR owner = ANY(fenced))),
    'queue', (SELECT coalesce(jsonb_agg(p), '[]') FROM
      (SELECT kind, count, lim, note, joined FROM leasehold.place WHERE name = lock AND until > t ORDER BY number LIMIT 100) p),
    'waiters', (SELECT count(*) FROM leasehold.place WHERE name = lock AND until > t)) $$;

CREATE FUNCTION leasehold.show_1(a jsonb) RETURNS jsonb LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE t bigint := leasehold.clock(); expired leasehold.hold[]; fenced uuid[];
BEGIN
  SELECT coalesce(array_agg(h), '{}') INTO expired FROM (SELECT * FROM leasehold.hold
    WHERE name = a->>'name' AND until <= t AND until > t - 86400000000 ORDER BY until DESC LIMIT 100) h;
  SELECT array_agg(owner) INTO fenced FROM leasehold.fenced(expired);
  RETURN leasehold.shown(a->>'name', t, fenced);
END $$;

-- Of all expired leases behind a name, it looks at the latest hundred.
CREATE FUNCTION leasehold.list_1(a jsonb) RETURNS jsonb LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE t bigint := leasehold.clock(); expired leasehold.hold[]; fenced uuid[];
BEGIN
  SELECT coalesce(array_agg(h), '{}') INTO expired FROM (SELECT * FROM leasehold.hold
    WHERE name > a->>'after' AND starts_with(name, a->>'prefix') AND until <= t AND until > t - 86400000000 ORDER BY until DESC LIMIT 100) h;
  SELECT array_agg(owner) INTO fenced FROM leasehold.fenced(expired);
  RETURN (SELECT coalesce(jsonb_agg(leasehold.shown(n.name, t, fenced) ORDER BY n.name), '[]') FROM
    (SELECT DISTINCT name FROM leasehold.hold WHERE name > a->>'after' AND starts_with(name, a->>'prefix')
      AND (until > t OR owner = ANY(fenced)) ORDER BY name LIMIT (a->>'most')::int) n);
END $$;

-- A latch as it was at one moment, and the clock after that.
CREATE FUNCTION leasehold.load_latch_1(a jsonb) RETURNS jsonb LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE l leasehold.latch; t bigint;
BEGIN
  SELECT * INTO l FROM leasehold.latch WHERE name = a->>'name';
  t := leasehold.clock();
  RETURN jsonb_build_object('now', t, 'latch', CASE WHEN l.name IS NOT NULL THEN to_jsonb(l) END,
    'has_arrived', EXISTS (SELECT FROM leasehold.arrival x WHERE x.name = l.name AND x.generation = l.generation AND x.id = a->>'id'),
    'arrived_before', (SELECT call FROM leasehold.arrival x WHERE x.name = l.name AND x.generation < l.generation AND x.id = a->>'id'
      ORDER BY x.generation DESC LIMIT 1));
END $$;

-- Writes what a request has decided about a latch, unless the latch has changed or expired since: then false.
CREATE FUNCTION leasehold.commit_latch_1(a jsonb) RETURNS jsonb LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  before text := leasehold.begin(a->>'within'); l leasehold.latch; n leasehold.latch; t bigint;
BEGIN
  n := jsonb_populate_record(NULL::leasehold.latch, a);
  SELECT * INTO l FROM leasehold.latch WHERE name = n.name FOR UPDATE;
  t := leasehold.clock();
  IF coalesce(l.version, 0) <> n.version OR (l.until <= t AND l.generation = n.generation) THEN RETURN 'false'; END IF;
  IF l.name IS NULL THEN
    DELETE FROM leasehold.latch WHERE name IN
      (SELECT name FROM leasehold.latch WHERE until < t - 86400000000 LIMIT 8 FOR UPDATE SKIP LOCKED);
  ELSIF l.generation <> n.generation THEN
    -- The ids of the generation that ends are kept, unless the latch had expired.
    DELETE FROM leasehold.arrival x WHERE x.name = l.name AND (x.generation < l.generation OR l.until <= t);
  END IF;
  n.version := greatest(n.version + 1, t);
  n.until := greatest(n.until, coalesce(l.until, 0));
  INSERT INTO leasehold.latch SELECT n.* ON CONFLICT (name) DO UPDATE SET
    (version, until, generation, expected, arrived, completed) =
    (excluded.version, excluded.until, excluded.generation, excluded.expected, excluded.arrived, excluded.completed)
    WHERE l.name IS NOT NULL;
  IF NOT FOUND THEN RETURN 'false'; END IF;
  IF a->>'id' IS NOT NULL THEN
    INSERT INTO leasehold.arrival VALUES (n.name, n.generation, a->>'id', (a->>'call')::bigint);
  END IF;
  PERFORM leasehold.durably(before);
  RETURN 'true';
END $$;

-- Fences the transaction: until it ends, nobody else gets the lock, though the lease may expire. Raises LH001 unless this is the token of a
-- lease that is held, and no later turn under the lease was fenced. Waits for transactions of earlier turns under it.
--
-- It has to be the first statement of the transaction, so that everything that is read afterwards is read under the lock.
CREATE FUNCTION leasehold.fence(name text, token bigint) RETURNS void LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_column
DECLARE h leasehold.hold; raised bigint;
BEGIN
  SELECT * INTO h FROM leasehold.hold o WHERE o.name = fence.name AND fence.token BETWEEN o.low AND o.high AND NOT o.kept
    AND o.until > leasehold.clock() FOR KEY SHARE;
  IF FOUND THEN
    -- Transactions of one turn exclude each other only until the first of them has ended.
    SELECT o.token INTO raised FROM leasehold.turn o WHERE o.name = h.name AND o.low = h.low;
    IF raised = fence.token THEN
      SELECT o.token INTO raised FROM leasehold.turn o WHERE o.name = h.name AND o.low = h.low FOR SHARE;
    END IF;
    IF raised IS NULL OR raised < fence.token THEN
      INSERT INTO leasehold.turn AS o VALUES (h.name, h.low, fence.token)
        ON CONFLICT (name, low) DO UPDATE SET token = greatest(o.token, excluded.token) RETURNING o.token INTO raised;
    END IF;
    IF raised = fence.token THEN RETURN; END IF;
  END IF;
  RAISE EXCEPTION 'the lock "%" is not held with the token %', fence.name, fence.token USING ERRCODE = 'LH001',
    HINT = 'It was lost, released or revoked, a later turn has begun, or the name lacks the prefix of the client. Roll back, and acquire the lock again.';
END $$;

REVOKE ALL ON ALL FUNCTIONS IN SCHEMA leasehold FROM PUBLIC;
