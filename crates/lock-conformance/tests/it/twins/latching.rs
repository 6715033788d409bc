//! Twins that are wrong about latches.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use lock_conformance::Harness;
use lock_core::latch::{Act, Generation, LatchState, Request, Seen, Watching};
use lock_core::{
    BackendError, BlockingBackend, EventSink, Fairness, Moment, NameKind, Note, Owner, Queueing, Terms, Ttl, Width,
};
use lock_host::SharedClock;

use super::cover::{Breakage, Stores, WITHIN};
use super::twins;

twins! {
    one_that_counts_an_id_twice: CountsCalls,
        caught by ["latching::an_id_counts_once", "latching::an_arrival_without_an_answer_counts_once"],
        spared by ["latching::a_waiter_goes_on_when_the_last_one_arrives"];
    one_that_counts_only_after_the_count_was_set: CountsLate,
        caught by ["latching::arrivals_before_the_count_are_counted"],
        spared by ["latching::a_wait_that_is_over_says_how_many_are_missing"];
    one_that_takes_the_latest_count: TakesTheLatestCount,
        caught by ["latching::another_count_is_refused_and_changes_nothing"],
        spared by ["latching::arrivals_before_the_count_are_counted"];
    one_whose_latches_never_end: NeverEnds,
        caught by ["latching::a_latch_lasts_for_its_ttl_and_no_longer"],
        spared by ["latching::an_arrival_re_arms_the_ttl_and_never_shortens_it"];
    one_whose_latches_end_with_the_latest_ttl: EndsWithTheLatestTtl,
        caught by ["latching::an_arrival_re_arms_the_ttl_and_never_shortens_it"],
        spared by ["latching::an_id_counts_once"];
    one_that_never_resets: NeverResets,
        caught by ["latching::a_reset_begins_anew"],
        spared by ["latching::an_id_counts_once"];
    one_that_resets_whatever_is_there: ResetsAnything,
        caught by ["latching::a_reset_that_is_repeated_ends_one_generation"],
        spared by ["latching::a_reset_begins_anew"];
    one_that_takes_each_request_for_a_new_call: NoRepetitions,
        caught by ["latching::an_arrival_that_is_repeated_after_a_reset_is_not_counted"],
        spared by ["latching::an_id_counts_once"];
    one_that_sets_a_count_whatever_is_there: CountsAnything,
        caught by ["latching::a_count_that_is_repeated_after_a_reset_is_not_set"],
        spared by ["latching::an_arrival_that_is_repeated_after_a_reset_is_not_counted"];
    one_whose_latches_are_locks: LatchesAreLocks,
        caught by ["latching::a_lock_of_the_same_name_is_independent"],
        spared by ["latching::an_id_counts_once"];
    one_that_shows_a_latch_as_it_was_first: ShowsTheFirst,
        caught by ["latching::a_waiter_goes_on_when_the_last_one_arrives"],
        spared by ["latching::a_reset_begins_anew"];
    one_that_hides_the_count: HidesTheCount,
        caught by ["latching::a_wait_that_is_over_says_how_many_are_missing"],
        spared by ["latching::an_id_counts_once"];
    one_that_forgets_what_was_complete: ForgetsWhatWasComplete,
        caught by ["latching::a_waiter_learns_how_its_generation_ended"],
        spared by ["latching::a_waiter_goes_on_when_the_last_one_arrives"];
}

type Answer = Result<Seen, BackendError>;

fn ask(store: &dyn BlockingBackend, request: &Request, act: Act) -> Answer {
    store.latch(&Request { act, ..request.clone() }, WITHIN)
}

fn look(store: &dyn BlockingBackend, request: &Request) -> Answer {
    ask(store, request, Act::Look { watching: Watching::Unwanted })
}

fn with_state(answer: Answer, change: impl FnMut(&mut LatchState)) -> Answer {
    answer.map(|mut seen| {
        seen.state.as_mut().into_iter().for_each(change);
        seen
    })
}

/// The request with another ttl.
fn lasting(request: &Request, changed: Ttl) -> Request {
    let mut request = request.clone();
    match &mut request.act {
        Act::Arrive { ttl, .. } | Act::Make { ttl } | Act::Expect { ttl, .. } | Act::Reset { ttl, .. } => {
            *ttl = changed
        }
        Act::Look { .. } => {}
    }
    request
}

#[derive(Default)]
struct CountsCalls(AtomicU64);

impl Breakage for CountsCalls {
    fn latch(&self, store: &dyn BlockingBackend, request: &Request) -> Answer {
        let mut act = request.act.clone();
        if let Act::Arrive { id, .. } = &mut act {
            let number = self.0.fetch_add(1, Ordering::Relaxed);
            let client = std::ptr::from_ref(self).addr();
            *id = format!("{id} {client} {number}").parse().unwrap();
        }
        ask(store, request, act)
    }
}

#[derive(Default)]
struct CountsLate;

impl Breakage for CountsLate {
    fn latch(&self, store: &dyn BlockingBackend, request: &Request) -> Answer {
        let counts = look(store, request)?.state.is_some_and(|state| state.expected.is_some());
        if matches!(request.act, Act::Arrive { .. }) && !counts {
            return Ok(Seen { state: Some(LatchState::new(Generation::new(1))), told: false });
        }
        ask(store, request, request.act.clone())
    }
}

