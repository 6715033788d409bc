//! The same random requests to a file and to the reference store of `lock-memory`: both must say the same.
//!
//! A failure prints the shortest sequence of steps that shows it, and writes its seed to a file that later runs replay.
//! `PROPTEST_RNG_SEED` starts a run with a given seed.

use std::collections::BTreeMap;
use std::time::Duration;

use lock_core::inspect::{Entry, Revoked};
use lock_core::limit::{self, Act};
use lock_core::{
    Answer, BackendError, BlockingBackend, Certainty, Claim, ErrorKind, Fairness, Fenced, FencingToken, Holder, Lease,
    Limit, LockName, Mode, Moment, Note, Owner, Queueing, ReleaseRequest, Renewed, Slots, Terms, Ttl, Width,
};
use lock_host::Clock;
use lock_memory::store::{ClientId, Store};
use lock_sqlite::blocking::Sqlite;
use proptest::prelude::*;
use rusqlite::Connection;

use crate::rig::{Rig, WITHIN, assert_slots, operator};

/// Owners are numbers. Each asks for one thing only.
type Who = u8;

const WHO: Who = 12;

/// Limits that somebody knows.
type Known = u32;

#[derive(Clone, Debug)]
enum Step {
    Acquire(Who, Queueing, Fairness),
    Replace(Who, Who),
    Renew(Who),
    Release(Who),
    /// Twice, as when the first answer is lost.
    Keep(Who, [Duration; 2]),
    Fence(Who),
    Revoke(Who),
    SetLimit(Known, Known),
    Look(Known),
    Pass(Duration),
}

fn modes() -> impl Strategy<Value = Mode> {
    prop_oneof![
        Just(Mode::Exclusive),
        Just(Mode::Shared),
        (1_u32..4).prop_map(|count| Mode::permits(count, 5).unwrap()),
    ]
}

/// What each of them asks for: locks, now and then permits, or the other way round.
fn terms() -> impl Strategy<Value = Vec<Terms>> {
    let ttl = (10_u64..60).prop_map(|count| Ttl::new(Duration::from_millis(count * 500)).unwrap());
    let locks = prop_oneof![1 => Just(Mode::Exclusive), 2 => Just(Mode::Shared)];
    let limit = prop_oneof![4 => Just(5_u32), 1 => Just(4)];
    let permits = (1_u32..4, limit).prop_map(|(count, limit)| Mode::permits(count, limit).unwrap());
    let all = |usual: BoxedStrategy<Mode>| {
        let mode = prop_oneof![8 => usual, 1 => modes()];
        let terms = (mode, ttl.clone()).prop_map(|(mode, ttl)| Terms { mode, ttl });
        prop::collection::vec(terms, usize::from(WHO))
    };
    // All of them fit at the same time.
    let many = (1_u32..4).prop_map(|count| Mode::permits(count, 40).unwrap());
    prop_oneof![all(locks.boxed()), all(permits.boxed()), all(many.boxed())]
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let queueing = prop_oneof![3 => Just(Queueing::Wanted), 1 => Just(Queueing::Unwanted)];
    let fairness = prop_oneof![3 => Just(Fairness::Fair), 1 => Just(Fairness::Barging)];
    let time = (1_u64..20).prop_map(|count| Duration::from_millis(count * 500));
    let step = prop_oneof![
        8 => (0..WHO, queueing, fairness).prop_map(|(who, queueing, fairness)| Step::Acquire(who, queueing, fairness)),
        2 => (0..WHO, 0..WHO).prop_map(|(new, old)| Step::Replace(new, old)),
        3 => (0..WHO).prop_map(Step::Renew),
        4 => (0..WHO).prop_map(Step::Release),
        3 => (0..WHO, [time.clone(), time]).prop_map(|(who, times)| Step::Keep(who, times)),
        1 => (0..WHO).prop_map(Step::Fence),
        1 => (0..WHO).prop_map(Step::Revoke),
        1 => (3..7_u32, 1..8_u32).prop_map(|(known, new)| Step::SetLimit(known, new)),
        1 => prop_oneof![3..7_u32, Just(40)].prop_map(Step::Look),
        3 => (1_u64..20).prop_map(|count| Step::Pass(Duration::from_millis(count * 250))),
        // Several leases expire at once.
        1 => (1_u64..4).prop_map(|count| Step::Pass(Duration::from_secs(count * 10))),
    ];
    prop::collection::vec(step, 1..60)
}

/// Both stores, and who got which tokens from each.
struct Both {
    rig: Rig,
    raw: Connection,
    file: Sqlite,
    store: Store,
    terms: Vec<Terms>,
    /// By the first token of the reference.
    tokens: BTreeMap<FencingToken, FencingToken>,
    leases: BTreeMap<Who, (Lease, Lease)>,
}

