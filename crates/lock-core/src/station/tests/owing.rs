//! A store that does not answer: what requests it gets, which releases stay unanswered, and what waiters learn.

use std::time::Duration;

use super::super::{ActionId, Input, Join, Output, Owners, Reply, Request, Station, TurnId};
use super::rig::{Rig, SECRET, error, join, millis, none, rig, told_in_order, ttl};
use super::words;
use crate::{
    AcquireError, Certainty, Effect, ErrorKind, Moment, NameKind, Patience, Policy, Refusal, Released, RequestOrder,
    Terms, Ttl, Waiting,
};

/// A store without a queue.
fn polled() -> Policy {
    let mut policy = told_in_order();
    policy.store.waiting = Waiting::Poll;
    policy
}

fn unordered() -> Policy {
    let mut policy = told_in_order();
    policy.store.ordering = RequestOrder::Unordered;
    policy
}

fn impatient(turn: u8) -> Input {
    Input::Join(Join { patience: Patience::Never, ..join(turn) })
}

/// A station at a store that hangs: every request takes its time and fails.
struct Hung {
    station: Station,
    now: Moment,
    in_flight: Vec<(Moment, ActionId, Request)>,
    claims: u32,
    releases: u32,
    refused: Vec<(Moment, TurnId, Refusal)>,
}

impl Hung {
    fn new(policy: Policy) -> Self {
        let station = Station::new("a".parse().unwrap(), NameKind::Lock, policy, Owners::new(SECRET));
        let (in_flight, refused) = (Vec::new(), Vec::new());
        Self { station, now: Moment::from_nanos(1_000_000_000_000), in_flight, claims: 0, releases: 0, refused }
    }

    fn feed(&mut self, input: Input) {
        for output in self.station.handle_input(self.now, input) {
            match output {
                Output::Run(action) => {
                    match action.request {
                        Request::Acquire(_) => self.claims += 1,
                        Request::Release(_) => self.releases += 1,
                    }
                    self.in_flight.push((self.now + action.within, action.id, action.request));
                }
                Output::Refuse { turn, refusal } => self.refused.push((self.now, turn, refusal)),
                Output::Ended { .. } => {}
                Output::Admit { .. }
                | Output::Replaced { .. }
                | Output::Lose { .. }
                | Output::Detached(_)
                | Output::StartRenewal { .. }
                | Output::RenewNow(_)
                | Output::EndSession
                | Output::StopRenewal(_) => {
                    panic!("nothing was granted")
                }
            }
        }
        assert!(self.station.releases.0.iter().len() <= 4, "{:?}", self.station);
    }

    fn pass(&mut self, time: Duration) {
        let end = self.now + time;
        loop {
            let answers = self.in_flight.iter().map(|(at, ..)| *at).min();
            let Some(next) = answers.into_iter().chain(self.station.next_wake()).min().filter(|next| *next <= end)
            else {
                break;
            };
            self.now = self.now.max(next);
            match self.in_flight.iter().position(|(at, ..)| *at <= self.now) {
                Some(index) => {
                    let (_, id, request) = self.in_flight.remove(index);
                    let error = error(ErrorKind::Timeout, Effect::Unknown);
                    let reply = match request {
                        Request::Acquire(_) => Reply::Acquire(Err(error)),
                        Request::Release(_) => Reply::Release(Err(error)),
                    };
                    self.feed(Input::Reply(id, reply));
                }
                None => self.feed(Input::Tick),
            }
        }
        self.now = end;
    }
}

#[test]
fn a_hung_store_gets_no_more_requests_for_a_long_ttl_than_for_a_short_one() {
    for policy in [told_in_order(), unordered(), polled()] {
        for length in ["30s", "10m", "1h"] {
            let mut hung = Hung::new(policy);
            hung.feed(Input::Join(Join { terms: Terms::exclusive(ttl(length)), ..join(1) }));
            hung.pass(Duration::from_secs(1_800));
            let asked = hung.claims + hung.releases;
            assert!(
                (800..=1_900).contains(&asked),
                "{asked} requests in half an hour, ttl {length}: {:?}",
                policy.store.waiting
            );
        }
    }
}

