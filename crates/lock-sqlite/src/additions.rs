//! What later versions added to the tables. The version of the layout stayed the same: programs that do not know an addition are safe
//! beside those that do.

/// The holds of a lock that several may hold at once, and the kind of a place: see `modes`. And latches.
///
/// They came later, and the version stayed the same, because a program that does not know them is safe beside one that does.
/// While there are living holds here, the lock's row in `locks` names an owner that nobody is, and lasts as long as
/// the longest of them. So such a program sees a lock that is held. It takes each place for an exclusive one: what it
/// hands over is held more strictly than its waiter asked for, until that waiter asks again.
const SEVERAL: &str = "
CREATE TABLE holds(
    name TEXT NOT NULL, owner TEXT NOT NULL, slots TEXT NOT NULL, low INTEGER NOT NULL, high INTEGER NOT NULL,
    note TEXT NOT NULL, boot TEXT NOT NULL, expires_ns INTEGER NOT NULL, PRIMARY KEY(name, owner)
) STRICT, WITHOUT ROWID;
CREATE INDEX holds_by_end ON holds(name, boot, expires_ns);
ALTER TABLE queue ADD COLUMN kind INTEGER NOT NULL DEFAULT 0;
CREATE TABLE latches(
    name TEXT PRIMARY KEY, generation INTEGER NOT NULL, expected INTEGER, arrived INTEGER NOT NULL, completed INTEGER,
    boot TEXT NOT NULL, expires_ns INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE TABLE arrivals(
    name TEXT NOT NULL, generation INTEGER NOT NULL, id TEXT NOT NULL, call TEXT NOT NULL,
    PRIMARY KEY(name, generation, id)
) STRICT, WITHOUT ROWID;
";

/// The limits of semaphores that were set: see `limits`. They came later still. A program that does not know them sees the limit in
/// force in the row of the lock, and refuses any other.
const LIMITS: &str = "
CREATE TABLE limits(
    name TEXT PRIMARY KEY, record TEXT NOT NULL, boot TEXT NOT NULL, expires_ns INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
";

/// Who revoked leases: see `revoking`. They came after that. A holder that does not know them learns that its lease is gone, and not from whom.
const REVOCATIONS: &str = "
CREATE TABLE revocations(
    name TEXT NOT NULL, token INTEGER NOT NULL, note TEXT NOT NULL, boot TEXT NOT NULL, expires_ns INTEGER NOT NULL,
    PRIMARY KEY(name, token)
) STRICT, WITHOUT ROWID;
";

/// When a row was written, which tells boots apart: see `boots`. A row that an older program wrote says 0, and one that it renewed
/// keeps the time from before. The rows of all boots are found by their ends.
const WRITTEN: &str = "
ALTER TABLE locks ADD COLUMN written_ns INTEGER NOT NULL DEFAULT 0;
ALTER TABLE holds ADD COLUMN written_ns INTEGER NOT NULL DEFAULT 0;
DROP INDEX holds_by_end;
CREATE INDEX holds_by_time ON holds(name, expires_ns);
";

/// Places by owner and by end, so that a waiter finds its own and the expired ones without reading the others.
///
/// The second index is one on an expression, so that only statements with that expression use it. SQLite would use one on the column where
/// the first places are asked for, also in an earlier program, and read and sort all places of the lock.
const QUEUE_INDEXES: &str = "
CREATE INDEX queue_by_owner ON queue(name, owner);
CREATE INDEX queue_by_time ON queue(name, expires_ns + 0);
";

/// How many permits the leases of each semaphore have, and which slots. Triggers keep the table right beside a program that does not know it.
const PERMITS: &str = include_str!("permits.sql");

/// What was added over time, by a table or index of each.
pub(crate) const ADDED: [(&str, &str); 6] = [
    ("holds", SEVERAL),
    ("limits", LIMITS),
    ("revocations", REVOCATIONS),
    ("holds_by_time", WRITTEN),
    ("queue_by_owner", QUEUE_INDEXES),
    ("permits", PERMITS),
];
