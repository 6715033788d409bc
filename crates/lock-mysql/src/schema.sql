DELIMITER //
-- What leasehold keeps in MySQL and MariaDB, layout 1: the tables, the procedures that clients call, and `leasehold_fence` for transactions of
-- users. The rules of the protocol are those of PostgreSQL's `schema.sql`; here is what differs.
--
-- Moments are microseconds since 1970 by the server's clock. `UTC_TIMESTAMP` is the time at which a statement of a procedure began, so it is
-- read behind the statement that has waited for a lock. Every procedure but `leasehold_fence` is a transaction of its own; it fails with 1568
-- inside another one, which it rolls back. All that change something use READ COMMITTED, so that each statement sees what is committed, and
-- no gaps are locked. What is read without a lock is read by `SELECT INTO`: a sub-select of `SET` or `IF` would lock its rows. Index hints: a
-- scan of a small table would wait for rows of other locks.
SET NAMES utf8mb4 //
SET SESSION sql_mode = 'STRICT_ALL_TABLES,NO_ENGINE_SUBSTITUTION' //

-- A row outlives its holders, so tokens and versions never fall. It is deleted when the lock was unused for a day.
CREATE TABLE IF NOT EXISTS leasehold_lock (
  name VARBINARY(700) PRIMARY KEY,
  version BIGINT NOT NULL,               -- rises with all changes except arrivals and renewals
  tail BIGINT NOT NULL DEFAULT 0,        -- the highest number of a place
  last_token BIGINT NOT NULL DEFAULT 0,
  permits INT NOT NULL DEFAULT 0,        -- those of all holds
  slots INT NOT NULL DEFAULT 0,          -- slots from here on were never taken
  record VARCHAR(200), record_until BIGINT -- the limit that was set
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC DEFAULT CHARSET = ascii COLLATE = ascii_bin //

-- A lease. `owner` is a secret: it renews and releases.
CREATE TABLE IF NOT EXISTS leasehold_hold (
  name VARBINARY(700), owner CHAR(32), kind VARCHAR(9) NOT NULL, count INT NOT NULL, lim INT NOT NULL, low BIGINT NOT NULL,
  high BIGINT NOT NULL, slots LONGTEXT NOT NULL, granted BIGINT, until BIGINT NOT NULL, note VARCHAR(600) CHARACTER SET utf8mb4 NOT NULL,
  kept BOOLEAN NOT NULL,                 -- its owner has released it, and nobody may use its tokens
  PRIMARY KEY (name, owner), KEY hold_until (name, until)
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC DEFAULT CHARSET = ascii COLLATE = ascii_bin //

-- What a fence locks: one row for each hold that is not kept. Whatever ends the hold locks it first, and renewals never do.
CREATE TABLE IF NOT EXISTS leasehold_identity (
  name VARBINARY(700), low BIGINT, high BIGINT NOT NULL, owner CHAR(32) NOT NULL,
  token BIGINT NOT NULL DEFAULT 0,       -- the highest one that a transaction was fenced with
  fences BIGINT NOT NULL DEFAULT 0,      -- how many transactions were fenced
  PRIMARY KEY (name, low)
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC DEFAULT CHARSET = ascii COLLATE = ascii_bin //

-- A place in the queue. Its index is not unique, as InnoDB locks gaps to keep one unique.
CREATE TABLE IF NOT EXISTS leasehold_place (
  name VARBINARY(700), number BIGINT, owner CHAR(32) NOT NULL, kind VARCHAR(9) NOT NULL, count INT NOT NULL, lim INT NOT NULL,
  width INT NOT NULL, ttl BIGINT NOT NULL, until BIGINT NOT NULL, note VARCHAR(600) CHARACTER SET utf8mb4 NOT NULL,
  channel VARCHAR(200) CHARACTER SET utf8mb4 NOT NULL, tag BIGINT NOT NULL,
  joined BIGINT,                         -- when the waiter came, for display
  PRIMARY KEY (name, number), KEY place_owner (name, owner)
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC DEFAULT CHARSET = ascii COLLATE = ascii_bin //

-- The slots below `lock.slots` that nobody has.
CREATE TABLE IF NOT EXISTS leasehold_free_slot (name VARBINARY(700), slot INT, PRIMARY KEY (name, slot)) ENGINE = InnoDB ROW_FORMAT = DYNAMIC //
-- Owners whose late claims are refused.
CREATE TABLE IF NOT EXISTS leasehold_tombstone (
  name VARBINARY(700), owner CHAR(32), until BIGINT NOT NULL, PRIMARY KEY (name, owner), KEY tombstone_until (name, until)
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC DEFAULT CHARSET = ascii COLLATE = ascii_bin //
-- Who ended a lease, by its highest token.
CREATE TABLE IF NOT EXISTS leasehold_revocation (
  name VARBINARY(700), token BIGINT, who VARCHAR(600) CHARACTER SET utf8mb4 NOT NULL, until BIGINT NOT NULL, PRIMARY KEY (name, token)
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC //

CREATE TABLE IF NOT EXISTS leasehold_latch (
  name VARBINARY(700) PRIMARY KEY, version BIGINT NOT NULL, until BIGINT NOT NULL,
  generation BIGINT NOT NULL, expected BIGINT, arrived BIGINT NOT NULL, completed BIGINT, KEY latch_until (until)
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC //
CREATE TABLE IF NOT EXISTS leasehold_arrival (
  name VARBINARY(700), generation BIGINT, id VARBINARY(200), called BIGINT NOT NULL, PRIMARY KEY (name, generation, id)
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC //

-- Whether a request may commit. The rights of these procedures may be those of an account that `read_only` does not stop, on a server that was
-- the primary until now. And who sets `timestamp` in a session has a clock of its own, which stands still.
CREATE PROCEDURE leasehold_check() READS SQL DATA SQL SECURITY DEFINER
BEGIN
  DECLARE began DATETIME(6) DEFAULT UTC_TIMESTAMP(6);
  IF @@GLOBAL.read_only THEN SIGNAL SQLSTATE '25006' SET MYSQL_ERRNO = 1290, MESSAGE_TEXT = 'the server is a replica, or read-only'; END IF;
  IF UTC_TIMESTAMP(6) = began THEN
    SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'the session has a clock of its own: do not set timestamp';
  END IF;
END //

-- Makes the row of a lock, and deletes those of a few others that were unused for a day.
CREATE PROCEDURE leasehold_make(IN n VARBINARY(700)) MODIFIES SQL DATA SQL SECURITY DEFINER
body: BEGIN
  DECLARE t, old, unlocked, holds, identities BIGINT;
  DECLARE x, behind VARBINARY(700);
  DECLARE is_old, found, done BOOLEAN DEFAULT FALSE;
  DECLARE candidates CURSOR FOR SELECT name, version < old AND COALESCE(record_until, 0) < old FROM leasehold_lock
    WHERE name > behind ORDER BY name LIMIT 8;
  DECLARE CONTINUE HANDLER FOR NOT FOUND SET done = TRUE;
  SET t = TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)), old = t - 86400000000;
  INSERT INTO leasehold_lock (name, version) VALUES (n, t) ON DUPLICATE KEY UPDATE name = n;
  SELECT swept INTO behind FROM leasehold_layout FOR UPDATE SKIP LOCKED;
  IF done THEN LEAVE body; END IF;
  OPEN candidates;
  sweep: LOOP
    FETCH candidates INTO x, is_old;
    IF done THEN LEAVE sweep; END IF;
    SET behind = x;
    IF NOT is_old THEN ITERATE sweep; END IF;
    SELECT COUNT(*) INTO found FROM leasehold_lock WHERE name = x AND version < old AND COALESCE(record_until, 0) < old
      FOR UPDATE SKIP LOCKED;
    IF NOT found THEN ITERATE sweep; END IF;
    SELECT EXISTS (SELECT 1 FROM leasehold_hold WHERE name = x AND until >= old)
      OR EXISTS (SELECT 1 FROM leasehold_place WHERE name = x AND until >= old)
      OR EXISTS (SELECT 1 FROM leasehold_tombstone WHERE name = x AND until >= old)
      OR EXISTS (SELECT 1 FROM leasehold_revocation WHERE name = x AND until >= old),
      (SELECT COUNT(*) FROM leasehold_hold WHERE name = x), (SELECT COUNT(*) FROM leasehold_identity WHERE name = x)
      INTO found, holds, identities;
    IF found THEN ITERATE sweep; END IF;
    -- A transaction that is fenced keeps its lock, however old the lease is.
    SELECT COUNT(*) INTO unlocked FROM leasehold_hold h FORCE INDEX (PRIMARY) WHERE h.name = x FOR UPDATE SKIP LOCKED;
    IF unlocked <> holds THEN ITERATE sweep; END IF;
    SELECT COUNT(*) INTO unlocked FROM leasehold_identity i FORCE INDEX (PRIMARY) WHERE i.name = x FOR UPDATE SKIP LOCKED;
    IF unlocked <> identities THEN ITERATE sweep; END IF;
    DELETE o FROM leasehold_hold o FORCE INDEX (PRIMARY) WHERE o.name = x;
    DELETE o FROM leasehold_identity o FORCE INDEX (PRIMARY) WHERE o.name = x;
    DELETE o FROM leasehold_place o FORCE INDEX (PRIMARY) WHERE o.name = x;
    DELETE o FROM leasehold_tombstone o FORCE INDEX (PRIMARY) WHERE o.name = x;
    DELETE o FROM leasehold_revocation o FORCE INDEX (PRIMARY) WHERE o.name = x;
    DELETE o FROM leasehold_free_slot o FORCE INDEX (PRIMARY) WHERE o.name = x;
    DELETE FROM leasehold_lock WHERE name = x;
  END LOOP;
  SELECT MIN(name) INTO x FROM leasehold_lock WHERE name > behind;
  UPDATE leasehold_layout SET swept = IF(x IS NULL, '', behind) WHERE version > 0;
END //

CREATE PROCEDURE leasehold_make_1(IN a LONGTEXT CHARACTER SET utf8mb4) MODIFIES SQL DATA SQL SECURITY DEFINER
BEGIN
  DECLARE n VARBINARY(700);
  DECLARE EXIT HANDLER FOR SQLEXCEPTION BEGIN ROLLBACK AND NO CHAIN NO RELEASE; RESIGNAL; END;
  SET TRANSACTION ISOLATION LEVEL READ COMMITTED;
  START TRANSACTION READ WRITE;
  SELECT j.name INTO n FROM JSON_TABLE(a, '$' COLUMNS (name VARCHAR(700) CHARACTER SET utf8mb4 PATH '$.name')) j;
  CALL leasehold_make(n);
  CALL leasehold_check();
  COMMIT AND NO CHAIN NO RELEASE;
  SELECT 'true' AS answer;
END //

-- The holds of these owners (32 digits each) as JSON, in this order. (MariaDB writes temporary tables with longer texts to files, which is slow:
-- so lists are lists of owners first.)
CREATE PROCEDURE leasehold_holds(IN n VARBINARY(700), IN owners LONGTEXT CHARACTER SET ascii COLLATE ascii_bin, IN are_secret BOOLEAN,
  OUT answer LONGTEXT CHARACTER SET utf8mb4) READS SQL DATA SQL SECURITY DEFINER
BEGIN
  DECLARE i INT DEFAULT 1;
  DECLARE one LONGTEXT CHARACTER SET utf8mb4;
  WHILE i < CHAR_LENGTH(owners) DO
    SET one = NULL;
    -- `JSON_EXTRACT` makes text a part of other JSON; otherwise it would be a string there.
    SELECT JSON_OBJECT('owner', IF(are_secret, REPEAT('0', 32), owner), 'kind', kind, 'count', count, 'lim', lim, 'low', low, 'high', high,
      'slots', JSON_EXTRACT(slots, '$'), 'granted', granted, 'until', until, 'note', note, 'kept', JSON_EXTRACT(IF(kept, 'true', 'false'), '$'))
      INTO one FROM leasehold_hold WHERE name = n AND owner = SUBSTR(owners, i, 32);
    SET answer = IF(one IS NULL, answer, CONCAT_WS(',', answer, one)), i = i + 32;
  END WHILE;
  SET answer = CONCAT('[', COALESCE(answer, ''), ']');
END //

-- The places of these owners, likewise.
CREATE PROCEDURE leasehold_places(IN n VARBINARY(700), IN owners LONGTEXT CHARACTER SET ascii COLLATE ascii_bin,
  OUT answer LONGTEXT CHARACTER SET utf8mb4) READS SQL DATA SQL SECURITY DEFINER
BEGIN
  DECLARE i INT DEFAULT 1;
  DECLARE one LONGTEXT CHARACTER SET utf8mb4;
  WHILE i < CHAR_LENGTH(owners) DO
    SET one = NULL;
    SELECT JSON_OBJECT('number', number, 'owner', owner, 'kind', kind, 'count', count, 'lim', lim, 'width', width, 'ttl', ttl, 'until', until,
      'note', note, 'channel', channel, 'tag', tag, 'joined', joined) INTO one FROM leasehold_place WHERE name = n AND owner = SUBSTR(owners, i, 32);
    SET answer = IF(one IS NULL, answer, CONCAT_WS(',', answer, one)), i = i + 32;
  END WHILE;
  SET answer = CONCAT('[', COALESCE(answer, ''), ']');
END //

-- What a request needs of a lock, as it was at one moment, and the clock after that; NULL if the lock has no row.
CREATE PROCEDURE leasehold_load(IN a LONGTEXT CHARACTER SET utf8mb4, OUT answer LONGTEXT CHARACTER SET utf8mb4)
  READS SQL DATA SQL SECURITY DEFINER
BEGIN
  DECLARE n VARBINARY(700);
  DECLARE t, my_token, l_version, l_tail, l_token, l_until BIGINT;
  DECLARE l_permits, l_slots, most_slots, most_ends, most_places, most_numbers, most_expired, my_above INT;
  DECLARE l_record VARCHAR(200) CHARACTER SET ascii COLLATE ascii_bin;
  DECLARE owners LONGTEXT CHARACTER SET ascii COLLATE ascii_bin;
  DECLARE by_note VARCHAR(600) CHARACTER SET utf8mb4;
  DECLARE expired, behind, holds, queued, given_up, places, numbers, ends, free_slots, with_token, above LONGTEXT CHARACTER SET utf8mb4;
  SELECT j.name, j.token, j.slots, j.ends, j.places, j.numbers, j.above, j.expired
    INTO n, my_token, most_slots, most_ends, most_places, most_numbers, my_above, most_expired
    FROM JSON_TABLE(a, '$' COLUMNS (name VARCHAR(700) CHARACTER SET utf8mb4 PATH '$.name', token BIGINT PATH '$.token', slots INT PATH '$.slots',
      ends INT PATH '$.ends', places INT PATH '$.places', numbers INT PATH '$.numbers', above INT PATH '$.above', expired INT PATH '$.expired')) j;
  SELECT version, tail, last_token, permits, slots, record, record_until
    INTO l_version, l_tail, l_token, l_permits, l_slots, l_record, l_until FROM leasehold_lock WHERE name = n;
  IF l_version IS NOT NULL THEN
    SET t = TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6));
    SELECT GROUP_CONCAT(j.owner SEPARATOR '') INTO owners
      FROM JSON_TABLE(a, '$.owners[*]' COLUMNS (owner CHAR(32) CHARACTER SET ascii COLLATE ascii_bin PATH '$')) j;
    CALL leasehold_holds(n, owners, FALSE, holds);
    CALL leasehold_places(n, owners, queued);
    SELECT GROUP_CONCAT('"', x.owner, '"' SEPARATOR ',') INTO given_up
      FROM JSON_TABLE(a, '$.owners[*]' COLUMNS (owner CHAR(32) CHARACTER SET ascii COLLATE ascii_bin PATH '$')) j
      STRAIGHT_JOIN leasehold_tombstone x ON x.name = n AND x.owner = j.owner AND x.until > t;
    SELECT GROUP_CONCAT(owner ORDER BY until SEPARATOR '') INTO owners FROM
      (SELECT owner, until FROM leasehold_hold WHERE name = n AND until <= t ORDER BY until LIMIT most_expired) h;
    CALL leasehold_holds(n, owners, FALSE, expired);
    SELECT GROUP_CONCAT(owner ORDER BY until DESC, owner DESC SEPARATOR '') INTO owners FROM
      (SELECT owner, until FROM leasehold_hold WHERE name = n AND until > t ORDER BY until DESC, owner DESC LIMIT 2) h;
    CALL leasehold_holds(n, owners, FALSE, behind);
    SELECT GROUP_CONCAT(owner ORDER BY number SEPARATOR '') INTO owners FROM
      (SELECT owner, number FROM leasehold_place WHERE name = n AND until > t ORDER BY number LIMIT most_places) p;
    CALL leasehold_places(n, owners, places);
    SELECT GROUP_CONCAT(number ORDER BY number SEPARATOR ',') INTO numbers FROM
      (SELECT number FROM leasehold_place WHERE name = n AND until > t ORDER BY number LIMIT most_numbers) p;
    IF most_ends > 0 THEN
      SELECT GROUP_CONCAT('[', until, ',', count, ']' ORDER BY until SEPARATOR ',') INTO ends FROM
        (SELECT until, count FROM leasehold_hold WHERE name = n AND until > t ORDER BY until LIMIT most_ends) h;
    END IF;
    IF most_slots > 0 THEN
      SELECT GROUP_CONCAT(slot ORDER BY slot SEPARATOR ',') INTO free_slots FROM (
        SELECT slot FROM (SELECT slot FROM leasehold_free_slot WHERE name = n ORDER BY slot LIMIT most_slots) f
        UNION ALL SELECT l_slots + g.i - 1 FROM
          JSON_TABLE(CONCAT('[0', REPEAT(',0', most_slots - 1), ']'), '$[*]' COLUMNS (i FOR ORDINALITY)) g
        ORDER BY slot LIMIT most_slots) s;
    END IF;
    IF my_token IS NOT NULL THEN
      SELECT MIN(owner) INTO owners FROM leasehold_hold WHERE name = n AND my_token BETWEEN low AND high AND until > t;
      CALL leasehold_holds(n, owners, FALSE, with_token);
      SELECT who INTO by_note FROM leasehold_revocation WHERE name = n AND token = my_token AND until > t;
    END IF;
    IF my_above IS NOT NULL THEN
      SELECT GROUP_CONCAT(owner ORDER BY number SEPARATOR '') INTO owners FROM leasehold_place WHERE name = n AND until > t AND count > my_above;
      CALL leasehold_places(n, owners, above);
    END IF;
    SET answer = CONCAT('{"now":', t, ',"version":', l_version, ',"tail":', l_tail, ',"last_token":', GREATEST(l_token, t),
      ',"permits":', l_permits, ',"record":', COALESCE(JSON_QUOTE(IF(l_until > t, l_record, NULL)), 'null'), ',"expired":', expired,
      ',"last":', behind, ',"holds":', holds, ',"queued":', queued, ',"given_up":[', COALESCE(given_up, ''), '],"places":', places, ',"numbers":[', COALESCE(numbers, ''),
      '],"ends":[', COALESCE(ends, ''), '],"free_slots":[', COALESCE(free_slots, ''),
      '],"with_token":', COALESCE(JSON_EXTRACT(with_token, '$[0]'), 'null'), ',"revoked_by":', COALESCE(JSON_QUOTE(by_note), 'null'),
      ',"above":', COALESCE(above, '[]'), '}');
  END IF;
END //

CREATE PROCEDURE leasehold_load_1(IN a LONGTEXT CHARACTER SET utf8mb4) READS SQL DATA SQL SECURITY DEFINER
BEGIN
  DECLARE answer LONGTEXT CHARACTER SET utf8mb4;
  DECLARE usual BIGINT UNSIGNED DEFAULT @@group_concat_max_len;
  DECLARE EXIT HANDLER FOR SQLEXCEPTION BEGIN ROLLBACK AND NO CHAIN NO RELEASE; SET SESSION group_concat_max_len = usual; RESIGNAL; END;
  SET SESSION group_concat_max_len = 1000000000;
  SET TRANSACTION ISOLATION LEVEL REPEATABLE READ;
  START TRANSACTION WITH CONSISTENT SNAPSHOT, READ ONLY;
  CALL leasehold_load(a, answer);
  COMMIT AND NO CHAIN NO RELEASE;
  SET SESSION group_concat_max_len = usual;
  SELECT answer;
END //

-- The same of many locks.
CREATE PROCEDURE leasehold_load_all_1(IN a LONGTEXT CHARACTER SET utf8mb4) READS SQL DATA SQL SECURITY DEFINER
BEGIN
  DECLARE i INT DEFAULT 0;
  DECLARE answer, answers LONGTEXT CHARACTER SET utf8mb4;
  DECLARE usual BIGINT UNSIGNED DEFAULT @@group_concat_max_len;
  DECLARE EXIT HANDLER FOR SQLEXCEPTION BEGIN ROLLBACK AND NO CHAIN NO RELEASE; SET SESSION group_concat_max_len = usual; RESIGNAL; END;
  SET SESSION group_concat_max_len = 1000000000;
  SET TRANSACTION ISOLATION LEVEL REPEATABLE READ;
  START TRANSACTION WITH CONSISTENT SNAPSHOT, READ ONLY;
  WHILE i < JSON_LENGTH(a) DO
    CALL leasehold_load(JSON_EXTRACT(a, CONCAT('$[', i, ']')), answer);
    SET i = i + 1, answers = CONCAT_WS(',', answers, COALESCE(answer, 'null'));
  END WHILE;
  COMMIT AND NO CHAIN NO RELEASE;
  SET SESSION group_concat_max_len = usual;
  SELECT CONCAT('[', COALESCE(answers, ''), ']') AS answer;
END //

-- Ends a hold, whose slots are free then. Its identity has been locked.
CREATE PROCEDURE leasehold_end_hold(IN n VARBINARY(700), IN holder CHAR(32) CHARACTER SET ascii COLLATE ascii_bin)
  MODIFIES SQL DATA SQL SECURITY DEFINER
BEGIN
  DECLARE h_low BIGINT;
  DECLARE h_slots LONGTEXT CHARACTER SET ascii COLLATE ascii_bin;
  SELECT low, slots INTO h_low, h_slots FROM leasehold_hold WHERE name = n AND owner = holder;
  DELETE FROM leasehold_hold WHERE name = n AND owner = holder;
  DELETE FROM leasehold_identity WHERE name = n AND low = h_low;
  IF h_slots <> '[]' THEN
    INSERT INTO leasehold_free_slot
      SELECT n, s.slot FROM JSON_TABLE(CONVERT(h_slots USING utf8mb4), '$[*]' COLUMNS (slot INT PATH '$')) s;
  END IF;
END //

-- Takes slots; `unused` is the first one that was never taken.
CREATE PROCEDURE leasehold_take_slots(IN n VARBINARY(700), IN taken LONGTEXT CHARACTER SET utf8mb4, INOUT unused INT)
  MODIFIES SQL DATA SQL SECURITY DEFINER
BEGIN
  DECLARE above INT;
  SELECT MAX(s.slot) + 1 INTO above FROM JSON_TABLE(taken, '$[*]' COLUMNS (slot INT PATH '$')) s;
  IF above > unused THEN
    INSERT INTO leasehold_free_slot SELECT n, unused + g.i - 1 FROM
      JSON_TABLE(CONCAT('[0', REPEAT(',0', above - unused - 1), ']'), '$[*]' COLUMNS (i FOR ORDINALITY)) g;
    SET unused = above;
  END IF;
  DELETE f FROM JSON_TABLE(taken, '$[*]' COLUMNS (slot INT PATH '$')) s
    STRAIGHT_JOIN leasehold_free_slot f FORCE INDEX (PRIMARY) ON f.name = n AND f.slot = s.slot;
END //

-- Writes what a request has decided, unless something that the decision depends on has changed: then "conflict". The owners of leases that
-- it would end, and that transactions are fenced by, if there are any: then nothing is written either.
CREATE PROCEDURE leasehold_commit_1(IN a LONGTEXT CHARACTER SET utf8mb4) MODIFIES SQL DATA SQL SECURITY DEFINER
BEGIN
  DECLARE n VARBINARY(700);
  DECLARE t, my_version, my_tail, my_before, l_version, l_tail, l_token, l_record_until BIGINT;
  DECLARE my_permits, l_permits, l_slots INT;
  DECLARE l_record VARCHAR(200) CHARACTER SET ascii COLLATE ascii_bin;
  DECLARE h_low, h_high, h_until, free, x_low, x_high, x_granted, x_until, x_number, x_ttl, x_tag, x_joined, x_token BIGINT;
  DECLARE i, x_count, x_lim, x_width INT;
  DECLARE h_kept, found BOOLEAN;
  DECLARE x_ends, x_kept VARCHAR(5) CHARACTER SET ascii COLLATE ascii_bin;
  DECLARE x_op, x_kind VARCHAR(10) CHARACTER SET ascii COLLATE ascii_bin;
  DECLARE x_owner CHAR(32) CHARACTER SET ascii COLLATE ascii_bin;
  DECLARE x_record, x_channel VARCHAR(200) CHARACTER SET utf8mb4;
  DECLARE x_note, x_by VARCHAR(600) CHARACTER SET utf8mb4;
  DECLARE x_slots, fenced, answer LONGTEXT CHARACTER SET utf8mb4;
  DECLARE leases CURSOR FOR SELECT j.owner, j.high, j.until, j.ends FROM JSON_TABLE(a, '$.leases[*]' COLUMNS (
    owner CHAR(32) CHARACTER SET ascii COLLATE ascii_bin PATH '$.owner', high BIGINT PATH '$.high', until BIGINT PATH '$.until',
    ends VARCHAR(5) CHARACTER SET ascii PATH '$.ends')) j ORDER BY j.owner;
  DECLARE writes CURSOR FOR SELECT j.op, j.owner, j.kind, j.count, j.lim, j.low, j.high, j.granted, j.until, j.note, j.kept, j.number,
    j.width, j.ttl, j.channel, j.tag, j.joined, j.record, j.token, j.who FROM JSON_TABLE(a, '$.writes[*]' COLUMNS (
    i FOR ORDINALITY, op VARCHAR(10) CHARACTER SET ascii PATH '$.op', owner CHAR(32) CHARACTER SET ascii COLLATE ascii_bin PATH '$.owner',
    kind VARCHAR(9) CHARACTER SET ascii PATH '$.kind', count INT PATH '$.count', lim INT PATH '$.lim', low BIGINT PATH '$.low',
    high BIGINT PATH '$.high', granted BIGINT PATH '$.granted', until BIGINT PATH '$.until',
    note VARCHAR(600) CHARACTER SET utf8mb4 PATH '$.note', kept VARCHAR(5) CHARACTER SET ascii PATH '$.kept', number BIGINT PATH '$.number',
    width INT PATH '$.width', ttl BIGINT PATH '$.ttl', channel VARCHAR(200) CHARACTER SET utf8mb4 PATH '$.channel', tag BIGINT PATH '$.tag',
    joined BIGINT PATH '$.joined', record VARCHAR(200) CHARACTER SET utf8mb4 PATH '$.record', token BIGINT PATH '$.token',
    who VARCHAR(600) CHARACTER SET utf8mb4 PATH '$.by')) j ORDER BY j.i;
  DECLARE EXIT HANDLER FOR SQLEXCEPTION BEGIN ROLLBACK AND NO CHAIN NO RELEASE; RESIGNAL; END;
  SET TRANSACTION ISOLATION LEVEL READ COMMITTED;
  START TRANSACTION READ WRITE;
  body: BEGIN
    SELECT j.name, j.version, j.tail, j.ends, j.permits INTO n, my_version, my_tail, my_before, my_permits
      FROM JSON_TABLE(a, '$' COLUMNS (name VARCHAR(700) CHARACTER SET utf8mb4 PATH '$.name', version BIGINT PATH '$.version',
        tail BIGINT PATH '$.tail', ends BIGINT PATH '$.before', permits INT PATH '$.permits')) j;
    SET answer = '"conflict"';
    IF my_version IS NOT NULL THEN
      SELECT version, tail, last_token, permits, slots, record, record_until
        INTO l_version, l_tail, l_token, l_permits, l_slots, l_record, l_record_until FROM leasehold_lock WHERE name = n FOR UPDATE;
      IF l_version IS NULL OR l_version <> my_version OR l_tail <> my_tail THEN LEAVE body; END IF;
    END IF;
    SET i = JSON_LENGTH(a, '$.leases');
    IF i > 0 THEN OPEN leases; END IF;
    WHILE i > 0 DO
      SET i = i - 1, h_high = NULL, free = NULL;
      FETCH leases INTO x_owner, x_high, x_until, x_ends;
      SELECT low, high, until, kept INTO h_low, h_high, h_until, h_kept FROM leasehold_hold WHERE name = n AND owner = x_owner FOR UPDATE;
      IF h_high IS NULL OR h_high <> x_high OR h_until <> x_until THEN LEAVE body; END IF;
      IF x_ends = 'true' AND NOT h_kept THEN
        SELECT low INTO free FROM leasehold_identity WHERE name = n AND low = h_low FOR UPDATE SKIP LOCKED;
        -- An identity that is not there fences nothing: MariaDB may leave out a statement of a request that `KILL QUERY` ends.
        SET found = TRUE;
        IF free IS NULL THEN SELECT COUNT(*) INTO found FROM leasehold_identity WHERE name = n AND low = h_low; END IF;
        IF free IS NULL AND found THEN SET fenced = CONCAT_WS(',', fenced, JSON_QUOTE(x_owner)); END IF;
      END IF;
    END WHILE;
    IF fenced IS NOT NULL THEN
      SET answer = CONCAT('[', fenced, ']');
      LEAVE body;
    END IF;
    SET t = TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6));
    IF t >= my_before THEN LEAVE body; END IF;
    SET i = 0;
    IF JSON_LENGTH(a, '$.writes') > 0 THEN OPEN writes; END IF;
    WHILE i < JSON_LENGTH(a, '$.writes') DO
      FETCH writes INTO x_op, x_owner, x_kind, x_count, x_lim, x_low, x_high, x_granted, x_until, x_note, x_kept, x_number, x_width, x_ttl,
        x_channel, x_tag, x_joined, x_record, x_token, x_by;
      CASE x_op
      WHEN 'hold' THEN
        SET x_slots = JSON_EXTRACT(a, CONCAT('$.writes[', i, '].slots'));
        INSERT INTO leasehold_hold VALUES
          (n, x_owner, x_kind, x_count, x_lim, x_low, x_high, x_slots, x_granted, x_until, x_note, x_kept = 'true')
          ON DUPLICATE KEY UPDATE kind = x_kind, count = x_count, lim = x_lim, low = x_low, high = x_high, slots = x_slots,
            granted = x_granted, until = x_until, note = x_note, kept = x_kept = 'true';
        -- A lease that is granted again may be fenced.
        SELECT COUNT(*) INTO found FROM leasehold_identity WHERE name = n AND low = x_low;
        IF x_kept <> 'true' AND NOT found THEN
          INSERT INTO leasehold_identity (name, low, high, owner) VALUES (n, x_low, x_high, x_owner);
        END IF;
        IF JSON_LENGTH(x_slots) > 0 THEN CALL leasehold_take_slots(n, x_slots, l_slots); END IF;
      WHEN 'extend' THEN UPDATE leasehold_hold SET until = x_until WHERE name = n AND owner = x_owner;
      WHEN 'end' THEN CALL leasehold_end_hold(n, x_owner);
      WHEN 'place' THEN
        DELETE o FROM leasehold_place o FORCE INDEX (place_owner) WHERE o.name = n AND o.owner = x_owner;
        INSERT INTO leasehold_place VALUES
          (n, x_number, x_owner, x_kind, x_count, x_lim, x_width, x_ttl, x_until, x_note, x_channel, x_tag, x_joined);
        SET l_tail = GREATEST(l_tail, x_number);
      WHEN 'leave' THEN DELETE o FROM leasehold_place o FORCE INDEX (place_owner) WHERE o.name = n AND o.owner = x_owner;
      WHEN 'tombstone' THEN
        DELETE o FROM leasehold_tombstone o FORCE INDEX (tombstone_until) WHERE o.name = n AND o.until <= t;
        INSERT INTO leasehold_tombstone VALUES (n, x_owner, x_until) ON DUPLICATE KEY UPDATE until = GREATEST(until, x_until);
      WHEN 'limit' THEN
        SET l_record = x_record, l_record_until = x_until;
        -- In the order of renewals.
        UPDATE leasehold_hold FORCE INDEX (PRIMARY) SET lim = x_lim WHERE name = n AND kind = 'permits' ORDER BY owner;
        UPDATE leasehold_place FORCE INDEX (PRIMARY) SET lim = x_lim WHERE name = n AND kind = 'permits';
      WHEN 'revocation' THEN
        DELETE o FROM leasehold_revocation o FORCE INDEX (PRIMARY) WHERE o.name = n AND o.until <= t;
        INSERT INTO leasehold_revocation VALUES (n, x_token, x_by, x_until) ON DUPLICATE KEY UPDATE who = x_by, until = x_until;
      WHEN 'last-token' THEN SET l_token = x_token;
      END CASE;
      SET i = i + 1;
    END WHILE;
    IF my_permits IS NOT NULL THEN
      -- Places whose waiters are gone, as far as they are in the way of others.
      SELECT MAX(number) INTO x_number FROM (SELECT number FROM leasehold_place WHERE name = n ORDER BY number LIMIT 8) first_ones;
      IF x_number IS NOT NULL THEN
        DELETE o FROM leasehold_place o FORCE INDEX (PRIMARY) WHERE o.name = n AND o.number <= x_number AND o.until <= t;
      END IF;
      SET l_version = GREATEST(l_version + 1, t), l_permits = my_permits;
    END IF;
    IF l_version IS NOT NULL THEN
      UPDATE leasehold_lock SET version = l_version, tail = l_tail, last_token = l_token, permits = l_permits, slots = l_slots,
        record = l_record, record_until = l_record_until WHERE name = n;
    END IF;
    SET answer = '"written"';
  END body;
  CALL leasehold_check();
  IF answer = '"written"' THEN COMMIT AND NO CHAIN NO RELEASE; ELSE ROLLBACK AND NO CHAIN NO RELEASE; END IF;
  SELECT answer;
END //

-- A claim for a free lock, or behind an exclusive holder, as the rules would answer it; NULL for any other one, whose window is loaded then.
CREATE PROCEDURE leasehold_claim_1(IN a LONGTEXT CHARACTER SET utf8mb4) MODIFIES SQL DATA SQL SECURITY DEFINER
BEGIN
  DECLARE n VARBINARY(700);
  DECLARE t, my_ttl, my_place, my_floor, my_tag, m_number, m_until, l_tail, l_token, h_low, h_high, h_until, drawn BIGINT;
  DECLARE my_width, my_counted, ahead INT;
  DECLARE is_given_up, has_places BOOLEAN;
  DECLARE my_queue VARCHAR(5) CHARACTER SET ascii COLLATE ascii_bin;
  DECLARE my_kind, h_kind VARCHAR(9) CHARACTER SET ascii COLLATE ascii_bin;
  DECLARE me, h_owner CHAR(32) CHARACTER SET ascii COLLATE ascii_bin;
  DECLARE my_channel VARCHAR(200) CHARACTER SET utf8mb4;
  DECLARE my_note, h_note VARCHAR(600) CHARACTER SET utf8mb4;
  DECLARE answer LONGTEXT CHARACTER SET utf8mb4;
  DECLARE EXIT HANDLER FOR SQLEXCEPTION BEGIN ROLLBACK AND NO CHAIN NO RELEASE; RESIGNAL; END;
  SET TRANSACTION ISOLATION LEVEL READ COMMITTED;
  START TRANSACTION READ WRITE;
  body: BEGIN
    SELECT j.name, j.owner, j.kind, j.ttl, j.place, j.width, COALESCE(j.floor, 0), j.note, j.queue, j.channel, j.tag, j.counted
      INTO n, me, my_kind, my_ttl, my_place, my_width, my_floor, my_note, my_queue, my_channel, my_tag, my_counted
      FROM JSON_TABLE(a, '$' COLUMNS (name VARCHAR(700) CHARACTER SET utf8mb4 PATH '$.name', owner CHAR(32) CHARACTER SET ascii PATH '$.owner',
        kind VARCHAR(9) CHARACTER SET ascii PATH '$.kind', ttl BIGINT PATH '$.ttl', place BIGINT PATH '$.place', width INT PATH '$.width',
        floor BIGINT PATH '$.floor', note VARCHAR(600) CHARACTER SET utf8mb4 PATH '$.note',
        queue VARCHAR(5) CHARACTER SET ascii PATH '$.queue', channel VARCHAR(200) CHARACTER SET utf8mb4 PATH '$.channel',
        tag BIGINT PATH '$.tag', counted INT PATH '$.counted')) j;
    SELECT tail, last_token INTO l_tail, l_token FROM leasehold_lock WHERE name = n FOR UPDATE;
    IF l_tail IS NULL THEN
      CALL leasehold_make(n);
      SELECT tail, last_token INTO l_tail, l_token FROM leasehold_lock WHERE name = n FOR UPDATE;
    END IF;
    SELECT TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)), EXISTS (SELECT 1 FROM leasehold_tombstone WHERE name = n AND owner = me),
      EXISTS (SELECT 1 FROM leasehold_place WHERE name = n) INTO t, is_given_up, has_places;
    IF my_kind = 'permits' OR is_given_up THEN LEAVE body; END IF;
    SELECT owner, kind, low, high, until, note INTO h_owner, h_kind, h_low, h_high, h_until, h_note FROM leasehold_hold WHERE name = n LIMIT 1;
    SET drawn = GREATEST(l_token, t);
    IF h_owner IS NULL THEN
      IF my_kind <> 'exclusive' OR has_places THEN LEAVE body; END IF;
      SET drawn = GREATEST(drawn, my_floor) + 1;
      -- The rules refuse tokens above this one.
      IF drawn + my_width > 9007199254740991 THEN LEAVE body; END IF;
      INSERT INTO leasehold_hold VALUES
        (n, me, 'exclusive', 0, 0, drawn, drawn + my_width - 1, '[]', t, t + my_ttl, my_note, FALSE);
      INSERT INTO leasehold_identity (name, low, high, owner) VALUES (n, drawn, drawn + my_width - 1, me);
      UPDATE leasehold_lock SET version = GREATEST(version + 1, t), last_token = drawn + my_width - 1 WHERE name = n;
      SET answer = JSON_OBJECT('granted', drawn + 0);
      LEAVE body;
    END IF;
    IF h_kind <> 'exclusive' OR h_owner = me OR h_until <= t THEN LEAVE body; END IF;
    SELECT number, until INTO m_number, m_until FROM leasehold_place WHERE name = n AND owner = me;
    IF m_until <= t OR (m_number IS NOT NULL AND my_queue <> 'true') THEN LEAVE body; END IF;
    IF m_number IS NOT NULL THEN
      -- Somebody may have read that this place was about to end.
      UPDATE leasehold_place SET kind = my_kind, width = my_width, ttl = my_ttl, until = t + my_place, note = my_note, channel = my_channel,
        tag = my_tag WHERE name = n AND number = m_number;
      UPDATE leasehold_lock SET version = GREATEST(version + 1, t) WHERE name = n;
    ELSEIF my_queue = 'true' THEN
      SET m_number = l_tail + 1;
      INSERT INTO leasehold_place VALUES
        (n, m_number, me, my_kind, 0, 0, my_width, my_ttl, t + my_place, my_note, my_channel, my_tag, t);
      UPDATE leasehold_lock SET tail = m_number WHERE name = n;
    END IF;
    SELECT COUNT(*) INTO ahead FROM
      (SELECT 1 FROM leasehold_place WHERE name = n AND number < m_number AND until > t LIMIT my_counted) p;
    IF ahead = my_counted THEN
      SELECT GREATEST(ahead, m_number - MIN(number)) INTO ahead FROM leasehold_place WHERE name = n AND until > t;
    END IF;
    SET answer = JSON_OBJECT('low', h_low + 0, 'high', h_high + 0, 'note', h_note, 'remaining', h_until - t, 'drawn', drawn + 0,
      'position', ahead + 1);
  END body;
  CALL leasehold_check();
  COMMIT AND NO CHAIN NO RELEASE;
  SELECT answer;
