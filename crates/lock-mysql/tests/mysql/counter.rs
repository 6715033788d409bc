//! Many who read a number and write the next one, under leases that end too early. Nothing is lost, because their transactions are fenced.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use lock_core::{Answer, Claim, Width};

use crate::support::{Client, Place, SOON, Session, claim, end, lasting, meanwhile};

const CLIENTS: usize = 8;
/// How long they go on at least ...
const TIME: Duration = Duration::from_secs(3);
/// ... and until they have counted this often ...
const ENOUGH: i64 = 10;
/// ... unless that takes longer than this.
const AT_MOST: Duration = Duration::from_secs(45);
/// How many races a fence that locks no row has to lose an update.
const RACES: usize = 10;
/// Shorter than many of the transactions.
const TTL: Duration = Duration::from_millis(100);

/// Counts under one turn of a lease; whether that was committed.
fn count(session: &Session, token: u64, pause: Duration) -> Result<(), mysql::Error> {
    session.begin("counter", token)?;
    let counted = {
        let number = session.value::<i64>("SELECT number FROM counter");
        thread::sleep(pause);
        session.run(&format!("UPDATE counter SET number = {number} + 1; COMMIT"))
    };
    counted.inspect_err(|_| session.run("ROLLBACK").unwrap())
}

/// Counts for a while, in two turns of each lease, and adds up how often all do.
fn keep_counting(client: &Client, session: &Session, counted: &AtomicI64) {
    let began = Instant::now();
    let is_enough = || began.elapsed() > TIME && counted.load(Ordering::Relaxed) > ENOUGH;
    while !is_enough() && began.elapsed() < AT_MOST {
        let claim = lasting(TTL, Claim { width: Width::for_waiters(2), ..claim("counter") });
        let Ok(Answer::Granted { lease, .. }) = client.acquire(&claim, SOON) else {
            thread::sleep(Duration::from_millis(5));
            continue;
        };
        for turn in [lease.tokens.low().get(), lease.tokens.high().get()] {
            let pause = Duration::from_millis(fastrand::u64(..150));
            counted.fetch_add(i64::from(count(session, turn, pause).is_ok()), Ordering::Relaxed);
        }
    }
}

/// How often was it counted, and what the number is then.
fn race(place: &Place, level: &str) -> [i64; 2] {
    let session = place.session();
    session.run("CREATE TABLE counter (number BIGINT); INSERT INTO counter VALUES (0)").unwrap();
    let counted = Arc::<AtomicI64>::default();
    let clients = (0..CLIENTS).map(|_| {
        let (client, session, counted) = (place.client(), place.session(), Arc::clone(&counted));
        session.run(&format!("SET SESSION TRANSACTION ISOLATION LEVEL {level}")).unwrap();
        meanwhile(move || keep_counting(&client, &session, &counted))
    });
    let clients: Vec<_> = clients.collect();
    clients.into_iter().for_each(end);
    [counted.load(Ordering::Relaxed), session.value("SELECT number FROM counter")]
}

#[test]
fn no_update_is_lost_though_leases_end_before_the_transactions_that_they_fence() {
    for level in ["READ COMMITTED", "REPEATABLE READ", "SERIALIZABLE"] {
        let [counted, number] = race(&Place::new(), level);
        assert!(counted > ENOUGH, "{level}: {counted}");
        assert_eq!(number, counted, "{level}");
    }
}

#[test]
fn updates_are_lost_if_a_fence_locks_no_row() {
    let is_lost = |_| {
        let [counted, number] = race(&Place::twin(&crate::twins::NO_LOCK), "READ COMMITTED");
        number < counted
    };
    assert!((0..RACES).any(is_lost), "{RACES} races");
}
