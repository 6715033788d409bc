//! Both facades contend for the same locks.

use lock_core::{Operation, Waiting};

use super::take_turns;
use crate::Bench;
use crate::facade::options;
use crate::verbs::LONG;

/// What one facade holds, the other does not get.
pub fn the_other_facade_is_refused(bench: &Bench) {
    let (one, other) = (bench.client(), bench.client_of(bench.facade().other()));
    let guard = one.acquire("a", &options(LONG)).unwrap();
    assert!(other.try_acquire("a", &options(LONG)).unwrap().is_none());
    let token = guard.token();
    guard.release().unwrap();
    let guard = other.try_acquire("a", &options(LONG)).unwrap().expect("nobody holds it");
    assert!(guard.token() > token);
    assert!(one.try_acquire("a", &options(LONG)).unwrap().is_none());
}

/// What one facade releases, the other gets if it waits.
pub fn the_other_facade_is_woken(bench: &Bench) {
    let (one, other) = (bench.client(), bench.client_of(bench.facade().other()));
    let guard = one.acquire("a", &options(LONG)).unwrap();
    let waiter = other.wait_for("a", &options(LONG));
    (0..20).for_each(|_| bench.pause());
    assert!(!waiter.is_finished());
    let released_at = bench.now();
    guard.release().unwrap();
    bench.until("the other facade has it", || waiter.is_finished());
    assert!(bench.now().since(released_at) < LONG / 2);
    waiter.outcome().unwrap().verify().unwrap();
}

/// Clients of both facades take turns, never two at once.
pub fn both_facades_never_hold_together(bench: &Bench) {
    let (one, other) = (bench.facade(), bench.facade().other());
    take_turns(bench, &[bench.client_of(one), bench.client_of(other), bench.client_of(one)]);
}

/// Two clients on one backend are both notified of their turns, as the capabilities say: neither has to ask again. A
/// place is refreshed now and then, so one such turn out of several is enough.
pub fn clients_of_one_backend_are_all_told(bench: &Bench) {
    let (holder, (clients, faults)) = (bench.client(), bench.clients_of_one_backend());
    for client in &clients {
        let mut told = bench.capabilities().waiting != Waiting::QueueWithPush;
        for _ in 0..3 {
            let guard = holder.acquire("a", &options(LONG)).unwrap();
            let asked = faults.ran(Operation::Acquire);
            let waiter = client.wait_for("a", &options(LONG));
            bench.until("it has asked", || faults.ran(Operation::Acquire) > asked);
            (0..20).for_each(|_| bench.pause());
            let asked = faults.calls(Operation::Acquire);
            guard.release().unwrap();
            bench.until("the waiter has it", || waiter.is_finished());
            waiter.outcome().unwrap().release().unwrap();
            told |= faults.calls(Operation::Acquire) == asked;
        }
        assert!(told, "it had to ask each time");
    }
}
