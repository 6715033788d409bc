//! Random requests about one lock at one node, checked against what its earlier answers imply.
//!
//! A failure prints the shortest sequence of steps that shows it, and writes its seed to a file that later runs replay.
//! `PROPTEST_RNG_SEED` starts a run with a given seed.

use lock_core::{Certainty, Owner};
use proptest::prelude::*;

use super::*;

#[derive(Clone, Debug)]
enum Step {
    Acquire {
        byte: u8,
        ttl: u64,
        width: usize,
        wish: u64,
        floor: u64,
    },
    /// A fence of an earlier grant, with tokens that end higher by this much.
    Fence {
        index: usize,
        byte: u8,
        above: u64,
    },
    Release {
        byte: u8,
        certainty: Certainty,
    },
    AnotherLock {
        byte: u8,
        wish: u64,
    },
    StaleEpoch {
        byte: u8,
    },
    Restart,
    Forget,
    Pass {
        seconds: u64,
    },
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let certainty = prop_oneof![4 => Just(Certainty::Answered), 1 => Just(Certainty::Unknown)];
    let step = prop_oneof![
        6 => (1_u8..4, 1_u64..40, 1_usize..4, 1_u64..60, 0_u64..40)
            .prop_map(|(byte, ttl, width, wish, floor)| Step::Acquire { byte, ttl, width, wish, floor }),
        5 => (any::<usize>(), 1_u8..4, 0_u64..6).prop_map(|(index, byte, above)| Step::Fence { index, byte, above }),
        3 => (1_u8..4, certainty).prop_map(|(byte, certainty)| Step::Release { byte, certainty }),
        2 => (1_u8..4, 1_u64..60).prop_map(|(byte, wish)| Step::AnotherLock { byte, wish }),
        1 => (1_u8..4).prop_map(|byte| Step::StaleEpoch { byte }),
        1 => Just(Step::Restart),
        1 => Just(Step::Forget),
        3 => (1_u64..20).prop_map(|seconds| Step::Pass { seconds }),
    ];
    prop::collection::vec(step, 1..80)
}

/// The grant that the node must have stored, according to its answers.
#[derive(Clone, Copy)]
struct Stored {
    owner: Owner,
    low: u64,
    token: u64,
    until: Moment,
}

struct Play {
    node: Node,
    clock: Moment,
    stored: Option<Stored>,
    grants: Vec<Lease>,
    last_drawn: u64,
    counter: u64,
}

impl Play {
    fn new() -> Self {
        Self { node: Node::voting(), clock: at(0), stored: None, grants: Vec::new(), last_drawn: 0, counter: 0 }
    }

    fn step(&mut self, step: Step) -> Result<(), TestCaseError> {
        self.stored = self.stored.filter(|stored| self.clock < stored.until);
        match step {
            Step::Acquire { byte, ttl, width, wish, floor } => {
                let floor = (floor > 0).then(|| token(floor));
                self.acquire(Claim { floor, width: Width::for_waiters(width), ..for_ttl(byte, seconds(ttl)) }, wish)?;
            }
            Step::Fence { index, byte, above } => self.fence(index, byte, above)?,
            Step::Release { byte, certainty } => self.release(byte, certainty)?,
            Step::AnotherLock { byte, wish } => {
                self.node.ask(self.clock, &acquire(Claim { name: name("another"), ..claim(byte) }, wish));
            }
            Step::StaleEpoch { byte } => self.stale(byte)?,
            Step::Restart => {
                self.node.restart();
                self.vote();
            }
            Step::Forget => {
                self.node.store = NodeStore::default();
                (self.stored, self.last_drawn, self.counter) = (None, 0, 0);
                self.vote();
            }
            Step::Pass { seconds } => self.clock = self.clock + Duration::from_secs(seconds),
        }
        prop_assert!(self.node.store.counter() >= self.counter, "F fell below {}", self.counter);
        self.counter = self.node.store.counter();
        Ok(())
    }

    fn vote(&mut self) {
        self.node.view(self.clock, &mark(EPOCH));
        self.node.view(self.clock, &install(EPOCH, 0));
    }