END //

-- Releases an exclusive lease and hands the lock to the first waiter, or removes a waiter behind such a lease. NULL if the rules have to decide.
CREATE PROCEDURE leasehold_release_1(IN a LONGTEXT CHARACTER SET utf8mb4) MODIFIES SQL DATA SQL SECURITY DEFINER
BEGIN
  DECLARE n VARBINARY(700);
  DECLARE t, my_place_max, l_token, h_low, h_until, m_number, p_number, p_ttl BIGINT;
  DECLARE p_width INT;
  DECLARE is_behind BOOLEAN;
  DECLARE h_kind, p_kind VARCHAR(9) CHARACTER SET ascii COLLATE ascii_bin;
  DECLARE me, p_owner CHAR(32) CHARACTER SET ascii COLLATE ascii_bin;
  DECLARE p_note VARCHAR(600) CHARACTER SET utf8mb4;
  DECLARE answer LONGTEXT CHARACTER SET utf8mb4;
  DECLARE EXIT HANDLER FOR SQLEXCEPTION BEGIN ROLLBACK AND NO CHAIN NO RELEASE; RESIGNAL; END;
  SET TRANSACTION ISOLATION LEVEL READ COMMITTED;
  START TRANSACTION READ WRITE;
  body: BEGIN
    SELECT j.name, j.owner, j.place_max INTO n, me, my_place_max FROM JSON_TABLE(a, '$' COLUMNS (
      name VARCHAR(700) CHARACTER SET utf8mb4 PATH '$.name', owner CHAR(32) CHARACTER SET ascii PATH '$.owner',
      place_max BIGINT PATH '$.place_max')) j;
    SELECT last_token INTO l_token FROM leasehold_lock WHERE name = n FOR UPDATE;
    SET t = TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6));
    SELECT MIN(number) INTO m_number FROM leasehold_place WHERE name = n AND owner = me AND until > t;
    IF m_number IS NOT NULL THEN
      -- A kept hold has another owner's number, and may be this one's: the rules decide.
      SELECT COUNT(*) INTO is_behind FROM leasehold_hold WHERE name = n AND owner <> me AND kind = 'exclusive' AND until > t AND NOT kept;
      IF NOT is_behind THEN LEAVE body; END IF;
      DELETE FROM leasehold_place WHERE name = n AND number = m_number;
      UPDATE leasehold_lock SET version = GREATEST(version + 1, t) WHERE name = n;
      SET answer = '"left"';
      LEAVE body;
    END IF;
    -- A kept hold has no identity.
    SELECT h.kind, h.low, h.until INTO h_kind, h_low, h_until FROM leasehold_hold h JOIN leasehold_identity i ON i.name = h.name AND i.low = h.low
      WHERE h.name = n AND h.owner = me FOR UPDATE SKIP LOCKED;
    IF h_kind IS NULL OR h_kind <> 'exclusive' OR h_until <= t THEN LEAVE body; END IF;
    SELECT number, owner, kind, width, ttl, note INTO p_number, p_owner, p_kind, p_width, p_ttl, p_note
      FROM leasehold_place WHERE name = n AND until > t ORDER BY number LIMIT 1;
    IF p_number IS NULL THEN
      DELETE FROM leasehold_identity WHERE name = n AND low = h_low;
      DELETE FROM leasehold_hold WHERE name = n AND owner = me;
      UPDATE leasehold_lock SET version = GREATEST(version + 1, t) WHERE name = n;
      SET answer = '"released"';
      LEAVE body;
    END IF;
    SET l_token = GREATEST(l_token, t);
    IF p_kind <> 'exclusive' OR l_token + p_width > 9007199254740991 THEN LEAVE body; END IF;
    -- Expired places before it. The range ends at its number, so InnoDB locks no row of another lock.
    DELETE o FROM leasehold_place o FORCE INDEX (PRIMARY) WHERE o.name = n AND o.number < p_number;
    DELETE FROM leasehold_place WHERE name = n AND number = p_number;
    DELETE FROM leasehold_identity WHERE name = n AND low = h_low;
    INSERT INTO leasehold_identity (name, low, high, owner) VALUES (n, l_token + 1, l_token + p_width, p_owner);
    UPDATE leasehold_hold SET owner = p_owner, low = l_token + 1, high = l_token + p_width, granted = t,
      until = t + LEAST(p_ttl, my_place_max), note = p_note WHERE name = n AND owner = me;
    UPDATE leasehold_lock SET version = GREATEST(version + 1, t), last_token = l_token + p_width WHERE name = n;
    SET answer = '"released"';
  END body;
  CALL leasehold_check();
  COMMIT AND NO CHAIN NO RELEASE;
  SELECT answer;
