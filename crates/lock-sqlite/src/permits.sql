-- The permits of each semaphore: how many its leases have, and which slots. Both are as the rows of `holds` say, whether these have
-- expired or not. See `permits.rs`.

CREATE TABLE permit_counts(name TEXT PRIMARY KEY, permits INTEGER NOT NULL) STRICT, WITHOUT ROWID;

-- A slot belongs to the owner who took it last: an earlier program takes the slots of a lease that has expired and is still there.
-- A slot is free if it is 0 or follows a slot whose `next_is_free` is set, and so are all from there to the next one that is taken.
CREATE TABLE taken_slots(
    name TEXT NOT NULL, slot INTEGER NOT NULL, owner TEXT NOT NULL, next_is_free INTEGER NOT NULL,
    PRIMARY KEY(name, slot)
) STRICT, WITHOUT ROWID;
CREATE INDEX slots_before_free ON taken_slots(name, slot) WHERE next_is_free = 1;

-- What the leases have that are there already. The text of slots is a JSON array without its brackets.
INSERT INTO permit_counts(name, permits)
    SELECT name, sum(json_array_length('[' || slots || ']')) FROM holds WHERE slots <> '' GROUP BY name;
INSERT OR REPLACE INTO taken_slots(name, slot, owner, next_is_free)
    SELECT name, value, owner, 1 FROM holds, json_each('[' || slots || ']') ORDER BY expires_ns, owner;
UPDATE taken_slots SET next_is_free = 0 WHERE EXISTS (
    SELECT 1 FROM taken_slots AS next WHERE next.name = taken_slots.name AND next.slot = taken_slots.slot + 1
);

-- What a program that does not know these tables does to them. No program changes the slots of a row in place.

-- An `INSERT OR REPLACE` removes the row of before without its trigger, so that row is deleted first. In the triggers that it fires, its
-- conflict clause is in force instead of their own.
CREATE TRIGGER permits_replaced BEFORE INSERT ON holds WHEN NEW.slots <> '' BEGIN
    DELETE FROM holds WHERE name = NEW.name AND owner = NEW.owner;
END;
CREATE TRIGGER permits_taken AFTER INSERT ON holds WHEN NEW.slots <> '' BEGIN
    INSERT INTO permit_counts(name, permits) VALUES (NEW.name, json_array_length('[' || NEW.slots || ']'))
        ON CONFLICT DO UPDATE SET permits = permits + excluded.permits;
    INSERT INTO slots_to_take SELECT NEW.name, value, NEW.owner FROM json_each('[' || NEW.slots || ']');
END;
CREATE TRIGGER permits_returned AFTER DELETE ON holds WHEN OLD.slots <> '' BEGIN
    UPDATE permit_counts SET permits = permits - json_array_length('[' || OLD.slots || ']') WHERE name = OLD.name;
    DELETE FROM permit_counts WHERE name = OLD.name AND permits = 0;
    INSERT INTO slots_to_return SELECT OLD.name, value, OLD.owner FROM json_each('[' || OLD.slots || ']');
END;

-- Slot by slot: SQLite would look for the slots of a list among all those of the semaphore.
CREATE VIEW slots_to_take AS SELECT name, slot, owner FROM taken_slots;
CREATE TRIGGER slot_taken INSTEAD OF INSERT ON slots_to_take BEGIN
    INSERT OR REPLACE INTO taken_slots(name, slot, owner, next_is_free)
        VALUES (NEW.name, NEW.slot, NEW.owner, NOT EXISTS (
            SELECT 1 FROM taken_slots WHERE name = NEW.name AND slot = NEW.slot + 1
        ));
    UPDATE taken_slots SET next_is_free = 0 WHERE name = NEW.name AND slot = NEW.slot - 1;
END;
CREATE VIEW slots_to_return AS SELECT name, slot, owner FROM taken_slots;
CREATE TRIGGER slot_returned INSTEAD OF INSERT ON slots_to_return BEGIN
    DELETE FROM taken_slots WHERE name = NEW.name AND slot = NEW.slot AND owner = NEW.owner;
    UPDATE taken_slots SET next_is_free = 1 WHERE name = NEW.name AND slot = NEW.slot - 1 AND NOT EXISTS (
        SELECT 1 FROM taken_slots WHERE name = NEW.name AND slot = NEW.slot
    );
END;
