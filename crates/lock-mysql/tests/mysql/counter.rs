//! Many who read a number and write the next one, under leases that end too early. Nothing is lost, because their transactions are fenced.

use std::thread;
use std::time::{Duration, Instant};

use lock_core::{Answer, Claim, Width};

use crate::support::{Client, Place, SOON, Session, claim, end, lasting, meanwhile};

const CLIENTS: usize = 8;
/// How long they go on.
const TIME: Duration = Duration::from_secs(3);
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

/// Counts for a while, in two turns of each lease, and returns how often.
fn keep_counting(client: &Client, session: &Session) -> i64 {
    let (until, mut counted) = (Instant::now() + TIME, 0);
    while Instant::now() < until {
        let claim = lasting(TTL, Claim { width: Width::for_waiters(2), ..claim("counter") });
        let Ok(Answer::Granted { lease, .. }) = client.acquire(&claim, SOON) else {
            thread::sleep(Duration::from_millis(5));
            continue;
        };
        for turn in [lease.tokens.low().get(), lease.tokens.high().get()] {
            let pause = Duration::from_millis(fastrand::u64(..150));
            counted += i64::from(count(session, turn, pause).is_ok());
        }
    }
    counted
}

/// How often was it counted, and what the number is then.
fn race(place: &Place, level: &str) -> [i64; 2] {
    let session = place.session();
    session.run("CREATE TABLE counter (number BIGINT); INSERT INTO counter VALUES (0)").unwrap();
    let clients = (0..CLIENTS).map(|_| {
        let (client, session) = (place.client(), place.session());
        session.run(&format!("SET SESSION TRANSACTION ISOLATION LEVEL {level}")).unwrap();
        meanwhile(move || keep_counting(&client, &session))
    });
    let clients: Vec<_> = clients.collect();
    let counted = clients.into_iter().map(end).sum();
    [counted, session.value("SELECT number FROM counter")]
}

#[test]
fn no_update_is_lost_though_leases_end_before_the_transactions_that_they_fence() {
    for level in ["READ COMMITTED", "REPEATABLE READ", "SERIALIZABLE"] {
        let [counted, number] = race(&Place::new(), level);
        assert!(counted > 10, "{level}: {counted}");
        assert_eq!(number, counted, "{level}");
    }
}

#[test]
fn updates_are_lost_if_a_fence_locks_no_row() {
    let [counted, number] = race(&Place::twin(&crate::twins::NO_LOCK), "READ COMMITTED");
    assert!(number < counted, "{number}, {counted}");
}