END //

-- Renews leases, in the order of their names so that two clients never wait for each other. Each answer: how long the lease lasts, and
-- whether others wait; or who revoked it.
CREATE PROCEDURE leasehold_renew_1(IN a LONGTEXT CHARACTER SET utf8mb4) MODIFIES SQL DATA SQL SECURITY DEFINER
BEGIN
  DECLARE t, first_end BIGINT;
  DECLARE i, common INT;
  DECLARE by_note VARCHAR(600) CHARACTER SET utf8mb4;
  DECLARE answer LONGTEXT CHARACTER SET utf8mb4;
  DECLARE usual BIGINT UNSIGNED DEFAULT @@group_concat_max_len;
  DECLARE revoked CURSOR FOR SELECT r.i, v.who FROM JSON_TABLE(a, '$.leases[*]' COLUMNS (i FOR ORDINALITY,
      name VARCHAR(700) CHARACTER SET utf8mb4 PATH '$.name', high BIGINT PATH '$.high')) r
    STRAIGHT_JOIN leasehold_revocation v FORCE INDEX (PRIMARY) ON v.name = CAST(r.name AS BINARY) AND v.token = r.high AND v.until > t;
  DECLARE EXIT HANDLER FOR SQLEXCEPTION BEGIN ROLLBACK AND NO CHAIN NO RELEASE; SET SESSION group_concat_max_len = usual; RESIGNAL; END;
  SET SESSION group_concat_max_len = 1000000000;
  SET TRANSACTION ISOLATION LEVEL READ COMMITTED;
  START TRANSACTION READ WRITE;
  -- The limit keeps the order.
  SELECT SUM(h.kind = 'exclusive' AND h.low = r.low AND h.high = r.high), MIN(h.until) INTO common, first_end
    FROM (SELECT j.name, j.owner, j.low, j.high FROM JSON_TABLE(a, '$.leases[*]' COLUMNS (
      name VARCHAR(700) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin PATH '$.name',
      owner CHAR(32) CHARACTER SET ascii COLLATE ascii_bin PATH '$.owner', low BIGINT PATH '$.low', high BIGINT PATH '$.high')) j
      ORDER BY j.name, j.owner LIMIT 1000000000) r
    STRAIGHT_JOIN leasehold_hold h FORCE INDEX (PRIMARY) ON h.name = CAST(r.name AS BINARY) AND h.owner = r.owner FOR UPDATE;
  SET t = TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6));
  IF common = JSON_LENGTH(a, '$.leases') AND first_end > t THEN
    SET answer = CONCAT('[', REPEAT('{"wanted":false},', common - 1), '{"wanted":false}]');
  ELSE
    SELECT CONCAT('[', GROUP_CONCAT(IF(h.until > t, IF(h.kind <> 'exclusive' AND EXISTS (SELECT 1 FROM leasehold_place p
        WHERE p.name = h.name AND p.until > t), '{"wanted":true}', '{"wanted":false}'), '{"revoked_by":null}') ORDER BY r.i SEPARATOR ','), ']')
      INTO answer FROM JSON_TABLE(a, '$.leases[*]' COLUMNS (i FOR ORDINALITY, name VARCHAR(700) CHARACTER SET utf8mb4 PATH '$.name',
        owner CHAR(32) CHARACTER SET ascii COLLATE ascii_bin PATH '$.owner', low BIGINT PATH '$.low', high BIGINT PATH '$.high')) r
      LEFT JOIN leasehold_hold h FORCE INDEX (PRIMARY)
        ON h.name = CAST(r.name AS BINARY) AND h.owner = r.owner AND h.low = r.low AND h.high = r.high;
    IF LOCATE('revoked_by', answer) > 0 THEN
      revocations: BEGIN
        DECLARE EXIT HANDLER FOR NOT FOUND BEGIN END;
        OPEN revoked;
        LOOP
          FETCH revoked INTO i, by_note;
          SET answer = JSON_REPLACE(answer, CONCAT('$[', i - 1, '].revoked_by'), by_note);
        END LOOP;
      END revocations;
    END IF;
  END IF;
  -- Only updates: the rows are there. (An UPDATE of a join would write a file in MariaDB.)
  INSERT INTO leasehold_hold SELECT h.name, h.owner, '', 0, 0, 0, 0, '', NULL, t + r.ttl, '', FALSE
    FROM JSON_TABLE(a, '$.leases[*]' COLUMNS (name VARCHAR(700) CHARACTER SET utf8mb4 PATH '$.name',
      owner CHAR(32) CHARACTER SET ascii COLLATE ascii_bin PATH '$.owner', low BIGINT PATH '$.low', high BIGINT PATH '$.high',
      ttl BIGINT PATH '$.ttl')) r
    STRAIGHT_JOIN leasehold_hold h FORCE INDEX (PRIMARY)
      ON h.name = CAST(r.name AS BINARY) AND h.owner = r.owner AND h.low = r.low AND h.high = r.high AND h.until > t
    ON DUPLICATE KEY UPDATE until = VALUES(until);
  CALL leasehold_check();
  COMMIT AND NO CHAIN NO RELEASE;
  SET SESSION group_concat_max_len = usual;
  SELECT answer;
