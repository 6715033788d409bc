//! The policy of elections: when a leader steps down, what follows when its work has ended, and who is seen to lead.

use std::ops::{ControlFlow, Deref};
use std::time::Duration;

use lock_core::inspect::Entry;
use lock_core::{
    BackendError, Budget, Capabilities, Effect, ErrorKind, FencingToken, Holder, Invalid, LockName, OnUnavailable,
    Operation, WriteToken,
};
use lock_host::{HoldError, LockOptions, Proof, Setting};

use crate::errors::{LeadershipLost, ObserveError};

/// How often an observer polls. Chosen: a poll costs a request, and its result is out of date as soon as it was read.
const PACE_DEFAULT: Duration = Duration::from_secs(1);
/// A pace that is set is at least this, so that an observer is no load on the store.
const PACE_MIN: Duration = Duration::from_millis(10);
/// How long a poll may take.
pub(crate) const READ_WITHIN: Duration = Duration::from_secs(1);

/// How to campaign and to observe.
#[derive(Clone, Debug)]
pub(crate) struct ElectionPlan {
    pub(crate) name: String,
    pub(crate) options: LockOptions,
    pub(crate) grace: Option<Duration>,
    pub(crate) pace: Duration,
}

impl ElectionPlan {
    pub(crate) fn new(name: &str) -> Self {
        Self { name: name.to_owned(), options: candidate(LockOptions::default()), grace: None, pace: PACE_DEFAULT }
    }

    pub(crate) fn set(&mut self, setting: Setting) {
        self.options.apply(setting);
        self.options = candidate(std::mem::take(&mut self.options));
    }

    pub(crate) fn set_pace(&mut self, pace: Duration) {
        self.pace = pace.max(PACE_MIN);
    }

    /// How leases of this store are divided. Checks all that can be checked before a request is sent.
    pub(crate) fn budget(&self, store: &Capabilities) -> Result<Budget, Invalid> {
        self.options.validate()?;
        Budget::of_store(store, self.options.ttl, self.grace)
    }
}

/// A candidate has nothing to do but wait, so it also waits for the store.
fn candidate(options: LockOptions) -> LockOptions {
    options.on_unavailable(OnUnavailable::Wait).standing_by()
}

/// The present leadership of this client. A leadership derefs to it.
#[derive(Debug)]
pub struct Leading<G> {
    pub(crate) guard: G,
    budget: Budget,
}

impl<G: Deref<Target = Proof>> Leading<G> {
    /// The leadership of the holder of this guard.
    pub(crate) fn new(guard: G, budget: Budget) -> Self {
        Self { guard, budget }
    }

    /// The name of the election.
    pub fn name(&self) -> &LockName {
        self.guard.name()
    }

    /// The number of this term: higher than those of all earlier leaders. It is a fencing token: once the fence of a resource was raised to
    /// the [`write_token`](Self::write_token) of a leader, the resource can refuse late writes of earlier leaders.
    pub fn term(&self) -> FencingToken {
        self.guard.fencing_token()
    }

    /// The [`term`](Self::term), under the name that it has for every guard.
    pub fn fencing_token(&self) -> FencingToken {
        self.term()
    }

    /// The term as a token that raises a fence. A new leader raises the fence before it reads the data that it will change.
    pub fn write_token(&self) -> WriteToken {
        WriteToken::of_writer(self.term())
    }

    /// How much longer this machine leads without a renewal; zero once it does not lead any more. The lease itself
    /// lasts longer, by the grace and a margin. An unusually small value means that a renewal is late.
    pub fn remaining(&self) -> Duration {
        self.left().unwrap_or_default()
    }

    /// Whether this machine still leads. Local and cheap: compares the time to step down with the clock. An error is final.
    ///
    /// # Errors
    /// `NotRenewed` once a leader whose lease was not renewed has to step down, before the lease can expire. `Lost` if
    /// the lease was lost, with the reason.
    pub fn check(&self) -> Result<(), LeadershipLost> {
        self.left().map(drop)
    }

