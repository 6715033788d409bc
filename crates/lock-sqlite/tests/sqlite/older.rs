//! A file that was made by the first version of this layout, and a program of that version beside this one. What such a
//! program does is repeated here by its own statements.

use std::sync::Arc;

use lock_core::{
    BlockingBackend, Certainty, Claim, ErrorKind, Lease, Moment, Owner, ReleaseRequest, Released, Renewed, StoreEvent,
};
use lock_host::{Clock, ManualClock};
use lock_sqlite::Timing;
use lock_sqlite::blocking::Sqlite;
use rusqlite::{Connection, OptionalExtension, named_params};

use crate::rig::{
    Ask, Rig, WITHIN, at_once, busy, claim, granted, impatient, lasting, low, permits, position, reader, secs,
};
use crate::watching::ear;

const MADE: &str = "
PRAGMA journal_mode = WAL;
BEGIN IMMEDIATE;
CREATE TABLE locks(
    name TEXT PRIMARY KEY, owner TEXT NOT NULL, low INTEGER NOT NULL, high INTEGER NOT NULL,
    note TEXT NOT NULL, boot TEXT NOT NULL, expires_ns INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE TABLE queue(
    name TEXT NOT NULL, place INTEGER NOT NULL, owner TEXT NOT NULL, ttl_ms INTEGER NOT NULL, width INTEGER NOT NULL,
    note TEXT NOT NULL, boot TEXT NOT NULL, expires_ns INTEGER NOT NULL, PRIMARY KEY(name, place)
) STRICT, WITHOUT ROWID;
CREATE TABLE tombstones(
    name TEXT NOT NULL, owner TEXT NOT NULL, boot TEXT NOT NULL, expires_ns INTEGER NOT NULL, PRIMARY KEY(name, owner)
) STRICT, WITHOUT ROWID;
CREATE TABLE counter(one INTEGER PRIMARY KEY CHECK(one = 1), last INTEGER NOT NULL) STRICT;
INSERT INTO counter VALUES (1, 1000);
PRAGMA application_id = 1818782827; PRAGMA user_version = 1;
COMMIT";

const HOLD: &str = "SELECT owner, low, high, note, expires_ns - :now FROM locks
    WHERE name = :name AND boot = :boot AND expires_ns > :now";
const SET_HOLD: &str = "INSERT OR REPLACE INTO locks(name, owner, low, high, note, boot, expires_ns)
    VALUES (:name, :owner, :low, :high, :note, :boot, :until)";
const CLEAR_HOLD: &str = "DELETE FROM locks WHERE name = :name";
const FIRST_PLACE: &str = "SELECT owner, ttl_ms, width, note, expires_ns - :now FROM queue
    WHERE name = :name AND boot = :boot AND expires_ns > :now ORDER BY place LIMIT 1";
const APPEND_PLACE: &str = "INSERT INTO queue(name, place, owner, ttl_ms, width, note, boot, expires_ns)
    SELECT :name, coalesce(max(place), 0) + 1, :owner, :ttl, :width, :note, :boot, :until FROM queue WHERE name = :name";
const DROP_PLACE: &str = "DELETE FROM queue WHERE name = :name AND owner = :owner";

/// A program of the first version.
struct Older {
    db: Connection,
    boot: String,
    clock: ManualClock,
}

impl Older {
    /// Makes a file, before any other program opens it.
    fn making(rig: &Rig) -> Self {
        let db = rig.raw();
        db.execute_batch(MADE).unwrap();
        Self { db, boot: lock_host::boot_id().unwrap().unwrap(), clock: rig.clock.clone() }
    }

    fn now(&self) -> i64 {
        nanos(self.clock.now())
    }

    fn hold(&self) -> Option<Owner> {
        let params = named_params! { ":name": "a", ":boot": self.boot, ":now": self.now() };
        let owner = self.db.query_row(HOLD, params, |row| row.get::<_, String>(0)).optional().unwrap();
        owner.map(|owner| owner.parse().unwrap())
    }

    fn grant(&self, owner: &str, width: i64, seconds: i64) {
        let last: i64 = self.db.query_row("SELECT last FROM counter", (), |row| row.get(0)).unwrap();
        self.db.execute("UPDATE counter SET last = ?1", [last + width]).unwrap();
        let params = named_params! {
            ":name": "a", ":owner": owner, ":low": last + 1, ":high": last + width, ":note": "h 1",
            ":boot": self.boot, ":until": self.now() + seconds * 1_000_000_000,
        };
        self.db.execute(SET_HOLD, params).unwrap();
    }

    /// Grants the lock, if nobody holds it, or else takes a place. Returns whether it was granted.
    fn acquire(&self, claim: &Claim) -> bool {
        let owner = claim.owner.to_wire();
        if self.hold().is_some() {
            let params = named_params! {
                ":name": "a", ":owner": owner, ":ttl": 30_000, ":width": 1, ":note": "h 1",
                ":boot": self.boot, ":until": self.now() + 10_000_000_000_i64,
            };
            self.db.execute(APPEND_PLACE, params).unwrap();
            return false;
        }
        self.grant(&owner, 1, 30);
        true
    }

    /// Ends whatever hold there is, and hands over to the first in line.
    fn hand_over(&self) {
        let params = named_params! { ":name": "a", ":boot": self.boot, ":now": self.now() };
        let next = self.db.query_row(FIRST_PLACE, params, |row| Ok((row.get::<_, String>(0)?, row.get::<_, i64>(2)?)));
        match next.optional().unwrap() {
            None => {
                self.db.execute(CLEAR_HOLD, named_params! { ":name": "a" }).unwrap();
            }
            Some((owner, width)) => {
                self.db.execute(DROP_PLACE, named_params! { ":name": "a", ":owner": owner }).unwrap();
                self.grant(&owner, width, 10);
            }
        }
    }
}

fn nanos(moment: Moment) -> i64 {
    i64::try_from(moment.as_nanos()).unwrap()
}

fn is_renewed(client: &impl Ask, lease: &Lease) -> bool {
    matches!(client.extend(lease), Renewed::Renewed { .. })
}

/// What older programs leave behind says when a lease was granted, and not when it was renewed.
#[test]
fn leases_of_an_older_program_end_with_a_reboot_that_they_prove_and_else_with_their_time() {
    let rig = Rig::new();
    rig.clock.advance(secs(200_000));
    let older = Older::making(&rig);
    let open = |note: &str| {
        older.grant(&claim("a").owner.to_wire(), 1, 30);
        older.db.execute("UPDATE locks SET note = ?1", [note]).unwrap();
        let timing = Timing::with_clock(Arc::new(ManualClock::new())).with_boot("another boot");
        Sqlite::open_with(&rig.config(), timing).unwrap()
    };
    // The clock of the new boot shows 3600 s.
    for note in ["4711@host", "3600~4711@host", "9~4711@host"] {
        busy(open(note).ask(&impatient("a")));
    }
    assert!(granted(open("3601~4711@host").ask(&impatient("a"))).tokens.low().get() > 1000);
}

#[test]
fn leases_that_an_older_program_times_by_the_wall_clock_are_waited_for() {
    let rig = Rig::new();
    let older = Older::making(&rig);
    older.grant(&claim("a").owner.to_wire(), 1, 30);
    let until = |seconds: i64| {
        let wall = i64::try_from(lock_host::since_1970().as_nanos()).unwrap();
        let until = wall + seconds * 1_000_000_000;
        older.db.execute("UPDATE locks SET boot = 'wall-clock', expires_ns = ?1", [until]).unwrap();
    };
    until(600);
    let error = Sqlite::open_with(&rig.config(), rig.timing()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Config);
    assert!(error.to_string().contains("wall clock"), "{error}");
    until(-1);
    granted(rig.client().ask(&impatient("a")));
}

#[test]
fn a_file_of_the_first_version_goes_on_with_its_holders_waiters_and_tokens() {
    let rig = Rig::new();
    let older = Older::making(&rig);
    let (holder, waiter) = (claim("a"), claim("a"));
    assert!(older.acquire(&holder) && !older.acquire(&waiter));
    let client = rig.client();
    let age = || client.holder(&holder.name, WITHIN).unwrap().unwrap().holders[0].age;
    assert_eq!((busy(client.ask(&impatient("a"))), age()), (secs(30), None));
    let lease = granted(client.ask(&holder));
    assert_eq!((low(&lease), is_renewed(&client, &lease)), (1001, true));
    assert_eq!(position(client.ask(&reader("a"))), 2);
    assert_eq!((age(), client.part(&holder)), (None, Released::Released));
    assert!(low(&granted(client.ask(&waiter))) > 1001 && age() < Some(secs(1)));
    // It is made complete once.
    drop((client, rig.client()));
    granted(rig.client().ask(&permits("b", 1, 2)));
}

#[test]
fn an_older_program_has_to_wait_until_the_last_of_several_holds_has_ended() {
    for (mode, several) in
        [(reader("a"), [reader("a"), reader("a")]), (permits("a", 2, 4), [(); 2].map(|()| permits("a", 1, 4)))]
    {
        let rig = Rig::new();
        let older = Older::making(&rig);
        let client = rig.client();
        let brief = lasting("5s", mode);
        granted(client.ask(&brief));
        several.iter().for_each(|claim| drop(granted(client.ask(claim))));
        assert!(older.hold().is_some());
        rig.clock.advance(secs(20));
        let lease = granted(client.ask(&several[0]));
        assert!(older.hold().is_some());
        rig.clock.advance(secs(29));
        let here = [&several[0], &several[1], &brief].map(|claim| older.hold() == Some(claim.owner));
        assert!(older.hold().is_some() && here == [false; 3]);
        assert!(is_renewed(&client, &lease));
        rig.clock.advance(secs(29));
        assert!(older.hold().is_some());
        client.part(&several[0]);
        assert!(older.hold().is_none());
        let old = claim("a");
        assert!(older.acquire(&old));
        assert!(!is_renewed(&client, &lease));
        busy(client.ask(&at_once(reader("a"))));
    }
}

#[test]
fn an_older_program_that_waits_is_served_in_its_turn() {
    let rig = Rig::new();
    let older = Older::making(&rig);
    let client = rig.client();
    let (first, old, last) = (reader("a"), claim("a"), reader("a"));
    granted(client.ask(&first));
    assert!(!older.acquire(&old));
    assert_eq!(position(client.ask(&last)), 2);
    client.part(&first);
    assert_eq!(older.hold(), Some(old.owner));
    assert_eq!(position(client.ask(&last)), 1);
    older.hand_over();
    // It took the reader for a writer: nobody else gets in until the reader has asked again.
    assert_eq!(older.hold(), Some(last.owner));
    busy(client.ask(&at_once(reader("a"))));
    let lease = granted(client.ask(&last));
    assert_eq!(busy(client.ask(&impatient("a"))), secs(30));
    granted(client.ask(&reader("a")));
    assert!(older.hold().is_some_and(|owner| owner != last.owner) && is_renewed(&client, &lease));
}

#[test]
fn what_an_older_program_hands_over_becomes_what_its_waiter_asked_for() {
    let rig = Rig::new();
    let older = Older::making(&rig);
    let (here, there) = (rig.client(), rig.client());
    let events = ear(&here);
    let two = permits("a", 2, 3);
    let old = claim("a");
    assert!(older.acquire(&old));
    // The name is in use as a lock until then.
    there.refusal(&two);
    let waiter = reader("a");
    position(here.ask(&waiter));
    older.hand_over();
    assert_eq!(events.recv_timeout(WITHIN), Ok(StoreEvent::Freed { name: waiter.name.clone() }));
    let lease = granted(here.ask(&waiter));
    assert!(is_renewed(&here, &lease));
    granted(there.ask(&reader("a")));
    here.part(&waiter);
    older.hand_over();
    assert!(older.hold().is_none());
    assert_eq!(granted(there.ask(&two)).slots.get(), [0, 1]);
    position(here.ask(&permits("a", 2, 3)));
}

/// To an older program, a kept lock has a holder that does not renew its lease.
#[test]
fn an_older_program_has_to_wait_while_a_lock_is_kept() {
    let rig = Rig::new();
    let older = Older::making(&rig);
    let client = rig.client();
    let mine = claim("a");
    let lease = granted(client.ask(&mine));
    let keep = |time| ReleaseRequest { keep: Some(time), ..mine.release(Certainty::Answered) };
    assert_eq!(client.release(&keep(secs(60)), WITHIN).unwrap(), Released::Released);
    assert_eq!((older.hold(), is_renewed(&client, &lease)), (Some(mine.owner.kept()), false));
    let old = claim("a");
    assert!(!older.acquire(&old));
    rig.clock.advance(secs(50));
    assert_eq!(client.release(&keep(secs(60)), WITHIN).unwrap(), Released::Released);
    rig.clock.advance(secs(9));
    assert!(older.hold().is_some());
    rig.clock.advance(secs(1));
    assert!(older.hold().is_none() && older.acquire(&old));
}

/// An operator's older program can end a lock without its holders' knowledge. Nobody holds it then.
#[test]
fn holds_that_an_older_program_has_ended_never_come_back() {
    let rig = Rig::new();
    let older = Older::making(&rig);
    let client = rig.client();
    let (lost, next) = (reader("a"), reader("a"));
    let lease = granted(client.ask(&lost));
    older.hand_over();
    assert!(!is_renewed(&client, &lease));
    granted(client.ask(&next));
    assert!(!is_renewed(&client, &lease));
    assert_eq!(client.release(&lost.release(Certainty::Answered), WITHIN).unwrap(), Released::NotHeld);
    client.part(&next);
    granted(client.ask(&impatient("a")));
}