impl Both {
    fn new(terms: Vec<Terms>) -> Self {
        let rig = Rig::new();
        let (file, store, tokens, leases) = (rig.client(), Store::new(), BTreeMap::new(), BTreeMap::new());
        Self { raw: rig.raw(), rig, file, store, terms, tokens, leases }
    }

    fn play(&mut self, step: &Step) -> Result<(), TestCaseError> {
        let now = self.rig.clock.now();
        match *step {
            Step::Acquire(who, queueing, fairness) => {
                self.acquire(who, &Claim { queueing, fairness, ..self.claim(who) })?;
            }
            Step::Replace(new, old) if new == old => {}
            Step::Replace(new, old) => {
                let replaces = Some(owner(old));
                self.acquire(new, &Claim { replaces, queueing: Queueing::Unwanted, ..self.claim(new) })?;
            }
            Step::Renew(who) => {
                let Some((here, there)) = self.leases.get(&who) else { return Ok(()) };
                let here = self.file.renew(std::slice::from_ref(here), WITHIN).unwrap();
                let there = self.store.renew(now, std::slice::from_ref(there));
                prop_assert_eq!(without_wanted(here), without_wanted(there));
            }
            Step::Release(who) => self.release_by(&self.release(who))?,
            Step::Keep(who, times) => {
                for time in times {
                    self.release_by(&ReleaseRequest { keep: Some(time), ..self.release(who) })?;
                }
            }
            Step::Fence(who) => {
                let Some((here, there)) = self.leases.get(&who) else { return Ok(()) };
                let (here, there) = (self.file.fence(here, WITHIN).unwrap(), self.store.fence(now, there));
                let same = match (here, there) {
                    (Fenced::Higher(here), Fenced::Higher(there)) => self.tokens.get(&there).is_none_or(|t| *t == here),
                    (here, there) => here == there,
                };
                prop_assert!(same, "{here:?} instead of {there:?}");
            }
            Step::Revoke(who) => {
                let Some((here, there)) = self.leases.get(&who) else { return Ok(()) };
                let (here, there) = (here.tokens.high(), there.tokens.high());
                let here: Revoked = self.file.revoke(&name(), here, &operator(), WITHIN).unwrap();
                prop_assert_eq!(here, self.store.revoke(now, &name(), there, &operator()));
            }
            Step::SetLimit(known, new) => {
                self.limit(known, Act::Set(limit(new)))?;
                self.limit(known, Act::Look)?;
            }
            Step::Look(known) => self.limit(known, Act::Look)?,
            Step::Pass(time) => self.rig.clock.advance(time),
        }
        // What has expired is still there, unless the step removed it.
        assert_slots(&self.raw, Moment::ORIGIN);
        self.serve();
        assert_slots(&self.raw, Moment::ORIGIN);
        self.compare_entries()
    }

    fn limit(&mut self, known: Known, act: Act) -> Result<(), TestCaseError> {
        let request = limit::Request { name: name(), known: limit(known), act };
        let here = self.file.limit(&request, WITHIN).map_err(|error| error.kind());
        let there = self.store.limit(self.rig.clock.now(), &request).map_err(|error| error.kind());
        prop_assert_eq!(here, there);
        Ok(())
    }

    fn release_by(&mut self, request: &ReleaseRequest) -> Result<(), TestCaseError> {
        let here = self.file.release(request, WITHIN).map_err(|error| error.kind());
        let there = self.store.release(self.rig.clock.now(), request).map_err(|error| error.kind());
        prop_assert_eq!(here, there);
        Ok(())
    }

    /// A visit of a stranger: the file does not serve those who wait when it refuses something, and the reference does.
    fn serve(&mut self) {
        let request = ReleaseRequest { owner: owner(WHO), ..self.release(0) };
        self.file.release(&request, WITHIN).unwrap();
        self.store.release(self.rig.clock.now(), &request).unwrap();
    }

    fn acquire(&mut self, who: Who, claim: &Claim) -> Result<(), TestCaseError> {
        let now = self.rig.clock.now();
        let here = self.file.acquire(claim, WITHIN);
        let there = self.store.acquire(now, ClientId::new(1), claim);
        if let (Ok(Answer::Granted { lease: here, .. }), Ok(Answer::Granted { lease: there, .. })) = (&here, &there) {
            let known = *self.tokens.entry(there.tokens.low()).or_insert(here.tokens.low());
            prop_assert_eq!(known, here.tokens.low(), "tokens of one grant");
            self.leases.insert(who, (here.clone(), there.clone()));
        }
        prop_assert!(self.tokens.values().is_sorted(), "tokens that do not rise with those of the reference");
        prop_assert_eq!(said(here), said(there));
        Ok(())
    }

