//! The latches of the server.

use std::collections::HashMap;

use lock_core::latch::{Act, ArrivalId, Generation, LatchState, Request};
use lock_core::{LockName, Moment};
use lock_rules::window::{Committed, LatchCommit, LatchWindow};

/// The rows of all latches. They stay when a latch has expired, so its version never falls. Generations have one counter.
#[derive(Default)]
pub(crate) struct Latches {
    by_name: HashMap<LockName, Latch>,
    last_generation: u64,
}

#[derive(Clone)]
struct Latch {
    version: u64,
    state: LatchState,
    until: Moment,
    /// Which call counted an id, in this generation and in the one before.
    arrived: HashMap<ArrivalId, u64>,
    arrived_before: HashMap<ArrivalId, u64>,
}

impl Latches {
    pub(crate) fn load(&self, now: Moment, request: &Request) -> LatchWindow {
        let arrival = match &request.act {
            Act::Arrive { id, .. } => Some(id),
            Act::Make { .. } | Act::Expect { .. } | Act::Reset { .. } | Act::Look { .. } => None,
        };
        let stored = self.by_name.get(&request.name);
        let living = stored.filter(|latch| now < latch.until);
        LatchWindow {
            now,
            version: stored.map_or(0, |latch| latch.version),
            state: living.map(|latch| latch.state),
            has_arrived: arrival.zip(living).is_some_and(|(id, latch)| latch.arrived.contains_key(id)),
            arrived_before: arrival.zip(living).and_then(|(id, latch)| latch.arrived_before.get(id).copied()),
            next_generation: Generation::new(self.last_generation + 1),
        }
    }

    pub(crate) fn commit(&mut self, now: Moment, name: &LockName, commit: LatchCommit) -> Committed {
        let LatchCommit { version, state, until, arrival } = commit;
        if self.by_name.get(name).map_or(0, |latch| latch.version) != version {
            return Committed::Conflict;
        }
        self.last_generation = self.last_generation.max(state.generation.get());
        let new = || Latch { version, state, until, arrived: HashMap::new(), arrived_before: HashMap::new() };
        let latch = self.by_name.entry(name.clone()).or_insert_with(new);
        if latch.state.generation != state.generation {
            latch.arrived_before = std::mem::take(&mut latch.arrived);
        }
        if latch.until <= now {
            latch.arrived_before.clear();
        }
        latch.arrived.extend(arrival);
        (latch.version, latch.state, latch.until) = (version + 1, state, until.max(latch.until));
        Committed::Written
    }
}