END //

-- What operators see of a lock: its owners stay secret.
CREATE PROCEDURE leasehold_shown(IN n VARBINARY(700), IN t BIGINT, OUT answer LONGTEXT CHARACTER SET utf8mb4) READS SQL DATA SQL SECURITY DEFINER
BEGIN
  DECLARE leases, waiters INT;
  DECLARE owners LONGTEXT CHARACTER SET ascii COLLATE ascii_bin;
  DECLARE holds, queue LONGTEXT CHARACTER SET utf8mb4;
  SELECT GROUP_CONCAT(owner ORDER BY until DESC, owner DESC SEPARATOR '') INTO owners FROM
    (SELECT owner, until FROM leasehold_hold WHERE name = n AND until > t ORDER BY until DESC, owner DESC LIMIT 100) h;
  CALL leasehold_holds(n, owners, TRUE, holds);
  SELECT GROUP_CONCAT(JSON_OBJECT('kind', kind, 'count', count, 'lim', lim, 'note', note, 'joined', joined) ORDER BY number SEPARATOR ',')
    INTO queue FROM (SELECT kind, count, lim, note, joined, number FROM leasehold_place WHERE name = n AND until > t ORDER BY number LIMIT 100) p;
  SELECT COUNT(*) INTO leases FROM leasehold_hold WHERE name = n AND until > t;
  SELECT COUNT(*) INTO waiters FROM leasehold_place WHERE name = n AND until > t;
  SET answer = CONCAT('{"name":', JSON_QUOTE(CONVERT(n USING utf8mb4)), ',"now":', t, ',"holds":', holds, ',"leases":', leases,
    ',"queue":[', COALESCE(queue, ''), '],"waiters":', waiters, '}');
