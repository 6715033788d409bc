-- The permits of each semaphore: how many its leases have, and which slots. Both are as the rows of `holds` say, whether these have
-- expired or not. See `permits.rs`.

-- One table for all, because each table that a commit changes is another page to write. Its rows are of three kinds:
--   0  the number of permits (`value`);
--   1  a slot that is taken, and the owner who took it last (`value`): an earlier program takes the slots of a lease that has expired and
--      is still there;
--   2  a slot that is taken while the next one is free. Free are that one and all up to the next slot that is taken, and so from slot 0.
CREATE TABLE permits(
    name TEXT NOT NULL, kind INTEGER NOT NULL, slot INTEGER NOT NULL, value ANY NOT NULL, PRIMARY KEY(name, kind, slot)
) STRICT, WITHOUT ROWID;

-- What the leases have that are there already. The text of slots is a JSON array without its brackets; one that is damaged has no slots here.
INSERT INTO permits(name, kind, slot, value)
    SELECT name, 0, 0, sum(json_array_length(iif(json_valid('[' || slots || ']'), '[' || slots || ']', '[]'))) FROM holds WHERE slots <> '' GROUP BY name;
INSERT OR REPLACE INTO permits(name, kind, slot, value)
    SELECT name, 1, each.value, owner FROM holds, json_each(iif(json_valid('[' || slots || ']'), '[' || slots || ']', '[]')) AS each
    WHERE each.type = 'integer' ORDER BY expires_ns, owner;
INSERT INTO permits(name, kind, slot, value)
    SELECT name, 2, slot, '' FROM permits AS taken WHERE kind = 1 AND NOT EXISTS (
        SELECT 1 FROM permits AS next WHERE next.name = taken.name AND next.kind = 1 AND next.slot = taken.slot + 1
    );

-- What a program that does not know this table does to it. No program changes the slots of a row in place.

-- An `INSERT OR REPLACE` removes the row of before without its trigger, so that row is deleted first. In the triggers that it fires, its
-- conflict clause is in force instead of their own.
CREATE TRIGGER permits_replaced BEFORE INSERT ON holds WHEN NEW.slots <> '' BEGIN
    DELETE FROM holds WHERE name = NEW.name AND owner = NEW.owner;
END;
CREATE TRIGGER permits_taken AFTER INSERT ON holds
WHEN NEW.slots <> '' AND json_valid('[' || NEW.slots || ']') BEGIN
    INSERT INTO permits(name, kind, slot, value) VALUES (NEW.name, 0, 0, json_array_length('[' || NEW.slots || ']'))
        ON CONFLICT DO UPDATE SET value = value + excluded.value;
    INSERT INTO slots_to_take SELECT NEW.name, value, NEW.owner FROM json_each('[' || NEW.slots || ']')
        WHERE type = 'integer';
END;
CREATE TRIGGER permits_returned AFTER DELETE ON holds
WHEN OLD.slots <> '' AND json_valid('[' || OLD.slots || ']') BEGIN
    UPDATE permits SET value = value - json_array_length('[' || OLD.slots || ']')
        WHERE name = OLD.name AND kind = 0 AND slot = 0;
    DELETE FROM permits WHERE name = OLD.name AND kind = 0 AND slot = 0 AND value = 0;
    INSERT INTO slots_to_return SELECT OLD.name, value, OLD.owner FROM json_each('[' || OLD.slots || ']')
        WHERE type = 'integer';
END;

-- Slot by slot: SQLite would look for the slots of a list among all those of the semaphore.
CREATE VIEW slots_to_take AS SELECT name, slot, value AS owner FROM permits WHERE kind = 1;
CREATE TRIGGER slot_taken INSTEAD OF INSERT ON slots_to_take BEGIN
    INSERT OR REPLACE INTO permits(name, kind, slot, value) VALUES (NEW.name, 1, NEW.slot, NEW.owner);
    INSERT OR REPLACE INTO permits(name, kind, slot, value) SELECT NEW.name, 2, NEW.slot, '' WHERE NOT EXISTS (
        SELECT 1 FROM permits WHERE name = NEW.name AND kind = 1 AND slot = NEW.slot + 1
    );
    DELETE FROM permits WHERE name = NEW.name AND kind = 2 AND slot = NEW.slot - 1;
END;
CREATE VIEW slots_to_return AS SELECT name, slot, value AS owner FROM permits WHERE kind = 1;
CREATE TRIGGER slot_returned INSTEAD OF INSERT ON slots_to_return
WHEN EXISTS (SELECT 1 FROM permits WHERE name = NEW.name AND kind = 1 AND slot = NEW.slot AND value = NEW.owner) BEGIN
    DELETE FROM permits WHERE name = NEW.name AND kind = 1 AND slot = NEW.slot;
    DELETE FROM permits WHERE name = NEW.name AND kind = 2 AND slot = NEW.slot;
    INSERT OR REPLACE INTO permits(name, kind, slot, value) SELECT NEW.name, 2, NEW.slot - 1, '' WHERE EXISTS (
        SELECT 1 FROM permits WHERE name = NEW.name AND kind = 1 AND slot = NEW.slot - 1
    );
END;
