//! What is stored of a latch, and for how long.

use std::time::Duration;

use lock_core::latch::{Act, Request, Watching};
use lock_core::{BlockingBackend, Ttl};
use lock_sqlite::blocking::Sqlite;
use rusqlite::Connection;

use crate::rig::{Rig, WITHIN};

const TTL: Duration = Duration::from_secs(10);

fn arrive(client: &Sqlite, latch: &str, id: &str) -> u32 {
    let act = Act::Arrive { id: id.parse().unwrap(), call: 1, ttl: Ttl::new(TTL).unwrap() };
    let seen = client.latch(&Request { name: latch.parse().unwrap(), act }, WITHIN).unwrap();
    seen.state.unwrap().arrived
}

fn rows(rig: &Rig) -> (u32, u32) {
    let db = Connection::open(rig.path()).unwrap();
    let count = |sql: &str| db.query_row(sql, (), |row| row.get(0)).unwrap();
    (count("SELECT count(*) FROM latches"), count("SELECT count(*) FROM arrivals"))
}

#[test]
fn expired_latches_are_dropped_with_their_arrivals_along_the_way() {
    let rig = Rig::new();
    let client = rig.client();
    for number in 0..20 {
        let latch = format!("old {number}");
        assert_eq!((arrive(&client, &latch, "x"), arrive(&client, &latch, "y")), (1, 2));
    }
    assert_eq!(rows(&rig), (20, 40));
    rig.clock.advance(TTL);
    for number in 0..160 {
        arrive(&client, &format!("new {number}"), "x");
    }
    let (latches, arrivals) = rows(&rig);
    assert!(latches < 180 && arrivals < 200, "{latches} latches and {arrivals} arrivals");
    assert_eq!((arrive(&client, "old 19", "x"), arrive(&client, "old 19", "x")), (1, 1), "it begins anew");
}

#[test]
fn a_file_of_an_earlier_version_gets_latches() {
    let rig = Rig::new();
    drop(rig.client());
    let earlier = "DROP TABLE latches; DROP TABLE arrivals; DROP TABLE holds; ALTER TABLE queue DROP COLUMN kind;
        ALTER TABLE locks DROP COLUMN written_ns";
    Connection::open(rig.path()).unwrap().execute_batch(earlier).unwrap();
    let client = rig.client();
    let look = Request { name: "a".parse().unwrap(), act: Act::Look { watching: Watching::Wanted } };
    assert_eq!(client.latch(&look, WITHIN).unwrap().state, None);
    assert_eq!(arrive(&client, "a", "x"), 1);
}
