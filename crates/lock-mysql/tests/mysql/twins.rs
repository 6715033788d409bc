//! Procedures that break one rule each: then two clients hold one lock, or an update is lost. With those of the library, the same scenes
//! end well.

use std::thread;
use std::time::Duration;

use lock_core::{Answer, BackendError, Claim, ErrorKind, Mode, Width};

use crate::gates::{GATE, Gate};
use crate::support::{
    BRIEF, Place, SHORT, SOON, Session, claim, code, end, granted, is_busy, lasting, low, meanwhile, take,
    wait_for_the_end_of, waiting,
};
use crate::tellers::{Bank, READ, transfer};

type Changes<'a> = [(&'a str, &'a str)];

/// A takeover that does not look whether somebody is fenced.
const BLIND: (&str, &str) = (
    "SELECT low INTO free FROM leasehold_identity WHERE name = n AND low = h_low FOR UPDATE SKIP LOCKED;",
    "SET free = h_low;",
);
/// And leaves alone what a fence locks.
const DEAF: (&str, &str) =
    ("  DELETE FROM leasehold_identity WHERE name = n AND low = h_low;\n  IF h_slots", "  IF h_slots");
const NO_ENDS: (&str, &str) = (" OR h_until <> x_until", "");
const NO_TURNS: (&str, &str) = (" AND i_token <= lock_token", "");
const NO_SNAPSHOT: (&str, &str) =
    ("IF NOT (i_token <=> read_token AND i_fences <=> read_fences) THEN", "IF FALSE THEN");
pub(crate) const NO_LOCK: [(&str, &str); 2] = [
    ("WHERE name = n AND low = first_token FOR UPDATE;", "WHERE name = n AND low = first_token;"),
    (
        "UPDATE leasehold_identity SET token = lock_token, fences = fences + 1 WHERE name = n AND low = first_token AND t < h_until;",
        "",
    ),
];

fn bank_of(changes: &Changes<'_>) -> Bank {
    Bank::in_place(Place::twin(changes))
}

fn writes(session: &Session, read: i32, money: i32) {
    transfer(read, money).iter().for_each(|write| session.run(write).unwrap());
    session.run("COMMIT").unwrap();
}

/// The lease of a teller ends while its transaction is open. The next one takes over, if it can. Returns the money.
fn takeover(changes: &Changes<'_>) -> (i32, i32) {
    let bank = bank_of(changes);
    let (client, slow, quick) = (bank.place.client(), bank.place.session(), bank.place.session());
    slow.begin("till", low(&take(&client, &lasting(BRIEF, claim("till"))))).unwrap();
    let read = slow.value(READ);
    wait_for_the_end_of(BRIEF);
    let early = client.acquire(&claim("till"), SOON);
    if let Ok(Answer::Granted { lease, .. }) = &early {
        quick.begin("till", low(lease)).unwrap();
        writes(&quick, quick.value(READ), 20);
        writes(&slow, read, 10);
        return bank.money();
    }
    is_busy(early);
    writes(&slow, read, 10);
    quick.begin("till", low(&take(&client, &claim("till")))).unwrap();
    writes(&quick, quick.value(READ), 20);
    bank.money()
}

#[test]
fn a_takeover_that_looks_at_no_identities_loses_an_update() {
    assert_eq!(takeover(&[]), (70, 130));
    assert_eq!(takeover(&[BLIND, DEAF]), (90, 130));
}

#[test]
fn a_fence_that_locks_no_row_loses_an_update() {
    assert_eq!(takeover(&NO_LOCK), (90, 130));
}

/// Such a commit keeps the row of the lock from everybody else while it waits for the transaction of a user.
#[test]
fn a_commit_that_does_not_look_for_fences_stops_the_queue() {
    let place = Place::twin(&[BLIND]);
    let (client, user) = (place.client(), place.session());
    user.begin("stock", low(&take(&client, &lasting(BRIEF, claim("stock"))))).unwrap();
    wait_for_the_end_of(BRIEF);
    for _ in 0..2 {
        let error = client.acquire(&waiting("stock"), SHORT).unwrap_err();
        assert!([ErrorKind::Unavailable, ErrorKind::Timeout].contains(&error.kind()), "{error:?}");
    }
}