    /// How much longer it leads without a renewal.
    pub(crate) fn left(&self) -> Result<Duration, LeadershipLost> {
        self.guard.check()?;
        let (hold, left) = (Proof::hold(&self.guard), self.budget.left(self.guard.remaining()));
        if left.is_zero() {
            hold.step_down();
        }
        if hold.has_stepped_down() {
            return Err(LeadershipLost::NotRenewed { name: self.name().clone(), term: self.term() });
        }
        Ok(left)
    }
}

/// The consequence of the end of a leader's work: `said` is what it returned, unless it was stopped; `led` whether it led
/// to the end.
pub(crate) fn follows<T>(
    said: Option<ControlFlow<T>>,
    led: Result<(), LeadershipLost>,
    resigned: Result<(), HoldError>,
) -> ControlFlow<Result<T, LeadershipLost>> {
    let Some(ControlFlow::Break(value)) = said else { return ControlFlow::Continue(()) };
    ControlFlow::Break(match (led, resigned) {
        (Err(lost), _) => Err(lost),
        (Ok(()), Err(HoldError::Lost(lost))) => Err(lost.into()),
        // A release that is not confirmed is repeated.
        (Ok(()), Ok(()) | Err(_)) => Ok(value),
    })
}

/// The leader, as it was last seen.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Leader {
    /// The holder of the lease, as the store shows it: host, process and reason.
    pub holder: Holder,
}

impl Leader {
    /// The number of its term; `None` if the lock of the election is held by something other than this library.
    ///
    /// If several candidates share a client, the lease can go from one to the next without the store: then it is the number
    /// of the first of them, and theirs are above it.
    pub fn term(&self) -> Option<FencingToken> {
        match &self.holder {
            Holder::Leasehold { tokens, .. } => Some(tokens.low()),
            Holder::Foreign => None,
        }
    }
}

/// The last state that an observer has seen.
#[derive(Debug, Default)]
pub(crate) struct LeaderView {
    pub(crate) leader: Option<Leader>,
    has_seen: bool,
}

impl LeaderView {
    /// Records the result of a poll. True if that is new.
    pub(crate) fn update(&mut self, entry: Option<Entry>) -> bool {
        let leader = entry.map(|entry| Leader { holder: entry.holder });
        let is_new = !std::mem::replace(&mut self.has_seen, true) || self.leader != leader;
        self.leader = leader;
        is_new
    }
}

