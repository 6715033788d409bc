//! What is stored of a limit that was set, and for how long.

use lock_core::limit::{Act, Record, Request};
use lock_core::{Answer, BlockingBackend, Claim, ErrorKind, Lease, Limit, Mode, Queueing, Width};
use lock_sqlite::blocking::Sqlite;

use crate::rig::{Rig, WITHIN, claim, secs};

fn set(client: &Sqlite, name: &str, known: u32, new: u32) {
    let limit = |number| Limit::new(number).unwrap();
    let request = Request { name: name.parse().unwrap(), known: limit(known), act: Act::Set(limit(new)) };
    client.limit(&request, WITHIN).unwrap();
}

fn permits(name: &str, count: u32, limit: u32) -> Claim {
    let mode = Mode::permits(count, limit).unwrap();
    let queueing = Queueing::Unwanted;
    Claim { width: Width::for_waiters(count as usize), queueing, ..claim(name).in_mode(mode) }
}

fn take(client: &Sqlite, claim: &Claim) -> Lease {
    match client.acquire(claim, WITHIN).unwrap() {
        Answer::Granted { lease, .. } => lease,
        other @ (Answer::Queued { .. } | Answer::Busy { .. }) => panic!("{other:?}"),
    }
}

#[test]
fn a_limit_is_remembered_for_days_and_then_dropped() {
    let rig = Rig::new();
    let client = rig.client();
    set(&client, "a", 4, 8);
    rig.clock.advance(Record::KEPT_FOR - secs(1));
    assert_eq!(take(&client, &permits("a", 4, 4)).terms.mode.limit(), Limit::new(8).ok());
    rig.clock.advance(secs(1));
    let refused = client.acquire(&permits("a", 1, 4), WITHIN).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::OtherKind, "the holder still has the limit in force: {refused}");
    rig.clock.advance(secs(3600));
    take(&client, &permits("a", 4, 4));
    assert_eq!(rig.rows("limits"), 1);
    set(&client, "b", 1, 2);
    assert_eq!(rig.rows("limits"), 1, "what has expired is dropped");
}

/// Such a program does not know the record, and is the first to hold.
#[test]
fn a_holder_of_an_earlier_version_is_counted_under_the_limit_in_force() {
    let rig = Rig::new();
    let client = rig.client();
    let record = |sql: &str| rig.raw().execute_batch(sql).unwrap();
    set(&client, "a", 2, 4);
    record("ALTER TABLE limits RENAME TO away; CREATE TABLE limits AS SELECT * FROM away WHERE 0");
    let first = permits("a", 2, 2);
    assert_eq!(take(&client, &first).terms.mode.limit(), Limit::new(2).ok());
    record("DROP TABLE limits; ALTER TABLE away RENAME TO limits");
    let lease = take(&client, &permits("a", 2, 4));
    assert_eq!((lease.slots.get(), lease.terms.mode.limit()), (&[2, 3][..], Limit::new(4).ok()));
    assert!(matches!(client.acquire(&permits("a", 1, 2), WITHIN), Ok(Answer::Busy { .. })));
    assert_eq!(take(&client, &first).slots.get(), [0, 1]);
}