#[test]
fn repeated_tries_at_a_hung_store_leave_at_most_four_releases() {
    for policy in [told_in_order(), unordered(), polled()] {
        let mut hung = Hung::new(policy);
        let long: Ttl = ttl("10m");
        for turn in 1..=100 {
            let join = Join { terms: Terms::exclusive(long), turn: TurnId(turn), ..join(1) };
            let begun = hung.now;
            hung.feed(Input::Join(Join { patience: Patience::Never, ..join }));
            hung.pass(Duration::from_secs(2));
            let (at, whose, refusal) = hung.refused.pop().expect("it is refused within two operation timeouts");
            assert_eq!(whose, TurnId(turn));
            assert!(matches!(refusal, Refusal::Error(AcquireError::Backend(_))), "{refusal:?}");
            assert!(at.since(begun) <= Duration::from_secs(2), "{:?}", at.since(begun));
        }
        assert!(hung.claims <= 4, "{} claims at {:?}", hung.claims, policy.store.waiting);
    }
}

#[test]
fn a_wait_at_a_hung_store_ends_on_time_and_says_why() {
    for policy in [told_in_order(), unordered(), polled()] {
        for wait in [millis(100), millis(1_500), Duration::from_secs(12), Duration::from_secs(90)] {
            let mut hung = Hung::new(policy);
            // An earlier waiter left a release behind.
            hung.feed(impatient(1));
            hung.pass(millis(1_100));
            hung.refused.clear();
            let end = hung.now + wait;
            hung.feed(Input::Join(Join { patience: Patience::within(hung.now, wait), ..join(2) }));
            hung.pass(Duration::from_secs(120));
            let [(at, _, refusal)] = &hung.refused[..] else { panic!("{:?}", hung.refused) };
            assert!(*at == end && matches!(refusal, Refusal::Error(AcquireError::Backend(_))), "{refusal:?}");
        }
    }
}

#[test]
fn without_a_queue_the_next_claim_waits_until_an_unanswered_one_is_released() {
    let mut rig = Rig::new(polled());
    rig.join(1);
    let given_up = ["run #2: release o1, claim may be in flight"];
    assert_eq!(rig.fail(ErrorKind::Timeout, Effect::Unknown), given_up);
    rig.pass(millis(900));
    assert_eq!(rig.feed(Input::Tick), none(), "the release is not answered");
    let next = ["run #3: acquire o2"];
    assert_eq!(rig.release(Ok(Released::NotHeld)), next);
}

#[test]
fn a_permanent_error_of_the_release_counts_as_an_answer() {
    let mut rig = Rig::new(polled());
    rig.join(1);
    rig.fail(ErrorKind::Timeout, Effect::Unknown);
    rig.pass(millis(900));
    let next = ["run #3: acquire o2"];
    assert_eq!(rig.release(Err(error(ErrorKind::Denied, Effect::None))), next);
}

#[test]
fn the_end_of_the_lease_counts_as_an_answer() {
    let mut hung = Hung::new(polled());
    hung.feed(Input::Join(join(1)));
    // The claim times out after a second. Its release is moot after a ttl, an operation timeout and the drift.
    hung.pass(millis(32_300));
    assert_eq!(hung.claims, 1);
    hung.pass(millis(1_100));
    assert_eq!(hung.claims, 2);
}

#[test]
fn a_join_at_once_repeats_the_release_that_delays_it() {
    let mut rig = Rig::new(polled());
    rig.feed(impatient(1));
    rig.fail(ErrorKind::Timeout, Effect::Unknown);
    for _ in 0..8 {
        rig.release(Err(error(ErrorKind::Timeout, Effect::Unknown)));
        rig.wake();
    }
    rig.release(Err(error(ErrorKind::Timeout, Effect::Unknown)));
    assert!(rig.station.next_wake().unwrap().since(rig.now) > Duration::from_secs(2), "nobody waits for it");
    assert_eq!(rig.feed(impatient(2)), ["run #11: release o1, claim may be in flight"]);
    let next = ["run #12: acquire o2, no place"];
    assert_eq!(rig.release(Ok(Released::NotHeld)), next);
}

