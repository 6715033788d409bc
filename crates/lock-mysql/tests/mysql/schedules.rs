//! Schedules in which one client is stopped between its load and its commit. Each is played with procedures that break one rule, too: then it
//! goes wrong.

use std::time::Duration;

use lock_core::latch::{Act, LatchState, Request};
use lock_core::{Answer, BackendError, Certainty, Claim, Mode, ReleaseRequest, Released, Ttl};

use test_support::Product;
use test_support::bounds::wait_for;

use crate::gates::{GATE, Gate};
use crate::support::{
    BRIEF, Client, Place, SOON, claim, end, granted, is_busy, is_queued, lasting, meanwhile, release_of, releases,
    take, wait_for_the_end_of, waiting,
};

type Changes<'a> = [(&'a str, &'a str)];

const COMMIT: &str = "IF my_version IS NOT NULL THEN\n      SELECT";
const COMMIT_LATCH: &str = "SELECT version, until, generation INTO l_version, l_until, l_generation";

/// Procedures in which a client can be stopped at this fragment, and what else is changed.
fn gated(at: &str, changes: &Changes<'_>) -> Place {
    let gate = format!("{GATE}{at}");
    Place::twin(&[&[(at, gate.as_str())], changes].concat())
}

fn shared(name: &str) -> Claim {
    claim(name).in_mode(Mode::Shared)
}

/// A reader is stopped before its commit, for which the lock was free. Others come and go, and the last one holds it when the reader goes on.
fn reader_that_stalls(changes: &Changes<'_>) -> Result<Answer, BackendError> {
    let place = gated(COMMIT, changes);
    let (gate, client) = (Gate::close(&place), place.client());
    let stalled = place.client();
    let reading = meanwhile(move || stalled.acquire(&shared("report"), SOON));
    gate.wait_for_one();
    for _ in 0..3 {
        for other in [claim("report"), shared("report")] {
            take(&client, &other);
            releases(&client, &other);
        }
    }
    take(&client, &claim("report"));
    assert!(!reading.is_finished());
    gate.open();
    end(reading)
}

#[test]
fn a_client_that_stalls_before_its_commit_delays_nobody_and_decides_again() {
    is_busy(reader_that_stalls(&[]));
}

#[test]
fn a_commit_that_compares_no_version_takes_a_lock_that_is_held() {
    granted(reader_that_stalls(&[("l_version <> my_version OR ", "")]));
}

/// A release that has found an empty queue is stopped before its commit, and somebody queues. Returns whether somebody waits for a lock that
/// is free.
fn arrival_during_a_release(changes: &Changes<'_>) -> bool {
    let place = gated(COMMIT, changes);
    let (client, held) = (place.client(), claim("report"));
    take(&client, &held);
    let (gate, releasing) = (Gate::close(&place), place.client());
    let release = meanwhile(move || releasing.release(&held.release(Certainty::Unknown), SOON));
    gate.wait_for_one();
    // It does not look by itself.
    let queued = waiting("report");
    is_queued(place.client().acquire(&queued, SOON), 1);
    gate.open();
    assert_eq!(end(release), Ok(Released::Released));
    place.session().value("SELECT EXISTS (SELECT 1 FROM leasehold_place) AND NOT EXISTS (SELECT 1 FROM leasehold_hold)")
}

#[test]
fn a_release_during_which_somebody_queues_hands_over() {
    assert!(!arrival_during_a_release(&[]));
}

#[test]
fn a_commit_that_compares_no_tail_frees_a_lock_that_somebody_waits_for() {
    assert!(arrival_during_a_release(&[(" OR l_tail <> my_tail", "")]));
}

/// A client's next request would wait behind one that nobody waits for. MySQL has a limit of its own, of 50 s.
#[test]
fn a_request_that_waits_for_a_row_is_ended_by_the_server() {
    if Product::tested() == Product::Mysql {
        return;
    }
    let (place, held) = (Place::new(), claim("report"));
    let (client, user) = (place.client(), place.session());
    take(&client, &held);
    releases(&client, &held);
    user.run("BEGIN; SELECT * FROM leasehold_lock WHERE name = 'report' FOR UPDATE").unwrap();
    let ended = client.acquire(&claim("report"), BRIEF).unwrap_err();
    assert!(ended.kind().is_transient(), "{ended}");
    let watcher = place.session();
    let others = "SELECT COUNT(*) = 0 FROM information_schema.processlist WHERE db = DATABASE() AND command = 'Query' AND id <> CONNECTION_ID()";
    wait_for("the end of the request", || watcher.value::<bool>(others));
    user.run("ROLLBACK").unwrap();
    take(&client, &claim("report"));
}

