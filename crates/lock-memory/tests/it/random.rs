//! Random verbs: what the answers alone must never show, whatever was asked.
//!
//! A failure prints the shortest sequence of steps that shows it, and writes its seed to a file that later runs replay.
//! `PROPTEST_RNG_SEED` starts a run with a given seed.

use std::collections::BTreeMap;
use std::time::Duration;

use lock_core::{
    Answer, Certainty, Claim, Evidence, FencingToken, Lease, LockName, Moment, Owner, Queueing, ReleaseRequest,
    Released, Renewed, Terms, Ttl, Width,
};
use lock_memory::store::Store;
use proptest::prelude::*;

use crate::support::{ONE, claim, hand_overs, name, operator, owner};

#[derive(Clone, Debug)]
enum Step {
    Acquire(Asking),
    Renew(usize),
    Release(u8, u8, Certainty, Option<Duration>),
    Revoke(usize),
    Pass(Duration),
}

#[derive(Clone, Debug)]
struct Asking {
    lock: u8,
    owner: u8,
    ttl: Duration,
    waiters: usize,
    queueing: Queueing,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let queueing = prop_oneof![Just(Queueing::Wanted), Just(Queueing::Unwanted)];
    let certainty = prop_oneof![4 => Just(Certainty::Answered), 1 => Just(Certainty::Unknown)];
    let ttl = (1_u64..40).prop_map(|count| Duration::from_millis(count * 500));
    let keep = prop::option::weighted(0.3, (1_u64..20).prop_map(|count| Duration::from_millis(count * 500)));
    let asking = (0_u8..2, 1_u8..5, ttl, 1_usize..4, queueing).prop_map(|(lock, owner, ttl, waiters, queueing)| {
        Step::Acquire(Asking { lock, owner, ttl, waiters, queueing })
    });
    let step = prop_oneof![
        6 => asking,
        2 => any::<usize>().prop_map(Step::Renew),
        3 => (0_u8..2, 1_u8..5, certainty, keep)
            .prop_map(|(lock, owner, certainty, keep)| Step::Release(lock, owner, certainty, keep)),
        1 => any::<usize>().prop_map(Step::Revoke),
        3 => (1_u64..30).prop_map(|count| Step::Pass(Duration::from_millis(count * 250))),
    ];
    prop::collection::vec(step, 1..80)
}

fn lock_name(lock: u8) -> LockName {
    name(&format!("lock:{lock}"))
}

/// A client's knowledge: every grant it heard of, who may rely on what until when, and the highest token.
#[derive(Default)]
struct Belief {
    grants: Vec<Lease>,
    relied_on: BTreeMap<(LockName, Owner), Moment>,
    /// Until when locks are kept that these owners have left.
    kept: BTreeMap<(LockName, Owner), Moment>,
    highest: Option<FencingToken>,
}

impl Belief {
    fn granted(&mut self, now: Moment, lease: Lease, valid_for: Duration) -> Result<(), TestCaseError> {
        for ((lock, other), until) in &self.relied_on {
            prop_assert!(
                *lock != lease.name || *other == lease.owner || *until <= now,
                "{other:?} relies on {lock} when {:?} gets it",
                lease.owner
            );
        }
        let kept = self.kept.iter().find(|((lock, _), until)| *lock == lease.name && now < **until);
        prop_assert!(kept.is_none(), "{:?} gets what is kept: {kept:?}", lease.owner);
        self.relied_on.insert((lease.name.clone(), lease.owner), now + valid_for);
        if !self.grants.iter().any(|known| known.tokens == lease.tokens) {
            prop_assert!(self.highest < Some(lease.tokens.low()), "{} after {:?}", lease.tokens, self.highest);
            self.highest = Some(lease.tokens.high());
        }
        self.grants.push(lease);
        Ok(())
    }
}

