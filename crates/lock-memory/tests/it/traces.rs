//! Random requests in all modes: the store answers as the naive rules say, and nobody holds beside whom it must not.
//!
//! A failure prints the shortest sequence of steps that shows it, and writes its seed to a file that later runs replay.
//! `PROPTEST_RNG_SEED` starts a run with a given seed.

use std::collections::BTreeSet;
use std::time::Duration;

use lock_core::inspect::Revoked;
use lock_core::{
    Answer, BackendError, Certainty, Claim, Evidence, Fairness, Lease, Mode, Moment, Queueing, ReleaseRequest, Renewed,
    Terms, Ttl, Width,
};
use lock_memory::store::{Hold, Store};
use proptest::prelude::*;

use crate::naive::{Naive, Said, Served, shown};
use crate::support::{ONE, claim, hand_overs, operator, owner, tokens};

#[derive(Clone, Debug)]
enum Step {
    Acquire { byte: u8, terms: Terms, queueing: Queueing, replaces: Option<u8>, fairness: Fairness },
    Renew(usize),
    Fence(usize),
    Release { byte: u8, certainty: Certainty, keep: Option<Duration> },
    Revoke(usize),
    Pass(Duration),
}

fn halves(count: u64) -> Duration {
    Duration::from_millis(count * 500)
}

fn mode() -> impl Strategy<Value = Mode> {
    let permits = |limit| move |count| Mode::permits(count, limit).unwrap();
    prop_oneof![
        3 => Just(Mode::Exclusive),
        5 => Just(Mode::Shared),
        6 => (1_u32..4).prop_map(permits(3)),
        1 => (1_u32..3).prop_map(permits(2)),
    ]
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let queueing = prop_oneof![3 => Just(Queueing::Wanted), 1 => Just(Queueing::Unwanted)];
    let certainty = prop_oneof![6 => Just(Certainty::Answered), 1 => Just(Certainty::Unknown)];
    let terms = (mode(), 1_u64..40).prop_map(|(mode, ttl)| Terms { mode, ttl: Ttl::new(halves(ttl)).unwrap() });
    let replaces = prop::option::weighted(0.25, 1_u8..6);
    let fairness = prop_oneof![3 => Just(Fairness::Fair), 1 => Just(Fairness::Barging)];
    let acquire =
        (1_u8..6, terms, queueing, replaces, fairness).prop_map(|(byte, terms, queueing, replaces, fairness)| {
            Step::Acquire { byte, terms, queueing, replaces, fairness }
        });
    let release = (1_u8..6, certainty, prop::option::weighted(0.1, (1_u64..20).prop_map(halves)))
        .prop_map(|(byte, certainty, keep)| Step::Release { byte, certainty, keep });
    let step = prop_oneof![
        8 => acquire,
        3 => release,
        1 => any::<usize>().prop_map(Step::Renew),
        1 => any::<usize>().prop_map(Step::Fence),
        1 => any::<usize>().prop_map(Step::Revoke),
        2 => (1_u64..12).prop_map(halves).prop_map(Step::Pass),
    ];
    prop::collection::vec(step, 1..80)
}

struct Trace {
    store: Store,
    naive: Naive,
    now: Moment,
    leases: Vec<Lease>,
    highest: u64,
}

fn said(answer: Result<Answer, BackendError>) -> Said {
    match answer {
        Ok(Answer::Granted { lease, wanted, .. }) => {
            Said::Granted { tokens: tokens(&lease), slots: lease.slots.get().to_vec(), wanted }
        }
        Ok(Answer::Queued { position, remaining, holder, .. }) => {
            Said::Queued { position, remaining, holder: shown(&holder) }
        }
        Ok(Answer::Busy { remaining, holder, .. }) => Said::Busy { remaining, holder: shown(&holder) },
        Err(error) => Said::Failed(error.kind()),
    }
}

impl Trace {
    fn new() -> Self {
        let (store, naive) = (Store::new(), Naive::default());
        Self { store, naive, now: Moment::ORIGIN, leases: Vec::new(), highest: 0 }
    }

    fn pick(&self, index: usize) -> Option<Lease> {
        self.leases.get(index.checked_rem(self.leases.len())?).cloned()
    }