    fn acquire(&mut self, claim: Claim, wish: u64) -> Result<(), TestCaseError> {
        let mine = self.stored.filter(|stored| stored.owner == claim.owner);
        match self.node.try_ask(self.clock, &acquire(claim.clone(), wish)) {
            Ok(Told::Granted { token, .. }) => {
                let low = match mine {
                    Some(stored) => {
                        prop_assert_eq!(stored.token, token.get(), "another token than the stored one");
                        stored.low
                    }
                    None => {
                        self.drawn(&claim, token.get())?;
                        token.get() + 1 - claim.width.get()
                    }
                };
                let until = self.clock + claim.terms.ttl.get();
                self.stored = Some(Stored { owner: claim.owner, low, token: token.get(), until });
                let tokens = TokenRange::new(token, token).unwrap();
                self.grants.push(claim.lease(tokens));
            }
            Ok(Told::Held { .. }) => prop_assert!(self.stored.is_some() && mine.is_none(), "nobody else holds"),
            Ok(told) => prop_assert!(false, "{told:?}"),
            Err(error) => prop_assert!(self.stored.is_none(), "{error} while somebody holds"),
        }
        Ok(())
    }

    fn drawn(&mut self, claim: &Claim, token: u64) -> Result<(), TestCaseError> {
        prop_assert!(self.stored.is_none(), "a grant while somebody else holds");
        prop_assert!(token > self.last_drawn, "{token} after {}", self.last_drawn);
        let least = self.counter.max(claim.floor.map_or(0, FencingToken::get)) + claim.width.get();
        prop_assert!(token >= least, "{token}: no room for all tokens from {least} on");
        self.last_drawn = token;
        Ok(())
    }

    fn fence(&mut self, index: usize, byte: u8, above: u64) -> Result<(), TestCaseError> {
        let Some(index) = index.checked_rem(self.grants.len()) else { return Ok(()) };
        let granted = &self.grants[index];
        let high = token(granted.tokens.high().get() + above);
        // Sometimes for an owner that never got this grant.
        let lease = Lease { owner: owner(byte), tokens: TokenRange::new(high, high).unwrap(), ..granted.clone() };
        let answer = self.node.fence(self.clock, lease.clone());
        let expected = match &mut self.stored {
            Some(stored) if stored.owner != lease.owner => {
                if stored.low > high.get() {
                    Fenced::Higher(token(stored.low))
                } else {
                    Fenced::NotHeld
                }
            }
            Some(stored) if stored.token > high.get() => Fenced::Higher(token(stored.token)),
            Some(stored) => {
                let until = self.clock + lease.terms.ttl.get();
                *stored = Stored { low: high.get(), token: high.get(), until, ..*stored };
                Fenced::Acknowledged
            }
            None => Fenced::NotHeld,
        };
        prop_assert_eq!(answer, expected);
        prop_assert!(self.node.store.counter() >= high.get(), "F was not raised to {}", high);
        self.last_drawn = self.last_drawn.max(high.get());
        Ok(())
    }

    fn release(&mut self, byte: u8, certainty: Certainty) -> Result<(), TestCaseError> {
        let held = self.stored.take_if(|stored| stored.owner == owner(byte)).is_some();
        let released = self.node.release(self.clock, ReleaseRequest { certainty, ..release_of(byte) });
        prop_assert_eq!(released, if held { Released::Released } else { Released::NotHeld });
        Ok(())
    }

    fn stale(&mut self, byte: u8) -> Result<(), TestCaseError> {
        let leases: Arc<[Lease]> = self.grants.clone().into();
        let epoch = LATER_EPOCH;
        let claim = Arc::new(claim(byte));
        for ask in [Ask::Acquire { claim, wish: token(1_000), epoch }, Ask::Fence { leases, epoch }] {
            prop_assert_eq!(self.node.ask(self.clock, &ask), Told::Abstains);
        }
        prop_assert_eq!(self.node.store.counter(), self.counter);
        Ok(())
    }
}

fn play(steps: Vec<Step>) -> Result<(), TestCaseError> {
    let mut play = Play::new();
    steps.into_iter().try_for_each(|step| play.step(step))
}

proptest! {
    #[test]
    fn tokens_rise_the_counter_never_falls_and_only_the_stored_grant_is_acknowledged(steps in steps()) {
        play(steps)?;
    }
}