END //

CREATE PROCEDURE leasehold_show_1(IN a LONGTEXT CHARACTER SET utf8mb4) READS SQL DATA SQL SECURITY DEFINER
BEGIN
  DECLARE n VARBINARY(700);
  DECLARE answer LONGTEXT CHARACTER SET utf8mb4;
  DECLARE usual BIGINT UNSIGNED DEFAULT @@group_concat_max_len;
  DECLARE EXIT HANDLER FOR SQLEXCEPTION BEGIN ROLLBACK AND NO CHAIN NO RELEASE; SET SESSION group_concat_max_len = usual; RESIGNAL; END;
  SET SESSION group_concat_max_len = 1000000000;
  SET TRANSACTION ISOLATION LEVEL REPEATABLE READ;
  START TRANSACTION WITH CONSISTENT SNAPSHOT, READ ONLY;
  SELECT j.name INTO n FROM JSON_TABLE(a, '$' COLUMNS (name VARCHAR(700) CHARACTER SET utf8mb4 PATH '$.name')) j;
  CALL leasehold_shown(n, TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)), answer);
  COMMIT AND NO CHAIN NO RELEASE;
  SET SESSION group_concat_max_len = usual;
  SELECT answer;
END //

CREATE PROCEDURE leasehold_list_1(IN a LONGTEXT CHARACTER SET utf8mb4) READS SQL DATA SQL SECURITY DEFINER
BEGIN
  DECLARE x, behind, beginning VARBINARY(700);
  DECLARE most INT;
  DECLARE t BIGINT;
  DECLARE done BOOLEAN DEFAULT FALSE;
  DECLARE one, answer LONGTEXT CHARACTER SET utf8mb4;
  DECLARE usual BIGINT UNSIGNED DEFAULT @@group_concat_max_len;
  -- No UTF-8 has the byte FF.
  DECLARE candidates CURSOR FOR SELECT DISTINCT name FROM leasehold_hold
    WHERE name > behind AND name >= beginning AND name < CONCAT(beginning, X'FF') AND until > t ORDER BY name LIMIT most;
  DECLARE CONTINUE HANDLER FOR NOT FOUND SET done = TRUE;
  DECLARE EXIT HANDLER FOR SQLEXCEPTION BEGIN ROLLBACK AND NO CHAIN NO RELEASE; SET SESSION group_concat_max_len = usual; RESIGNAL; END;
  SET SESSION group_concat_max_len = 1000000000;
  SET TRANSACTION ISOLATION LEVEL REPEATABLE READ;
  START TRANSACTION WITH CONSISTENT SNAPSHOT, READ ONLY;
  SELECT j.behind, j.beginning, j.most INTO behind, beginning, most FROM JSON_TABLE(a, '$' COLUMNS (
    behind VARCHAR(700) CHARACTER SET utf8mb4 PATH '$.after', beginning VARCHAR(700) CHARACTER SET utf8mb4 PATH '$.prefix',
    most INT PATH '$.most')) j;
  SET t = TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6));
  OPEN candidates;
  listing: LOOP
    FETCH candidates INTO x;
    IF done THEN LEAVE listing; END IF;
    CALL leasehold_shown(x, t, one);
    SET answer = CONCAT_WS(',', answer, one);
  END LOOP;
  COMMIT AND NO CHAIN NO RELEASE;
  SET SESSION group_concat_max_len = usual;
  SELECT CONCAT('[', COALESCE(answer, ''), ']') AS answer;
