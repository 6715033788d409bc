//! A latch counts ids, once each, for its ttl, whatever becomes of the processes that arrived.

use std::time::Duration;

use lock_core::latch::{Act, ArrivalId, Count, LatchError, LatchState};
use lock_core::{Fenced, Operation, Released, Ttl};
use lock_memory::faults::Fault;

use crate::Bench;
use crate::bench::earliest_end;
use crate::verbs::{AMPLE, BRIEF, LONG, Verbs, claim};

fn arrival(id: &str, call: u64, ttl: Duration) -> Act {
    Act::Arrive { id: id.parse::<ArrivalId>().unwrap(), call, ttl: Ttl::new(ttl).unwrap() }
}

/// A new call of this id arrives at "a".
fn arrive(by: &Verbs, id: &str) -> LatchState {
    by.latch(arrival(id, lock_host::random_u64().unwrap(), LONG)).expect("an arrival is stored")
}

fn expect(by: &Verbs, count: u32) -> LatchState {
    let made = by.latch(Act::Make { ttl: Ttl::new(LONG).unwrap() }).expect("a latch is stored");
    expect_in(by, made, count)
}

/// The latch after a count for that generation.
fn expect_in(by: &Verbs, LatchState { generation, .. }: LatchState, count: u32) -> LatchState {
    let act = Act::Expect { count: Count::new(count).unwrap(), generation, ttl: Ttl::new(LONG).unwrap() };
    by.latch(act).expect("there is a latch")
}

fn reset(by: &Verbs, ended: LatchState) -> LatchState {
    let act = Act::Reset { generation: ended.generation, ttl: Ttl::new(LONG).unwrap() };
    by.latch(act).expect("a new generation is stored")
}

/// Ids count, not calls, no matter who makes them.
pub fn an_id_counts_once(bench: &Bench) {
    let (one, two) = (bench.verbs(), bench.verbs());
    assert_eq!(arrive(&one, "x").arrived, 1);
    assert_eq!(arrive(&one, "x").arrived, 1, "the same client");
    assert_eq!(arrive(&two, "x").arrived, 1, "another client");
    assert_eq!(arrive(&two, "y").arrived, 2);
    assert_eq!(one.look().map(|state| state.arrived), Some(2));
}

/// A process that arrives need not know how many are expected, nor wait until somebody knows. Who comes after the last one is not
/// counted.
pub fn arrivals_before_the_count_are_counted(bench: &Bench) {
    let (one, two) = (bench.verbs(), bench.verbs());
    arrive(&one, "x");
    arrive(&two, "y");
    let state = expect(&one, 3);
    assert_eq!((state.arrived, state.missing(), state.is_complete()), (2, Some(1), false));
    assert!(arrive(&two, "z").is_complete());
    assert_eq!(arrive(&one, "late").arrived, 3);
    assert!(one.look().is_some_and(|state| state.is_complete()));
}

/// A generation has one count.
pub fn another_count_is_refused_and_changes_nothing(bench: &Bench) {
    let (one, two) = (bench.verbs(), bench.client());
    arrive(&one, "x");
    expect(&one, 2);
    two.expect("a", 2).unwrap();
    match two.expect("a", 3) {
        Err(LatchError::OtherCount { expected, asked, .. }) => assert_eq!((expected.get(), asked.get()), (2, 3)),
        other => panic!("{other:?}"),
    }
    let state = expect_in(&one, one.look().unwrap(), 3);
    assert_eq!((state.expected.map(Count::get), state.arrived), (Some(2), 1));
    assert_eq!(one.look(), Some(state));
}

/// A latch that nobody uses any more is forgotten, but not before its time.
pub fn a_latch_lasts_for_its_ttl_and_no_longer(bench: &Bench) {
    let one = bench.verbs();
    let asked_at = bench.now();
    let first = one.latch(arrival("x", 1, BRIEF)).unwrap();
    bench.until("the latch is forgotten", || one.look().is_none());
    assert!(bench.now() >= earliest_end(asked_at, BRIEF), "forgotten too early");
    let again = arrive(&one, "y");
    assert_eq!((again.arrived, again.expected), (1, None));
    assert!(again.generation != first.generation, "the same generation as before");
}

/// Each arrival counts from now, and the longest ttl counts.
pub fn an_arrival_re_arms_the_ttl_and_never_shortens_it(bench: &Bench) {
    let one = bench.verbs();
    one.latch(arrival("x", 1, AMPLE));
    bench.elapse(AMPLE * 5 / 9);
    one.latch(arrival("y", 2, AMPLE));
    bench.elapse(AMPLE * 5 / 9);
    assert_eq!(one.look().map(|state| state.arrived), Some(2), "the second arrival did not re-arm it");
    one.latch(arrival("z", 3, LONG));
    one.latch(arrival("z", 4, BRIEF));
    bench.elapse(BRIEF * 2);
    assert_eq!(one.look().map(|state| state.arrived), Some(3), "a shorter ttl took away from a longer one");
}

/// A new generation has neither arrivals nor a count. It knows whether an earlier one was complete.
pub fn a_reset_begins_anew(bench: &Bench) {
    let (one, two) = (bench.verbs(), bench.verbs());
    arrive(&one, "x");
    let first = expect(&one, 1);
    assert!(first.is_complete());
    let second = reset(&two, first);
    assert!(second.generation > first.generation);
    assert_eq!((second.arrived, second.expected, second.completed), (0, None, Some(first.generation)));
    assert_eq!(arrive(&one, "x").arrived, 1, "an id counts once in each generation");
    let third = reset(&two, second);
    assert_eq!((third.arrived, third.completed), (0, Some(first.generation)), "the second one was not complete");
}

