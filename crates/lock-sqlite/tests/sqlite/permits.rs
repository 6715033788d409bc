//! What a file knows of the permits of a semaphore beside its leases.

use lock_host::Clock;
use lock_sqlite::blocking::Sqlite;

use crate::rig::{Ask, Rig, assert_slots, at_once, busy, granted, lasting, permits, secs};

/// What a file from before the counts lacks.
const UNCOUNTED: &str = "
    DROP TRIGGER permits_replaced; DROP TRIGGER permits_taken; DROP TRIGGER permits_returned;
    DROP VIEW slots_to_take; DROP VIEW slots_to_return; DROP TABLE permits";

fn slots(client: &Sqlite, count: u32) -> Vec<u32> {
    granted(client.ask(&permits("a", count, 9))).slots.get().to_vec()
}

#[test]
fn a_file_with_leases_from_before_the_counts_is_counted_when_it_is_opened() {
    let rig = Rig::new();
    let client = rig.client();
    let all = [1, 2, 1].map(|count| permits("a", count, 9));
    let brief = lasting("5s", all[0].clone());
    granted(client.ask(&brief));
    all[1..].iter().for_each(|claim| drop(granted(client.ask(claim))));
    rig.clock.advance(secs(5));
    drop(client);
    let raw = rig.raw();
    raw.execute_batch(UNCOUNTED).unwrap();
    // A program that does not count grants the slot of a lease that has expired and is still there.
    let again = "INSERT INTO holds SELECT name, 'ff' || substr(owner, 3), slots, low, high, note, boot, expires_ns * 2, written_ns
        FROM holds WHERE slots = '0'";
    assert_eq!(raw.execute(again, ()).unwrap(), 1);
    let client = rig.client();
    assert_slots(&raw, rig.clock.now());
    // The first ones were those of the lease that has expired.
    assert_eq!(slots(&client, 2), [4, 5]);
    client.part(&all[1]);
    assert_eq!(slots(&client, 3), [1, 2, 6]);
    assert_slots(&raw, rig.clock.now());
}

#[test]
fn a_sweep_returns_the_slots_of_forgotten_semaphores() {
    let rig = Rig::new();
    let client = rig.client();
    for name in ["a", "b", "c"] {
        [1, 3].iter().for_each(|count| drop(granted(client.ask(&permits(name, *count, 9)))));
    }
    rig.clock.advance(secs(30));
    (0..64).for_each(|number| drop(granted(client.ask(&permits(&format!("d{number}"), 1, 1)))));
    assert_slots(&rig.raw(), rig.clock.now());
    assert_eq!((rig.rows("holds"), rig.rows("permits")), (64, 3 * 64));
}

#[test]
fn leases_that_expire_together_are_counted_until_one_asks_again() {
    let rig = Rig::new();
    let client = rig.client();
    let wide = permits("a", 5, 9);
    granted(client.ask(&lasting("60s", wide)));
    (0..4).for_each(|_| drop(granted(client.ask(&permits("a", 1, 9)))));
    assert_eq!(busy(client.ask(&at_once(permits("a", 3, 9)))), secs(30));
    rig.clock.advance(secs(30));
    assert_eq!(slots(&client, 3), [5, 6, 7]);
    assert_slots(&rig.raw(), rig.clock.now());
    assert_eq!(rig.rows("holds"), 2);
}