END //

-- A latch as it was at one moment, and the clock after that.
CREATE PROCEDURE leasehold_load_latch_1(IN a LONGTEXT CHARACTER SET utf8mb4) READS SQL DATA SQL SECURITY DEFINER
BEGIN
  DECLARE n VARBINARY(700);
  DECLARE my_id VARBINARY(200);
  DECLARE t, l_generation BIGINT;
  DECLARE latch, answer LONGTEXT CHARACTER SET utf8mb4;
  DECLARE EXIT HANDLER FOR SQLEXCEPTION BEGIN ROLLBACK AND NO CHAIN NO RELEASE; RESIGNAL; END;
  SET TRANSACTION ISOLATION LEVEL REPEATABLE READ;
  START TRANSACTION WITH CONSISTENT SNAPSHOT, READ ONLY;
  SELECT j.name, j.id INTO n, my_id FROM JSON_TABLE(a, '$' COLUMNS (
    name VARCHAR(700) CHARACTER SET utf8mb4 PATH '$.name', id VARCHAR(200) CHARACTER SET utf8mb4 PATH '$.id')) j;
  -- In MySQL, null is the string 'null' here; numbers become NULL in both.
  IF JSON_TYPE(JSON_EXTRACT(a, '$.id')) = 'NULL' THEN SET my_id = NULL; END IF;
  SELECT generation, JSON_OBJECT('version', version, 'until', until, 'generation', generation, 'expected', expected, 'arrived', arrived,
    'completed', completed) INTO l_generation, latch FROM leasehold_latch WHERE name = n;
  SET t = TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6));
  SELECT JSON_OBJECT('now', t + 0, 'latch', JSON_EXTRACT(latch, '$'),
    'has_arrived', JSON_EXTRACT(IF(EXISTS
      (SELECT 1 FROM leasehold_arrival WHERE name = n AND generation = l_generation AND id = my_id), 'true', 'false'), '$'),
    'arrived_before', (SELECT called FROM leasehold_arrival WHERE name = n AND generation < l_generation AND id = my_id
      ORDER BY generation DESC LIMIT 1)) INTO answer;
  COMMIT AND NO CHAIN NO RELEASE;
  SELECT answer;