fn play(steps: Vec<Step>) -> Result<(), TestCaseError> {
    let (mut store, mut belief, mut now) = (Store::new(), Belief::default(), Moment::ORIGIN);
    for step in steps {
        match step {
            Step::Acquire(asking) => acquire(&mut store, &mut belief, now, &asking)?,
            Step::Renew(index) => renew(&mut store, &mut belief, now, index),
            Step::Release(lock, byte, certainty, keep) => {
                let (name, ttl) = (lock_name(lock), Ttl::new(Duration::from_secs(20)).unwrap());
                let (owner, terms) = (owner(byte), Terms::exclusive(ttl));
                release(
                    &mut store,
                    &mut belief,
                    now,
                    &ReleaseRequest { name, owner, terms, certainty, keep, evidence: Evidence::Nothing },
                )?;
            }
            Step::Revoke(index) => revoke(&mut store, &mut belief, now, index)?,
            Step::Pass(time) => now = now + time,
        }
        for hand_over in hand_overs(&mut store) {
            belief.granted(now, hand_over.lease, hand_over.valid_for)?;
        }
    }
    Ok(())
}

fn acquire(store: &mut Store, belief: &mut Belief, now: Moment, asking: &Asking) -> Result<(), TestCaseError> {
    let claim = Claim {
        name: lock_name(asking.lock),
        terms: Terms::exclusive(Ttl::new(asking.ttl).unwrap()),
        width: Width::for_waiters(asking.waiters),
        queueing: asking.queueing,
        ..claim(asking.owner)
    };
    match store.acquire(now, ONE, &claim) {
        Ok(Answer::Granted { lease, valid_for, .. }) => belief.granted(now, lease, valid_for),
        Ok(Answer::Queued { .. } | Answer::Busy { .. }) | Err(_) => {
            let relied_on = belief.relied_on.get(&(claim.name, claim.owner));
            prop_assert!(relied_on.is_none_or(|until| *until <= now), "a holder was put off");
            Ok(())
        }
    }
}

fn renew(store: &mut Store, belief: &mut Belief, now: Moment, index: usize) {
    let Some(lease) = pick(&belief.grants, index) else { return };
    if let Renewed::Renewed { valid_for, .. } = store.renew(now, std::slice::from_ref(&lease))[0] {
        belief.relied_on.insert((lease.name, lease.owner), now + valid_for);
    }
}

fn release(store: &mut Store, belief: &mut Belief, now: Moment, request: &ReleaseRequest) -> Result<(), TestCaseError> {
    let lock = (request.name.clone(), request.owner);
    let relied_on = belief.relied_on.remove(&lock).filter(|until| now < *until);
    let kept = belief.kept.remove(&lock).filter(|until| now < *until);
    let held = relied_on.or(kept).is_some();
    if let Some(end) = request.keep.filter(|_| held).map(|keep| now + keep) {
        belief.kept.insert(lock, kept.map_or(end, |until| until.min(end)));
    }
    let released = store.release(now, request).unwrap();
    prop_assert_eq!(held, released == Released::Released, "released exactly what was held or kept");
    Ok(())
}

fn revoke(store: &mut Store, belief: &mut Belief, now: Moment, index: usize) -> Result<(), TestCaseError> {
    let Some(lease) = pick(&belief.grants, index) else { return Ok(()) };
    if store.revoke(now, &lease.name, lease.tokens.high(), &operator()) == lock_core::inspect::Revoked::Revoked {
        let lock = (lease.name, lease.owner);
        let ended = belief.relied_on.remove(&lock).or(belief.kept.remove(&lock));
        prop_assert!(ended.is_some(), "revoked what nobody held");
    }
    Ok(())
}

fn pick(grants: &[Lease], index: usize) -> Option<Lease> {
    grants.get(index.checked_rem(grants.len())?).cloned()
}

proptest! {
    #[test]
    fn at_most_one_owner_holds_a_lock_and_tokens_rise(steps in steps()) {
        play(steps)?;
    }
}