fn arrive(client: &Client, id: &str, ttl: Duration) -> LatchState {
    let act = Act::Arrive { id: id.parse().unwrap(), call: 1, ttl: Ttl::new(ttl).unwrap() };
    client.latch(&Request { name: "start".parse().unwrap(), act }, SOON).unwrap().state.unwrap()
}

/// The latch expires between the load of an arrival and its commit. Returns it as it was before, and as it is then.
fn arrival_at_a_latch_that_expires(changes: &Changes<'_>) -> [LatchState; 2] {
    let place = gated(COMMIT_LATCH, changes);
    let client = place.client();
    let before = arrive(&client, "first", Duration::from_secs(2));
    let (gate, late) = (Gate::close(&place), place.client());
    let arriving = meanwhile(move || arrive(&late, "second", Duration::from_secs(60)));
    gate.wait_for_one();
    wait_for_the_end_of(Duration::from_secs(2));
    gate.open();
    [before, end(arriving)]
}

#[test]
fn a_latch_that_expires_before_the_commit_of_an_arrival_begins_anew() {
    let [before, after] = arrival_at_a_latch_that_expires(&[]);
    assert_eq!(after.arrived, 1);
    assert!(after.generation > before.generation);
}

#[test]
fn a_commit_that_does_not_look_at_the_clock_goes_on_with_a_latch_that_has_expired() {
    let [before, after] =
        arrival_at_a_latch_that_expires(&[(" OR (l_until <= t AND l_generation = my_generation)", "")]);
    assert_eq!((after.arrived, after.generation), (2, before.generation));
}

/// A reader is stopped before its commit while the lock is free. Its row is swept, and comes again when another client takes the lock and
/// leaves it kept.
fn reader_that_sleeps_for_days(changes: &Changes<'_>) -> Result<Answer, BackendError> {
    let place = gated(COMMIT, changes);
    let (client, session, first) = (place.client(), place.session(), claim("report"));
    take(&client, &first);
    releases(&client, &first);
    let (gate, stalled) = (Gate::close(&place), place.client());
    let reading = meanwhile(move || stalled.acquire(&shared("report"), SOON));
    gate.wait_for_one();
    session.run("DELETE FROM leasehold_lock WHERE name = 'report'").unwrap();
    let other = claim("report");
    take(&client, &other);
    let keep = Some(Duration::from_secs(60));
    client.release(&ReleaseRequest { keep, ..release_of(&other) }, SOON).unwrap();
    gate.open();
    end(reading)
}

#[test]
fn a_version_of_a_row_that_has_come_again_is_never_that_of_before() {
    is_busy(reader_that_sleeps_for_days(&[]));
}

/// A renewal is about to be committed while a rival finds that the lease has ended. The rival waits for it, as it has the row of the lease.
fn rival_of_a_renewal(changes: &Changes<'_>) -> Result<Answer, BackendError> {
    let written = "ON DUPLICATE KEY UPDATE until = VALUES(until);";
    let gate = format!("{written} {GATE}");
    let place = Place::twin(&[&[(written, gate.as_str())], changes].concat());
    let (client, rival, watcher) = (place.client(), place.client(), place.watcher());
    let held = take(&client, &lasting(BRIEF * 3, claim("report")));
    let gate = Gate::close(&place);
    let renewed = lock_core::Lease { terms: claim("report").terms, ..held };
    let renewing = meanwhile(move || client.renew(&[renewed], SOON));
    gate.wait_for_one();
    wait_for_the_end_of(BRIEF * 3);
    let taking = meanwhile(move || rival.acquire(&claim("report"), SOON));
    let waits = format!(
        "SELECT COUNT(*) > 0 FROM information_schema.PROCESSLIST WHERE db = '{}' AND info LIKE '%leasehold_hold%FOR UPDATE%'",
        place.database()
    );
    wait_for("the rival waits", || watcher.value::<bool>(&waits) || taking.is_finished());
    gate.open();
    end(renewing).unwrap();
    end(taking)
}

/// A rival waits for a row for a second at most, and may have been in vain on a busy machine.
fn told_to_a_rival_of_a_renewal(changes: &Changes<'_>) -> Answer {
    let mut answers = (0..10).filter_map(|_| rival_of_a_renewal(changes).ok());
    answers.next().expect("the rival was answered in time")
}

#[test]
fn a_lease_whose_renewal_is_being_committed_is_not_taken_over() {
    is_busy(Ok(told_to_a_rival_of_a_renewal(&[])));
    granted(Ok(told_to_a_rival_of_a_renewal(&[(" OR h_until <> x_until", "")])));
}