END //

-- Writes what a request has decided about a latch, unless the latch has changed or expired since: then false.
CREATE PROCEDURE leasehold_commit_latch_1(IN a LONGTEXT CHARACTER SET utf8mb4) MODIFIES SQL DATA SQL SECURITY DEFINER
BEGIN
  DECLARE n, x VARBINARY(700);
  DECLARE my_id VARBINARY(200);
  DECLARE t, my_version, my_until, my_generation, my_expected, my_arrived, my_completed, my_call, l_version, l_until, l_generation BIGINT;
  DECLARE found, done BOOLEAN DEFAULT FALSE;
  DECLARE answer VARCHAR(5) CHARACTER SET utf8mb4 DEFAULT 'false';
  DECLARE candidates CURSOR FOR SELECT name FROM leasehold_latch WHERE until < t - 86400000000 LIMIT 8;
  DECLARE EXIT HANDLER FOR SQLEXCEPTION BEGIN ROLLBACK AND NO CHAIN NO RELEASE; RESIGNAL; END;
  SET TRANSACTION ISOLATION LEVEL READ COMMITTED;
  START TRANSACTION READ WRITE;
  body: BEGIN
    DECLARE CONTINUE HANDLER FOR NOT FOUND SET done = TRUE;
    -- Another client has made the latch.
    DECLARE EXIT HANDLER FOR 1062 SET answer = 'false';
    SELECT j.name, j.version, j.until, j.generation, j.expected, j.arrived, j.completed, j.id, j.called
      INTO n, my_version, my_until, my_generation, my_expected, my_arrived, my_completed, my_id, my_call
      FROM JSON_TABLE(a, '$' COLUMNS (name VARCHAR(700) CHARACTER SET utf8mb4 PATH '$.name', version BIGINT PATH '$.version',
        until BIGINT PATH '$.until', generation BIGINT PATH '$.generation', expected BIGINT PATH '$.expected', arrived BIGINT PATH '$.arrived',
        completed BIGINT PATH '$.completed', id VARCHAR(200) CHARACTER SET utf8mb4 PATH '$.id', called BIGINT PATH '$.call')) j;
    IF JSON_TYPE(JSON_EXTRACT(a, '$.id')) = 'NULL' THEN SET my_id = NULL; END IF;
    SELECT version, until, generation INTO l_version, l_until, l_generation FROM leasehold_latch WHERE name = n FOR UPDATE;
    SET t = TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6));
    IF COALESCE(l_version, 0) <> my_version OR (l_until <= t AND l_generation = my_generation) THEN LEAVE body; END IF;
    SET my_version = GREATEST(my_version + 1, t), my_until = GREATEST(my_until, COALESCE(l_until, 0));
    IF l_version IS NULL THEN
      INSERT INTO leasehold_latch VALUES (n, my_version, my_until, my_generation, my_expected, my_arrived, my_completed);
      SET done = FALSE;
      OPEN candidates;
      sweep: LOOP
        FETCH candidates INTO x;
        IF done THEN LEAVE sweep; END IF;
        SELECT COUNT(*) INTO found FROM leasehold_latch WHERE name = x AND until < t - 86400000000 FOR UPDATE SKIP LOCKED;
        IF found THEN
          DELETE o FROM leasehold_arrival o FORCE INDEX (PRIMARY) WHERE o.name = x;
          DELETE FROM leasehold_latch WHERE name = x;
        END IF;
      END LOOP;
    ELSE
      IF l_generation <> my_generation THEN
        -- The ids of the generation that ends are kept, unless the latch had expired.
        DELETE o FROM leasehold_arrival o FORCE INDEX (PRIMARY) WHERE o.name = n AND (o.generation < l_generation OR l_until <= t);
      END IF;
      UPDATE leasehold_latch SET version = my_version, until = my_until, generation = my_generation, expected = my_expected,
        arrived = my_arrived, completed = my_completed WHERE name = n;
    END IF;
    IF my_id IS NOT NULL THEN INSERT INTO leasehold_arrival VALUES (n, my_generation, my_id, my_call); END IF;
    SET answer = 'true';
  END body;
  CALL leasehold_check();
  IF answer = 'true' THEN COMMIT AND NO CHAIN NO RELEASE; ELSE ROLLBACK AND NO CHAIN NO RELEASE; END IF;
  SELECT answer;