    fn step(&mut self, step: Step) -> Result<(), TestCaseError> {
        let now = self.now;
        match step {
            Step::Acquire { byte, terms, queueing, replaces, fairness } => {
                let width = Width::for_waiters(terms.mode.count() as usize);
                let replaces = replaces.map(owner);
                let claim = Claim { terms, width, queueing, replaces, fairness, ..claim(byte) };
                let answer = self.store.acquire(now, ONE, &claim);
                if let Ok(Answer::Granted { lease, .. }) = &answer {
                    self.heard(lease)?;
                }
                prop_assert_eq!(said(answer), self.naive.acquire(now, &claim));
            }
            Step::Release { byte, certainty, keep } => {
                let terms = Terms::exclusive(Ttl::new(halves(20)).unwrap());
                let request = ReleaseRequest {
                    name: claim(byte).name,
                    owner: owner(byte),
                    terms,
                    certainty,
                    keep,
                    evidence: Evidence::Nothing,
                };
                let released = self.store.release(now, &request).map_err(|error| error.kind());
                prop_assert_eq!(released, self.naive.release(now, &request));
            }
            Step::Renew(index) => {
                let Some(lease) = self.pick(index) else { return Ok(()) };
                let renewed = match self.store.renew(now, std::slice::from_ref(&lease))[0] {
                    Renewed::Renewed { wanted, .. } => Some(wanted),
                    Renewed::NotHeld | Renewed::Revoked { .. } | Renewed::Unsure(_) => None,
                };
                prop_assert_eq!(renewed, self.naive.renew(now, &lease));
            }
            Step::Fence(index) => {
                let Some(lease) = self.pick(index) else { return Ok(()) };
                prop_assert_eq!(self.store.fence(now, &lease), self.naive.fence(now, &lease));
            }
            Step::Revoke(index) => {
                let Some(lease) = self.pick(index) else { return Ok(()) };
                let revoked = self.store.revoke(now, &lease.name, lease.tokens.high(), &operator()) == Revoked::Revoked;
                prop_assert_eq!(revoked, self.naive.revoke(now, lease.tokens.high().get()));
            }
            Step::Pass(time) => self.now = now + time,
        }
        self.hand_overs()?;
        self.check_holders()
    }

    /// Tokens that are heard of for the first time are above all before.
    fn heard(&mut self, lease: &Lease) -> Result<(), TestCaseError> {
        if !self.leases.iter().any(|known| known.tokens == lease.tokens) {
            prop_assert!(lease.tokens.low().get() > self.highest, "{} after {}", lease.tokens, self.highest);
            self.highest = lease.tokens.high().get();
        }
        self.leases.push(lease.clone());
        Ok(())
    }

    fn hand_overs(&mut self) -> Result<(), TestCaseError> {
        let leases: Vec<_> = hand_overs(&mut self.store).into_iter().map(|hand_over| hand_over.lease).collect();
        let served: Vec<Served> =
            leases.iter().map(|lease| (lease.owner, tokens(lease), lease.slots.get().to_vec())).collect();
        prop_assert_eq!(served, std::mem::take(&mut self.naive.served));
        // In the order of their tokens: one that asked itself may have been served in between.
        self.leases.extend(leases);
        let heard = self.leases.iter().map(|lease| lease.tokens.high().get());
        self.highest = heard.max().unwrap_or_default().max(self.highest);
        Ok(())
    }

    /// Nobody holds beside a writer, no more permits than the limit are taken, and no slot twice.
    fn check_holders(&self) -> Result<(), TestCaseError> {
        let name = claim(1).name;
        let held: Vec<&Hold> = self.store.holds(self.now, &name).collect();
        prop_assert!(held.len() < 2 || held.iter().all(|hold| hold.mode != Mode::Exclusive), "{held:?}");
        let slots: Vec<u32> = held.iter().flat_map(|hold| hold.slots.get().to_vec()).collect();
        prop_assert_eq!(slots.iter().collect::<BTreeSet<_>>().len(), slots.len(), "a slot is held twice");
        for hold in held {
            if let Mode::Permits { count, limit, .. } = hold.mode {
                prop_assert!(slots.len() <= limit.get() as usize && hold.slots.get().len() == count.get() as usize);
                prop_assert!(slots.iter().all(|slot| *slot < limit.get()), "{slots:?} of {limit}");
            }
        }
        Ok(())
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    #[test]
    fn the_store_answers_as_the_rules_say(steps in steps()) {
        let mut trace = Trace::new();
        for step in steps {
            trace.step(step)?;
        }
    }
}
