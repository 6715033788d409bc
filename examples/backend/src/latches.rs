//! The latches of the store, and one of them as the rules see it.

use std::collections::HashMap;
use std::convert::Infallible;

use lock_core::latch::{ArrivalId, Generation, LatchState, Request, Seen};
use lock_core::{LockName, Moment};
use lock_rules::{LatchRows, LatchUpdate, ask_latch};

/// All latches. Their generations have one counter, so a latch that is used again has a new one.
#[derive(Default)]
pub(crate) struct Latches {
    by_name: HashMap<LockName, Latch>,
    last_generation: u64,
}

/// A latch and its arrivals.
struct Latch {
    state: LatchState,
    until: Moment,
    /// Which call counted an id, in this generation and in the one before.
    arrived: HashMap<ArrivalId, u64>,
    arrived_before: HashMap<ArrivalId, u64>,
}

impl Latches {
    pub(crate) fn ask(&mut self, now: Moment, request: &Request) -> Seen {
        self.by_name.retain(|_, latch| now < latch.until);
        let Ok((state, _)) = ask_latch(&mut OneLatch { now, name: &request.name, latches: self }, request);
        Seen { state, told: false }
    }
}

struct OneLatch<'a> {
    now: Moment,
    name: &'a LockName,
    latches: &'a mut Latches,
}

impl OneLatch<'_> {
    fn latch(&self) -> Option<&Latch> {
        self.latches.by_name.get(self.name)
    }
}

impl LatchRows for OneLatch<'_> {
    type Error = Infallible;

    fn now(&self) -> Moment {
        self.now
    }

    fn state(&mut self) -> Result<Option<LatchState>, Infallible> {
        Ok(self.latch().map(|latch| latch.state))
    }

    fn has_arrived(&mut self, _: Generation, id: &ArrivalId) -> Result<bool, Infallible> {
        Ok(self.latch().is_some_and(|latch| latch.arrived.contains_key(id)))
    }

    fn has_arrived_before(&mut self, _: Generation, id: &ArrivalId, call: u64) -> Result<bool, Infallible> {
        Ok(self.latch().is_some_and(|latch| latch.arrived_before.get(id) == Some(&call)))
    }

    fn next_generation(&mut self, _: Option<Generation>) -> Result<Generation, Infallible> {
        Ok(Generation::new(self.latches.last_generation + 1))
    }

    fn write(&mut self, LatchUpdate { state, until, arrival }: LatchUpdate<'_>) -> Result<(), Infallible> {
        let Latches { by_name, last_generation } = &mut *self.latches;
        *last_generation = state.generation.get().max(*last_generation);
        let new = || Latch { state, until, arrived: HashMap::new(), arrived_before: HashMap::new() };
        let latch = by_name.entry(self.name.clone()).or_insert_with(new);
        if latch.state.generation != state.generation {
            latch.arrived_before = std::mem::take(&mut latch.arrived);
        }
        latch.arrived.extend(arrival.map(|(id, call)| (id.clone(), call)));
        (latch.state, latch.until) = (state, until.max(latch.until));
        Ok(())
    }
}