#[test]
fn a_release_that_delays_a_waiter_is_repeated_within_a_second() {
    let mut rig = Rig::new(polled());
    rig.join(1);
    rig.fail(ErrorKind::Timeout, Effect::Unknown);
    for _ in 0..20 {
        rig.release(Err(error(ErrorKind::Timeout, Effect::Unknown)));
        assert!(rig.station.next_wake().unwrap().since(rig.now) <= Duration::from_secs(1));
        rig.wake();
    }
}

#[test]
fn other_releases_delay_no_waiter() {
    // A place that was left, at an ordered and at an unordered store; and a lease whose release failed once.
    for policy in [told_in_order(), unordered()] {
        let mut rig = Rig::new(policy);
        rig.join(1);
        rig.queue();
        rig.leave(1);
        let claim = ["run #3: acquire o2, no place"];
        assert_eq!(rig.feed(impatient(2)), claim);
    }
    let mut rig = Rig::new(unordered());
    rig.join(1);
    rig.grant(7, 7);
    rig.leave(1);
    assert_eq!(rig.feed(impatient(2)), none(), "the lease is not free yet");
    let result = rig.release(Err(error(ErrorKind::Timeout, Effect::Unknown)));
    assert_eq!(result[1], "run #3: acquire o2, above 7, no place");
}

#[test]
fn with_four_unanswered_releases_no_claim_is_sent_until_one_is_answered() {
    let mut rig = rig();
    for turn in 1..=4 {
        rig.feed(impatient(turn));
        rig.fail(ErrorKind::Timeout, Effect::Unknown);
    }
    assert_eq!(rig.station.releases.0.iter().len(), 4);
    assert_eq!(rig.join(5), none());
    rig.feed(Input::Join(Join { patience: Patience::within(rig.now, millis(10)), ..join(6) }));
    rig.pass(millis(10));
    assert_eq!(rig.feed(Input::Tick), ["refuse 6: error Timeout, effect Unknown"]);
    assert_eq!(rig.feed(impatient(7)), none(), "all four are in flight");
    // A waiter that does not wait gets the first failure; the others stay.
    let failed = rig.release(Err(error(ErrorKind::Unreachable, Effect::None)));
    assert_eq!(failed, ["refuse 7: error Unreachable, effect None"]);
    rig.wake();
    let next = ["run #10: acquire o5"];
    assert_eq!(rig.release(Ok(Released::NotHeld)), next);
}

#[test]
fn a_waiter_behind_a_release_learns_why_it_fails() {
    let mut rig = Rig::new(polled());
    rig.feed(impatient(1));
    rig.fail(ErrorKind::Timeout, Effect::Unknown);
    rig.release(Err(error(ErrorKind::Unreachable, Effect::None)));
    let patience = Patience::within(rig.now, millis(10));
    rig.feed(Input::Join(Join { patience, ..join(2) }));
    rig.pass(millis(10));
    assert_eq!(rig.feed(Input::Tick), ["refuse 2: error Unreachable, effect None"]);
}

/// With a queue, asking again is idempotent, so an unanswered claim is repeated unchanged.
#[test]
fn at_a_store_with_a_queue_the_owner_is_kept_after_an_unknown_outcome() {
    let mut policy = told_in_order();
    for waiting in [Waiting::QueueWithPush, Waiting::Queue] {
        policy.store.waiting = waiting;
        let mut rig = Rig::new(policy);
        rig.join(1);
        for claim in 2..10 {
            assert_eq!(rig.fail(ErrorKind::Timeout, Effect::Unknown), none());
            let again = format!("run #{claim}: acquire o1");
            assert_eq!(rig.wake(), [again]);
        }
        rig.grant(7, 7);
        let gone = ["stop renewal o1", "run #10: release o1, claim may be in flight"];
        assert_eq!(rig.leave(1), gone, "one release for all of them");
    }
}

#[test]
fn a_release_reports_the_unanswered_claims_of_its_own_owner() {
    let mut rig = rig();
    rig.join(1);
    let id = rig.claim_id();
    rig.fail(ErrorKind::Timeout, Effect::Unknown);
    assert_eq!(rig.leave(1), ["run #2: release o1, claim may be in flight"]);
    let pending = rig.station.releases.0.first().map(|pending| &pending.request);
    assert!(pending.is_some_and(|it| it.certainty == Certainty::Unknown && words::owner(it.owner) == "o1"));
    assert_eq!(rig.claim_id(), id);
}
