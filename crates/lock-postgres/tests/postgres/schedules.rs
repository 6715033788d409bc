//! Schedules in which one client is stopped between its load and its commit. Each is played with functions that break one rule, too: then it
//! goes wrong.

use std::thread;
use std::time::Duration;

use lock_core::latch::{Act, LatchState, Request};
use lock_core::{Answer, BackendError, Certainty, Claim, Mode, Released, Ttl};

use crate::support::{
    BRIEF, Client, GATE, Gate, Place, SOON, blocks_another, claim, end, granted, is_busy, is_queued, lasting,
    meanwhile, release_of, releases, take, waiting,
};

const COMMIT: &str = "IF a->'version' <> 'null' THEN\n    SELECT";
const LOAD: &str = "t := leasehold.clock();\n  SELECT coalesce(array_agg";
const COMMIT_LATCH: &str = "SELECT * INTO l FROM leasehold.latch WHERE name = n.name FOR UPDATE;";

/// A lease that lasts until a rival has loaded it.
const FOR_A_LOAD: Duration = Duration::from_secs(2);

/// Functions in which a client can be stopped at this fragment, and what else is changed.
fn gated(at: &str, changes: &[(&str, &str)]) -> Place {
    let gate = format!("{GATE}{at}");
    Place::twin(&[&[(at, gate.as_str())], changes].concat())
}

fn shared(name: &str) -> Claim {
    claim(name).in_mode(Mode::Shared)
}

/// A reader is stopped before its commit, for which the lock was free. Others come and go, and the last one holds it when the reader goes on.
fn reader_that_stalls(changes: &[(&str, &str)]) -> Result<Answer, BackendError> {
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
    granted(reader_that_stalls(&[("l.version IS DISTINCT FROM (a->>'version')::bigint OR ", "")]));
}

/// A rival has read when the lease ends, and is stopped before it reads the clock. It goes on when the lease would have ended, but was
/// renewed.
fn rival_with_an_old_snapshot(changes: &[(&str, &str)]) -> Result<Answer, BackendError> {
    let place = gated(LOAD, changes);
    let client = place.client();
    let held = take(&client, &lasting(FOR_A_LOAD, shared("report")));
    let (gate, rival) = (Gate::close(&place), place.client());
    let taking = meanwhile(move || rival.acquire(&claim("report"), SOON));
    gate.wait_for_one();
    let renewed = lock_core::Lease { terms: claim("report").in_mode(Mode::Shared).terms, ..held };
    let answers = client.renew(&[renewed], SOON).unwrap();
    assert!(matches!(answers[..], [lock_core::Renewed::Renewed { .. }]), "{answers:?}");
    thread::sleep(FOR_A_LOAD);
    gate.open();
    end(taking)
}

#[test]
fn a_lease_that_is_renewed_after_it_was_read_and_before_the_clock_was_is_not_taken_over() {
    is_busy(rival_with_an_old_snapshot(&[]));
}

#[test]
fn a_commit_that_compares_no_end_of_a_lease_takes_over_one_that_lives() {
    granted(rival_with_an_old_snapshot(&[("OR h.until <> x.until", "")]));
}

/// A renewal is decided, and its commit in flight, while a rival finds that the lease has ended. Returns the rival's answer after the
/// renewal has ended in this way.
fn rival_of_a_renewal(changes: &[(&str, &str)], end_of_renewal: &str) -> Result<Answer, BackendError> {
    let place = Place::twin(changes);
    let (client, renewing, watcher) = (place.client(), place.session(), place.session());
    let held = take(&client, &lasting(BRIEF, claim("report")));
    let (owner, token) = (held.owner.to_wire(), held.tokens.low());
    let renewal = format!(
        r#"{{"within": 20000, "leases": [{{"name": "report", "owner": "{owner}", "low": {token}, "high": {token}, "ttl": 60000000}}]}}"#
    );
    renewing.run("BEGIN").unwrap();
    assert_eq!(renewing.value::<String>(&format!("SELECT renew_1('{renewal}')->0->>'wanted'")), "false");
    thread::sleep(BRIEF + Duration::from_millis(100));
    let taking = meanwhile(move || client.acquire(&claim("report"), SOON));
    blocks_another(&watcher, renewing.pid());
    renewing.run(end_of_renewal).unwrap();
    end(taking)
}

#[test]
fn a_lease_whose_renewal_is_being_committed_is_not_taken_over() {
    is_busy(rival_of_a_renewal(&[], "COMMIT"));
    granted(rival_of_a_renewal(&[], "ROLLBACK"));
}