END //

-- Fences the transaction by the lease whose first token is this one. What the transaction reads afterwards, it reads under the lock.
CREATE PROCEDURE leasehold_fence_1(IN lock_name VARCHAR(700) CHARACTER SET utf8mb4, IN first_token BIGINT, IN lock_token BIGINT)
  MODIFIES SQL DATA SQL SECURITY DEFINER
BEGIN
  DECLARE n VARBINARY(700) DEFAULT lock_name;
  DECLARE t, i_high, i_token, i_fences, read_token, read_fences, h_until BIGINT;
  DECLARE message VARCHAR(128) CHARACTER SET utf8mb4;
  DECLARE EXIT HANDLER FOR 1305 SIGNAL SQLSTATE 'LH003' SET MESSAGE_TEXT = 'a fence needs a transaction: begin one first';
  -- With innodb_snapshot_isolation, the server finds it first.
  DECLARE EXIT HANDLER FOR 1020 BEGIN
    ROLLBACK AND NO CHAIN NO RELEASE;
    SIGNAL SQLSTATE 'LH002' SET MESSAGE_TEXT = 'the transaction has read too early: begin again';
  END;
  -- Without a transaction, the savepoint is not there.
  SAVEPOINT leasehold_fence;
  RELEASE SAVEPOINT leasehold_fence;
  SELECT high, token, fences INTO i_high, i_token, i_fences FROM leasehold_identity WHERE name = n AND low = first_token FOR UPDATE;
  SET t = TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6));
  IF lock_token >= first_token AND lock_token <= i_high AND i_token <= lock_token THEN
    -- At REPEATABLE READ, this is as old as the first statement that has read anything.
    SELECT i.token, i.fences, h.until INTO read_token, read_fences, h_until FROM leasehold_identity i
      LEFT JOIN leasehold_hold h ON h.name = i.name AND h.owner = i.owner WHERE i.name = n AND i.low = first_token;
    IF NOT (i_token <=> read_token AND i_fences <=> read_fences) THEN
      SET message = CONCAT('another transaction was fenced by the lock "', LEFT(lock_name, 16), '" after this one had begun to read: begin again');
      ROLLBACK AND NO CHAIN NO RELEASE;
      SIGNAL SQLSTATE 'LH002' SET MESSAGE_TEXT = message;
    END IF;
    UPDATE leasehold_identity SET token = lock_token, fences = fences + 1 WHERE name = n AND low = first_token AND t < h_until;
  END IF;
  IF h_until IS NULL OR h_until <= t THEN
    SET message = CONCAT('the lock "', LEFT(COALESCE(lock_name, 'NULL'), 60), '" is not held with the token ', COALESCE(lock_token, 'NULL'));
    -- Otherwise the gap where the lease would be stays locked, and others get no lease there.
    ROLLBACK AND NO CHAIN NO RELEASE;
    SIGNAL SQLSTATE 'LH001' SET MESSAGE_TEXT = message;
  END IF;
END //

-- Fences the transaction: until it ends, nobody else gets the lock, though the lease may expire. Raises LH001 unless this is the token of a
-- lease that is held, and no later turn under the lease was fenced. Waits for other transactions that are fenced by the lease, and raises
-- LH002 if the transaction had begun to read before one of them has ended: roll back, and begin again.
--
-- It has to be the first statement of the transaction, so that everything that is read afterwards is read under the lock. (At SERIALIZABLE,
-- what it reads is locked too, and renewals wait for the transaction: use a lower level.)
CREATE PROCEDURE leasehold_fence(IN lock_name VARCHAR(700) CHARACTER SET utf8mb4, IN lock_token BIGINT) MODIFIES SQL DATA SQL SECURITY DEFINER
BEGIN
  DECLARE n VARBINARY(700) DEFAULT lock_name;
  DECLARE first_token BIGINT;
  SELECT low INTO first_token FROM leasehold_identity WHERE name = n AND low <= lock_token ORDER BY low DESC LIMIT 1;
  CALL leasehold_fence_1(lock_name, COALESCE(first_token, lock_token), lock_token);
END //

-- The layout, and the oldest client that can use it. It comes last: a client that finds it finds everything.
CREATE TABLE IF NOT EXISTS leasehold_layout (version INT PRIMARY KEY, oldest INT NOT NULL, swept VARBINARY(700) NOT NULL DEFAULT '')
  ENGINE = InnoDB ROW_FORMAT = DYNAMIC //
INSERT INTO leasehold_layout (version, oldest) VALUES (1, 1) //
DELIMITER ;
