//! Processes compete for the same locks, and a process that dies blocks nothing permanently.

use std::time::Duration;

use lock_core::{Ability, Ticket};

use crate::Bench;
use crate::facade::options;
use crate::verbs::LONG;

/// Long enough for a child process to do something.
const TTL: Duration = Duration::from_secs(2);

/// A lock that one process holds goes to another only after its release, and then with a higher token.
pub fn processes_exclude_each_other(bench: &Bench) {
    let mut child = bench.child("a", LONG);
    child.waits();
    let held = child.held();
    let here = bench.shared();
    let client = here.client();
    assert!(client.try_acquire("a", &options(LONG)).unwrap().is_none(), "two processes hold it");
    assert_eq!(child.ask("check"), "held");
    assert_eq!(child.ask("release"), "released");
    let guard = client.try_acquire("a", &options(LONG)).unwrap().expect("nobody holds it");
    assert!(guard.token().get() > held.token);
}

/// A process that was killed holds its locks until its leases expire.
pub fn a_killed_holder_frees_the_lock_after_its_ttl_and_not_before(bench: &Bench) {
    let mut child = bench.child("a", TTL);
    child.waits();
    let held = child.held();
    child.kill();
    let here = bench.shared();
    let over_at = here.taken_over(&here.verbs(), "a", here.now() + TTL);
    assert!(over_at >= held.until, "over while the killed process could still have been working");
}

/// A process that was killed while it waited does not block the others.
pub fn a_killed_waiter_is_not_waited_for(bench: &Bench) {
    let here = bench.shared();
    let (one, two) = (here.client(), here.client());
    let guard = one.acquire("a", &options(LONG)).unwrap();
    let mut child = bench.child("a", TTL);
    child.waits();
    // Time enough to ask the store.
    here.elapse(Duration::from_millis(200));
    child.kill();
    let waiter = two.wait_for("a", &options(LONG));
    here.elapse(Duration::from_millis(100));
    let released_at = here.now();
    guard.release().unwrap();
    here.until("the next one has it", || waiter.is_finished());
    assert!(here.now().since(released_at) < LONG / 2);
}

/// A process that was stopped past its lease notices that as soon as it continues.
pub fn a_stopped_holder_knows_that_it_lost(bench: &Bench) {
    let mut child = bench.child("a", TTL);
    child.waits();
    let held = child.held();
    child.stop();
    let here = bench.shared();
    let over_at = here.taken_over(&here.verbs(), "a", here.now() + TTL);
    child.resume();
    assert_eq!(child.ask("check"), "lost");
    assert!(over_at >= held.until);
}

/// A process goes on with the lock that another one had, after that has ended.
pub fn a_process_goes_on_with_the_lock_of_another(bench: &Bench) {
    if bench.capabilities().check_ability(Ability::Replace).is_err() {
        return;
    }
    let mut child = bench.child("a", LONG);
    child.waits();
    let held = child.held();
    let ticket: Ticket = child.ask("detach").parse().unwrap();
    child.ends();
    let here = bench.shared();
    let client = here.client();
    assert!(client.try_acquire("a", &options(LONG)).unwrap().is_none(), "its end does not free the lock");
    let guard = client.mutex("a", &options(LONG)).adopt(&ticket).unwrap();
    assert!(guard.token().get() > held.token);
    super::tickets::is_over(&here.client().mutex("a", &options(LONG)), &ticket);
    guard.release().unwrap();
    client.try_acquire("a", &options(LONG)).unwrap().expect("nobody holds it");
}