#[test]
fn a_commit_that_compares_no_end_of_a_lease_takes_over_one_whose_renewal_was_being_committed() {
    granted(rival_of_a_renewal(&[("OR h.until <> x.until", "")], "COMMIT"));
}

/// A release that has found an empty queue is stopped before its commit, and somebody queues. Returns whether somebody waits for a lock that
/// is free.
fn arrival_during_a_release(changes: &[(&str, &str)]) -> bool {
    let place = gated(COMMIT, changes);
    let (client, held) = (place.client(), claim("report"));
    take(&client, &held);
    let (gate, releasing) = (Gate::close(&place), place.client());
    let release = meanwhile(move || releasing.release(&held.release(Certainty::Unknown), SOON));
    gate.wait_for_one();
    is_queued(client.acquire(&waiting("report"), SOON), 1);
    gate.open();
    assert_eq!(end(release), Ok(Released::Released));
    place.session().value("SELECT EXISTS (SELECT FROM place) AND NOT EXISTS (SELECT FROM hold)")
}

#[test]
fn a_release_during_which_somebody_queues_hands_over() {
    assert!(!arrival_during_a_release(&[]));
}

#[test]
fn a_commit_that_compares_no_tail_frees_a_lock_that_somebody_waits_for() {
    assert!(arrival_during_a_release(&[(" OR l.tail <> coalesce((a->>'tail')::bigint, l.tail)", "")]));
}

/// The same for the release that one function does alone: it waits for the row of the lock while somebody queues.
fn arrival_during_a_lone_release(place: &Place) -> bool {
    let (client, held, [queueing, watcher]) = (place.client(), claim("report"), [place.session(), place.session()]);
    take(&client, &held);
    queueing.run("BEGIN; SELECT 1 FROM lock FOR NO KEY UPDATE").unwrap();
    let release = meanwhile(move || client.release(&release_of(&held), SOON));
    blocks_another(&watcher, queueing.pid());
    let owner = crate::support::new_owner().to_wire();
    let claim = format!(
        r#"{{"name": "report", "owner": "{owner}", "kind": "exclusive", "ttl": 60000000, "place": 9000000, "width": 1,
            "note": "", "queue": true, "channel": "", "tag": 1, "counted": 8, "within": 20000}}"#
    );
    assert_eq!(queueing.value::<String>(&format!("SELECT claim_1('{claim}')->>'position'")), "1");
    queueing.run("COMMIT").unwrap();
    assert_eq!(end(release), Ok(Released::Released));
    watcher.value("SELECT EXISTS (SELECT FROM place) AND NOT EXISTS (SELECT FROM hold)")
}

#[test]
fn a_lone_release_during_which_somebody_queues_hands_over() {
    assert!(!arrival_during_a_lone_release(&Place::new()));
}

#[test]
fn a_lone_release_that_reads_the_queue_before_it_has_the_lock_loses_a_wake_up() {
    let first =
        "SELECT * INTO p FROM leasehold.place o WHERE o.name = l.name AND o.until > t ORDER BY o.number LIMIT 1;";
    let row = "SELECT * INTO l FROM leasehold.lock WHERE name = a->>'name' FOR NO KEY UPDATE;\n  SELECT * INTO h FROM leasehold.hold o \
               WHERE o.name = l.name AND o.owner = (a->>'owner')::uuid FOR UPDATE";
    let early = format!("{}\n  {row}", first.replace("l.name", "a->>'name'").replace("> t", "> leasehold.clock()"));
    assert!(arrival_during_a_lone_release(&Place::twin(&[(first, ""), (row, &early)])));
}

fn arrive(client: &Client, id: &str, ttl: Duration) -> LatchState {
    let act = Act::Arrive { id: id.parse().unwrap(), call: 1, ttl: Ttl::new(ttl).unwrap() };
    client.latch(&Request { name: "start".parse().unwrap(), act }, SOON).unwrap().state.unwrap()
}

/// The latch expires between the load of an arrival and its commit. Returns it as it was before, and as it is then.
fn arrival_at_a_latch_that_expires(changes: &[(&str, &str)]) -> [LatchState; 2] {
    let place = gated(COMMIT_LATCH, changes);
    let client = place.client();
    let before = arrive(&client, "first", BRIEF);
    let (gate, late) = (Gate::close(&place), place.client());
    let arriving = meanwhile(move || arrive(&late, "second", Duration::from_secs(60)));
    gate.wait_for_one();
    thread::sleep(BRIEF + Duration::from_millis(100));
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
        arrival_at_a_latch_that_expires(&[(" OR (l.until <= t AND l.generation = n.generation)", "")]);
    assert_eq!((after.arrived, after.generation), (2, before.generation));
}