#[derive(Default)]
struct TakesTheLatestCount;

impl Breakage for TakesTheLatestCount {
    fn latch(&self, store: &dyn BlockingBackend, request: &Request) -> Answer {
        let answer = ask(store, request, request.act.clone());
        let Act::Expect { count, .. } = request.act else { return answer };
        with_state(answer, |state| state.expected = Some(count))
    }
}

#[derive(Default)]
struct NeverEnds;

impl Breakage for NeverEnds {
    fn latch(&self, store: &dyn BlockingBackend, request: &Request) -> Answer {
        store.latch(&lasting(request, Ttl::MAX), WITHIN)
    }
}

#[derive(Default)]
struct EndsWithTheLatestTtl {
    clock: Option<SharedClock>,
    until: Mutex<Option<Moment>>,
}

impl Breakage for EndsWithTheLatestTtl {
    fn at(stores: &Stores) -> Self {
        Self { clock: Some(stores.memory.clock()), until: Mutex::default() }
    }

    fn latch(&self, store: &dyn BlockingBackend, request: &Request) -> Answer {
        let now = self.clock.as_ref().unwrap().now();
        let mut until = self.until.lock().unwrap();
        if let Act::Arrive { ttl, .. } = request.act {
            *until = Some(now + ttl.get());
        } else if until.is_some_and(|until| until <= now) {
            return Ok(Seen { state: None, told: false });
        }
        ask(store, request, request.act.clone())
    }
}

#[derive(Default)]
struct NeverResets;

impl Breakage for NeverResets {
    fn latch(&self, store: &dyn BlockingBackend, request: &Request) -> Answer {
        let resets = matches!(request.act, Act::Reset { .. });
        if resets { look(store, request) } else { ask(store, request, request.act.clone()) }
    }
}

#[derive(Default)]
struct ResetsAnything;

impl Breakage for ResetsAnything {
    fn latch(&self, store: &dyn BlockingBackend, request: &Request) -> Answer {
        let mut act = request.act.clone();
        if let Act::Reset { generation, .. } = &mut act {
            *generation = look(store, request)?.state.map_or(*generation, |state| state.generation);
        }
        ask(store, request, act)
    }
}

#[derive(Default)]
struct CountsAnything;

impl Breakage for CountsAnything {
    fn latch(&self, store: &dyn BlockingBackend, request: &Request) -> Answer {
        let mut act = request.act.clone();
        if let Act::Expect { generation, .. } = &mut act {
            *generation = look(store, request)?.state.map_or(*generation, |state| state.generation);
        }
        ask(store, request, act)
    }
}

#[derive(Default)]
struct NoRepetitions(AtomicU64);

impl Breakage for NoRepetitions {
    fn latch(&self, store: &dyn BlockingBackend, request: &Request) -> Answer {
        let mut act = request.act.clone();
        if let Act::Arrive { call, .. } = &mut act {
            *call = self.0.fetch_add(1, Ordering::Relaxed);
        }
        ask(store, request, act)
    }
}

/// Takes the lock of the name with each arrival.
#[derive(Default)]
struct LatchesAreLocks;

impl Breakage for LatchesAreLocks {
    fn latch(&self, store: &dyn BlockingBackend, request: &Request) -> Answer {
        let (name, owner, terms) = (request.name.clone(), Owner::from_random([7; 16]), Terms::exclusive(Ttl::DEFAULT));
        let (width, queueing, note) = (Width::ONE, Queueing::Unwanted, Note::from_wire("1@twin"));
        store.acquire(
            &lock_core::Claim {
                name,
                owner,
                terms,
                width,
                floor: None,
                note,
                queueing,
                replaces: None,
                fairness: Fairness::Fair,
                kind: NameKind::Lock,
            },
            WITHIN,
        )?;
        ask(store, request, request.act.clone())
    }
}

#[derive(Default)]
struct ShowsTheFirst(Mutex<Option<Seen>>);

impl Breakage for ShowsTheFirst {
    fn latch(&self, store: &dyn BlockingBackend, request: &Request) -> Answer {
        let seen = ask(store, request, request.act.clone())?;
        let looks = matches!(request.act, Act::Look { .. });
        Ok(if looks { *self.0.lock().unwrap().get_or_insert(seen) } else { seen })
    }
}

#[derive(Default)]
struct HidesTheCount;

impl Breakage for HidesTheCount {
    fn latch(&self, store: &dyn BlockingBackend, request: &Request) -> Answer {
        let answer = ask(store, request, request.act.clone());
        let looks = matches!(request.act, Act::Look { .. });
        if looks { with_state(answer, |state| state.expected = None) } else { answer }
    }
}

/// Its waiters are not woken, so they come too late to see it for themselves.
#[derive(Default)]
struct ForgetsWhatWasComplete;

impl Breakage for ForgetsWhatWasComplete {
    fn listen(&self, _: &dyn BlockingBackend, _: EventSink) {}

    fn latch(&self, store: &dyn BlockingBackend, request: &Request) -> Answer {
        with_state(ask(store, request, request.act.clone()), |state| state.completed = None)
    }
}