/// A rival has read when the lease ends, and is stopped before it reads the clock. It goes on when the lease would have ended, but was
/// renewed.
fn rival_with_an_old_snapshot(changes: &Changes<'_>) -> Result<Answer, BackendError> {
    /// Until a rival has loaded it.
    const TTL: Duration = Duration::from_secs(3);
    let load = "IF l_version IS NOT NULL THEN\n    SET t =";
    let gate = load.replace("SET t", &format!("{GATE}SET t"));
    let place = Place::twin(&[&[(load, gate.as_str())], changes].concat());
    let reading = |ttl| lasting(ttl, claim("report")).in_mode(Mode::Shared);
    let client = place.client();
    let held = take(&client, &reading(TTL));
    let (gate, rival) = (Gate::close(&place), place.client());
    let taking = meanwhile(move || rival.acquire(&claim("report"), SOON));
    gate.wait_for_one();
    let renewed = lock_core::Lease { terms: reading(Duration::from_secs(60)).terms, ..held };
    let answers = client.renew(&[renewed], SOON).unwrap();
    assert!(matches!(answers[..], [lock_core::Renewed::Renewed { .. }]), "{answers:?}");
    thread::sleep(TTL);
    gate.open();
    end(taking)
}

#[test]
fn a_commit_that_compares_no_end_of_a_lease_takes_over_one_that_lives() {
    is_busy(rival_with_an_old_snapshot(&[]));
    granted(rival_with_an_old_snapshot(&[NO_ENDS]));
}

fn two_turns(bank: &Bank) -> u64 {
    low(&take(&bank.place.client(), &Claim { width: Width::for_waiters(2), ..claim("till") }))
}

/// A process has passed the lock on to its next turn, which reads and writes in two transactions. The first turn comes back between them.
/// Returns the money, and the answer to the first turn.
fn turn_that_comes_back(changes: &Changes<'_>) -> (i32, Result<(), String>) {
    let bank = bank_of(changes);
    let (token, [first, second]) = (two_turns(&bank), [bank.place.session(), bank.place.session()]);
    first.begin("till", token).unwrap();
    first.run("COMMIT").unwrap();
    second.begin("till", token + 1).unwrap();
    let read = second.value(READ);
    second.run("COMMIT").unwrap();
    let told = first.begin("till", token).map(|()| writes(&first, first.value(READ), 10));
    second.begin("till", token + 1).unwrap();
    writes(&second, read, 20);
    (bank.money().0, told.map_err(|error| code(Err::<(), _>(error))))
}

#[test]
fn a_fence_that_compares_no_turns_loses_an_update() {
    assert_eq!(turn_that_comes_back(&[]), (80, Err("LH001".to_owned())));
    assert_eq!(turn_that_comes_back(&[NO_TURNS]), (80, Ok(())), "10 are lost");
}

/// While the transaction of the first turn is open, the second one begins. Whether it had to wait.
fn second_turn_waits(changes: &Changes<'_>) -> bool {
    let bank = bank_of(changes);
    let (token, [first, second]) = (two_turns(&bank), [bank.place.session(), bank.place.session()]);
    first.begin("till", token).unwrap();
    second.run("SET SESSION innodb_lock_wait_timeout = 1").unwrap();
    match second.begin("till", token + 1) {
        Ok(()) => false,
        Err(mysql::Error::MySqlError(told)) if told.code == 1205 => true,
        Err(other) => panic!("{other}"),
    }
}

#[test]
fn a_fence_that_locks_no_row_lets_two_turns_of_one_process_work_at_once() {
    assert!(second_turn_waits(&[]));
    assert!(!second_turn_waits(&NO_LOCK));
}

/// A transaction has read something before it is fenced, and another one of the lease has changed the account since. Returns the money of the
/// account, and the answer to the late one.
fn fence_behind_a_read(changes: &Changes<'_>) -> (i32, Result<(), String>) {
    let bank = bank_of(changes);
    let (token, [early, late]) = (two_turns(&bank), [bank.place.session(), bank.place.session()]);
    late.run("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ; START TRANSACTION").unwrap();
    late.value::<i64>("SELECT COUNT(*) FROM account");
    early.begin("till", token).unwrap();
    writes(&early, early.value(READ), 10);
    let told = late.fence("till", token).map(|()| writes(&late, late.value(READ), 20));
    late.run("ROLLBACK").unwrap();
    (bank.money().0, told.map_err(|error| code(Err::<(), _>(error))))
}

#[test]
fn a_fence_that_does_not_look_at_the_age_of_what_is_read_loses_an_update() {
    assert_eq!(fence_behind_a_read(&[]), (90, Err("LH002".to_owned())));
    assert_eq!(fence_behind_a_read(&[NO_SNAPSHOT]), (80, Ok(())), "10 are lost");
}
