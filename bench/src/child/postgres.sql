-- What a lock in a table needs at the very least. The row of a free lock stays; a release hands the lock to the first waiter, and notifies it.
CREATE SCHEMA IF NOT EXISTS bare;
CREATE TABLE IF NOT EXISTS bare.lock (
  name text PRIMARY KEY, owner uuid, token bigint NOT NULL DEFAULT 0, expires bigint NOT NULL DEFAULT 0
) WITH (fillfactor = 50);
CREATE TABLE IF NOT EXISTS bare.place (
  name text, place bigint GENERATED ALWAYS AS IDENTITY, owner uuid NOT NULL, channel text NOT NULL, PRIMARY KEY (name, place)
);

CREATE OR REPLACE FUNCTION bare.clock() RETURNS bigint LANGUAGE sql VOLATILE
AS $$ SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint $$;

-- Whether the lock was taken; if not, there is a place now.
CREATE OR REPLACE FUNCTION bare.acquire(n text, me uuid, ttl bigint, waits text) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE l bare.lock; t bigint;
BEGIN
  SELECT * INTO l FROM bare.lock WHERE name = n FOR UPDATE;
  IF NOT FOUND THEN
    INSERT INTO bare.lock (name) VALUES (n) ON CONFLICT DO NOTHING;
    SELECT * INTO l FROM bare.lock WHERE name = n FOR UPDATE;
  END IF;
  t := bare.clock();
  IF l.owner IS NULL OR l.expires <= t THEN
    PERFORM set_config('synchronous_commit', 'on', true);
    UPDATE bare.lock SET owner = me, token = greatest(token + 1, t), expires = t + ttl WHERE name = n;
    RETURN true;
  END IF;
  PERFORM set_config('synchronous_commit', 'off', true);
  INSERT INTO bare.place (name, owner, channel) VALUES (n, me, waits);
  RETURN false;
END $$;

CREATE OR REPLACE FUNCTION bare.release(n text, me uuid, ttl bigint) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE l bare.lock; p bare.place; t bigint;
BEGIN
  SELECT * INTO l FROM bare.lock WHERE name = n FOR UPDATE;
  IF l.owner IS DISTINCT FROM me THEN RETURN false; END IF;
  t := bare.clock();
  SELECT * INTO p FROM bare.place WHERE name = n ORDER BY place LIMIT 1;
  IF p.owner IS NULL THEN
    PERFORM set_config('synchronous_commit', 'off', true);
    UPDATE bare.lock SET owner = NULL, expires = 0 WHERE name = n;
    RETURN true;
  END IF;
  PERFORM set_config('synchronous_commit', 'on', true);
  DELETE FROM bare.place WHERE name = n AND place = p.place;
  UPDATE bare.lock SET owner = p.owner, token = greatest(token + 1, t), expires = t + ttl WHERE name = n;
  PERFORM pg_notify(p.channel, replace(p.owner::text, '-', ''));
  RETURN true;
END $$;