    fn compare_entries(&mut self) -> Result<(), TestCaseError> {
        let now = self.rig.clock.now();
        let here = self.file.holder(&name(), WITHIN).unwrap();
        let there = self.store.holder(now, &name());
        for (here, there) in ages(here.as_ref()).zip(ages(there.as_ref())) {
            // A file keeps whole seconds.
            prop_assert!(here >= there && here - there < Duration::from_secs(1), "{here:?} instead of {there:?}");
        }
        prop_assert_eq!(here.map(seen), there.map(seen));
        Ok(())
    }

    fn claim(&self, who: Who) -> Claim {
        let terms = self.terms[usize::from(who)];
        Claim {
            name: name(),
            owner: owner(who),
            terms,
            width: Width::for_waiters(usize::try_from(terms.mode.count()).unwrap()),
            floor: None,
            note: Note::new("h", 1, &who.to_string()).unwrap(),
            queueing: Queueing::Wanted,
            replaces: None,
            fairness: Fairness::Fair,
        }
    }

    fn release(&self, who: Who) -> ReleaseRequest {
        self.claim(who).release(Certainty::Answered)
    }
}

fn limit(number: u32) -> Limit {
    Limit::new(number).unwrap()
}

fn name() -> LockName {
    "a".parse().unwrap()
}

fn owner(who: Who) -> Owner {
    Owner::from_random([who + 1; 16])
}

fn without_wanted(answers: Vec<Renewed>) -> Vec<Renewed> {
    let without = |answer| match answer {
        Renewed::Renewed { valid_for, .. } => Renewed::Renewed { valid_for, wanted: false },
        Renewed::NotHeld | Renewed::Revoked { .. } | Renewed::Unsure(_) => answer,
    };
    answers.into_iter().map(without).collect()
}

fn note(holder: &Holder) -> Option<String> {
    match holder {
        Holder::Leasehold { note, .. } => Some(note.to_wire().to_string()),
        Holder::Foreign => None,
    }
}

/// An answer without what may differ: the tokens themselves, and what only one of the stores reports.
#[derive(Debug, PartialEq)]
enum Said {
    Granted(Slots, Mode, Width, Duration),
    Queued(u32, Option<Duration>, Duration, Option<String>),
    Busy(Option<Duration>, Option<String>),
    Refused(ErrorKind),
}

fn said(answer: Result<Answer, BackendError>) -> Said {
    match answer {
        Ok(Answer::Granted { lease, valid_for, .. }) => {
            Said::Granted(lease.slots, lease.terms.mode, lease.tokens.width(), valid_for)
        }
        Ok(Answer::Queued { position, remaining, valid_for, holder, .. }) => {
            Said::Queued(position, remaining, valid_for, note(&holder))
        }
        Ok(Answer::Busy { remaining, holder, .. }) => Said::Busy(remaining, note(&holder)),
        Err(error) => Said::Refused(error.kind()),
    }
}

fn ages(entry: Option<&Entry>) -> impl Iterator<Item = Duration> {
    entry.into_iter().flat_map(|entry| &entry.holders).map(|held| held.age.unwrap())
}

/// What an operator sees, without the tokens.
type Seen = (Option<String>, Option<Duration>, u32, Vec<(Option<String>, Mode, Slots, Option<Duration>)>, Vec<Mode>);

fn seen(entry: Entry) -> Seen {
    let holders = entry.holders.into_iter();
    let holders = holders.map(|held| (note(&held.holder), held.mode, held.slots, held.remaining)).collect();
    assert_eq!(entry.queue.len(), usize::try_from(entry.waiters).unwrap());
    (note(&entry.holder), entry.remaining, entry.leases, holders, entry.queue)
}

#[test]
fn an_owner_that_is_replaced_twice_is_refused_for_the_longer_time() {
    let permit = |seconds| {
        let ttl = Ttl::new(Duration::from_secs(seconds)).unwrap();
        Terms { mode: Mode::permits(1, 5).unwrap(), ttl }
    };
    let mut both = Both::new(vec![permit(9), permit(5), permit(5)]);
    let acquire = |who| Step::Acquire(who, Queueing::Wanted, Fairness::Fair);
    let pass = Step::Pass(Duration::from_secs(5));
    for step in [acquire(0), acquire(1), Step::Replace(0, 2), Step::Replace(1, 2), pass, acquire(2)] {
        both.play(&step).unwrap();
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn a_file_answers_as_the_reference_store_does(terms in terms(), steps in steps()) {
        let mut both = Both::new(terms);
        for step in &steps {
            both.play(step)?;
        }
    }
}