/// The error of observing at a store that cannot list its locks.
pub(crate) fn cannot_observe(store: &Capabilities) -> ObserveError {
    let problem = "this store cannot say who holds a lock";
    BackendError::new(store.backend, Operation::Inspect, ErrorKind::Unsupported, Effect::None, problem).into()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use lock_core::{Durability, Hold, Lease, LossReason, Lost, Owner, Slots, Terms, TokenRange, Ttl, Waiting, Width};
    use lock_host::ManualClock;

    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    struct Guard(Proof);

    impl Deref for Guard {
        type Target = Proof;

        fn deref(&self) -> &Proof {
            &self.0
        }
    }

    /// A leadership under a lease of 30 s, its lease and its clock.
    fn leading() -> (Leading<Guard>, Arc<Hold>, ManualClock) {
        use lock_host::Clock;
        let (clock, tokens) = (ManualClock::new(), TokenRange::above(6, Width::ONE).unwrap());
        let (name, owner) = ("a".parse().unwrap(), Owner::from_random([1; 16]));
        let lease = Lease { name, owner, tokens, terms: Terms::exclusive(Ttl::DEFAULT), slots: Slots::NONE };
        let hold = Arc::new(Hold::new(Arc::new(lease), tokens.low(), clock.now() + 30 * SECOND, None));
        let guard = Guard(Proof::new(Arc::clone(&hold), Arc::new(clock.clone())));
        (Leading::new(guard, Budget::new(Ttl::DEFAULT, None).unwrap()), hold, clock)
    }

    #[test]
    fn a_leader_steps_down_before_its_lease_can_end() {
        let (leading, hold, clock) = leading();
        assert_eq!((leading.term().get(), leading.remaining(), leading.check()), (7, 24 * SECOND, Ok(())));
        clock.advance(24 * SECOND - Duration::from_nanos(1));
        assert_eq!(leading.check(), Ok(()));
        clock.advance(Duration::from_nanos(1));
        let lost = leading.check().unwrap_err();
        assert!(matches!(&lost, LeadershipLost::NotRenewed { term, .. } if term.get() == 7), "{lost}");
        assert!(leading.guard.check().is_ok(), "the lease lasts longer");
        use lock_host::Clock;
        hold.extend(clock.now() + 30 * SECOND);
        assert_eq!((leading.check(), leading.remaining()), (Err(lost), Duration::ZERO), "a no is final");
        hold.lose(LossReason::NotHeld);
        assert!(matches!(leading.check(), Err(LeadershipLost::Lost(Lost { reason: LossReason::NotHeld, .. }))));
    }

    #[test]
    fn work_ends_an_election_only_by_saying_so_and_counts_only_if_it_led_to_the_end() {
        let (leading, hold, _) = leading();
        let not_renewed = || LeadershipLost::NotRenewed { name: leading.name().clone(), term: leading.term() };
        for led in [Ok(()), Err(not_renewed())] {
            assert_eq!(follows::<u8>(None, led.clone(), Ok(())), ControlFlow::Continue(()));
            assert_eq!(follows::<u8>(Some(ControlFlow::Continue(())), led, Ok(())), ControlFlow::Continue(()));
        }
        let ends = |led, resigned| match follows(Some(ControlFlow::Break(8)), led, resigned) {
            ControlFlow::Break(outcome) => outcome,
            ControlFlow::Continue(()) => panic!("it goes on"),
        };
        assert_eq!(ends(Ok(()), Ok(())), Ok(8));
        assert_eq!(ends(Err(not_renewed()), Ok(())), Err(not_renewed()));
        hold.lose(LossReason::NotHeld);
        let lost = hold.lost().unwrap();
        assert_eq!(ends(Ok(()), Err(lost.clone().into())), Err(lost.into()));
        let unconfirmed =
            BackendError::new("test", Operation::Release, ErrorKind::Timeout, Effect::Unknown, "no answer");
        assert_eq!(ends(Ok(()), Err(unconfirmed.into())), Ok(8));
    }

    #[test]
    fn a_sight_tells_each_state_once() {
        let mut view = LeaderView::default();
        let seen = |token| {
            let holder = Holder::Leasehold {
                tokens: TokenRange::above(token, Width::ONE).unwrap(),
                note: lock_host::note("").unwrap(),
            };
            Some(Entry::exclusive("a".parse().unwrap(), holder, None, 0))
        };
        assert_eq!([view.update(None), view.update(None)], [true, false]);
        assert_eq!([view.update(seen(6)), view.update(seen(6)), view.update(seen(7))], [true, false, true]);
        assert_eq!(view.leader.as_ref().and_then(Leader::term).map(FencingToken::get), Some(8));
        assert!(view.update(None) && view.leader.is_none());
    }

    #[test]
    fn what_cannot_be_is_refused_before_anything_is_sent() {
        let store = Capabilities::new("test", Waiting::Poll, Durability::Process);
        let refusal = |plan: ElectionPlan| plan.budget(&store).unwrap_err().to_string();
        let brief = store.with_lease_max(Some(Ttl::new(SECOND).unwrap()));
        let told = ElectionPlan::new("a").budget(&brief).unwrap_err().to_string();
        assert!(told.contains("test keeps it no longer") && told.contains("a longer session"), "{told}");
        assert_eq!(ElectionPlan::new("a").options.on_unavailable, OnUnavailable::Wait, "a campaign outlasts an outage");
        let short = ElectionPlan { options: LockOptions::default().ttl(SECOND), ..ElectionPlan::new("a") };
        assert!(refusal(short).contains("give a ttl of "), "too short to step down");
        let zero = ElectionPlan { options: LockOptions::default().ttl(Duration::ZERO), ..ElectionPlan::new("a") };
        assert!(refusal(zero).contains("ttl"));
        let mut plan = ElectionPlan { grace: Some(25 * SECOND), ..ElectionPlan::new("a") };
        assert!(refusal(plan.clone()).contains("a shorter grace"));
        plan.set_pace(Duration::ZERO);
        assert_eq!(plan.pace, PACE_MIN);
    }
}