/// A reset names the generation that it ends.
pub fn a_reset_that_is_repeated_ends_one_generation(bench: &Bench) {
    let one = bench.verbs();
    let first = arrive(&one, "x");
    let second = reset(&one, first);
    arrive(&one, "y");
    let now = reset(&one, first);
    assert_eq!((now.generation, now.arrived), (second.generation, 1));
}

/// A call that was counted before a reset, but got no answer, is not counted again after it.
pub fn an_arrival_that_is_repeated_after_a_reset_is_not_counted(bench: &Bench) {
    let one = bench.verbs();
    let first = one.latch(arrival("x", 7, LONG)).unwrap();
    reset(&one, first);
    assert_eq!(one.latch(arrival("x", 7, LONG)).unwrap().arrived, 0, "a repetition was counted");
    assert_eq!(one.latch(arrival("x", 8, LONG)).unwrap().arrived, 1, "a new arrival was not counted");
}

/// A count names its generation: one that is late changes nothing.
pub fn a_count_that_is_repeated_after_a_reset_is_not_set(bench: &Bench) {
    let one = bench.verbs();
    let first = expect(&one, 2);
    let second = reset(&one, first);
    assert_eq!(expect_in(&one, first, 2).expected, None, "a repetition was set");
    assert_eq!(expect_in(&one, second, 3).missing(), Some(3), "a new count was not set");
}

/// The client repeats what was not answered, and the store counts it once.
pub fn an_arrival_without_an_answer_counts_once(bench: &Bench) {
    let ([one, _], faults) = bench.clients_of_one_backend();
    faults.fail_next(Operation::Latch, Fault::LostReply);
    let arriving = one.in_background(|client| client.arrive("a"));
    bench.until("it has arrived", || arriving.is_finished());
    assert_eq!(arriving.outcome().unwrap().arrived, 1);
    assert_eq!((faults.calls(Operation::Latch), bench.verbs().look().unwrap().arrived), (2, 1));
}

/// A latch takes nothing from a lock, and a lock nothing from a latch.
pub fn a_lock_of_the_same_name_is_independent(bench: &Bench) {
    let (one, two) = (bench.verbs(), bench.verbs());
    arrive(&one, "x");
    expect(&one, 2);
    let held = claim("a");
    let lease = two.take(&held);
    arrive(&one, "y");
    assert_eq!(two.fence(&lease), Fenced::Acknowledged);
    assert_eq!(two.release(&held), Released::Released);
    assert!(one.look().is_some_and(|state| state.is_complete()));
}

/// A waiter is woken, or finds out soon.
pub fn a_waiter_goes_on_when_the_last_one_arrives(bench: &Bench) {
    let (one, two) = (bench.client(), bench.client());
    let waiter = one.wait_for_latch("a", LONG);
    two.arrive("a").unwrap();
    two.expect("a", 2).unwrap();
    (0..20).for_each(|_| bench.pause());
    assert!(!waiter.is_finished(), "one is missing");
    let arrived_at = bench.now();
    two.arrive("a").unwrap();
    bench.until("the waiter goes on", || waiter.is_finished());
    assert!(bench.now().since(arrived_at) < LONG / 2, "it went on far too late");
    waiter.outcome().unwrap();
}

/// A wait ends in time, with what is true then.
pub fn a_wait_that_is_over_says_how_many_are_missing(bench: &Bench) {
    let (one, two) = (bench.client(), bench.client());
    two.expect("a", 3).unwrap();
    let (asked_at, waiter) = (bench.now(), one.wait_for_latch("a", BRIEF));
    two.arrive("a").unwrap();
    bench.until("the wait is over", || waiter.is_finished());
    assert!(bench.now() >= asked_at + BRIEF, "it was over too early");
    let error = waiter.outcome().unwrap_err();
    assert!(matches!(error, LatchError::TimedOut { .. }) && error.missing() == Some(2), "{error}");
}

/// A reset ends the waits for the generation that was incomplete, and only for that.
pub fn a_waiter_learns_how_its_generation_ended(bench: &Bench) {
    let (one, two) = (bench.client(), bench.client());
    let begin = || {
        two.expect("a", 1).unwrap();
        let waiter = one.wait_for_latch("a", LONG);
        (0..20).for_each(|_| bench.pause());
        waiter
    };
    let waiter = begin();
    two.reset("a").unwrap();
    bench.until("the wait is over", || waiter.is_finished());
    assert!(matches!(waiter.outcome(), Err(LatchError::Reset { .. })));
    let waiter = begin();
    two.arrive("a").unwrap();
    two.reset("a").unwrap();
    bench.until("the wait is over", || waiter.is_finished());
    waiter.outcome().unwrap();
}

/// Processes that were killed after they arrived have arrived, also for later waiters.
pub fn arrivals_outlive_those_who_arrived(bench: &Bench) {
    if !bench.has_address() {
        bench.client().arrive("a").unwrap();
        bench.client().arrive("a").unwrap();
        return assert_eq!(bench.client().expect("a", 2).unwrap().missing(), Some(0));
    }
    for own_lock in ["one", "two"] {
        let mut child = bench.child(own_lock, LONG);
        child.waits();
        child.held();
        assert_eq!(child.ask("arrive a"), "arrived");
        child.kill();
    }
    let here = bench.shared();
    let waiter = here.client().wait_for_latch("a", LONG);
    here.client().expect("a", 3).unwrap();
    assert_eq!(here.client().arrive("a").unwrap().missing(), Some(0), "the dead have arrived");
    here.until("the waiter goes on", || waiter.is_finished());
    waiter.outcome().unwrap();
}
