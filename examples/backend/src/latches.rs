//! One latch, as the rules see it.

use std::collections::HashMap;
use std::convert::Infallible;

use lock_core::Moment;
use lock_core::latch::{ArrivalId, Generation, LatchState, Request, Seen};
use lock_rules::{LatchRows, LatchUpdate, ask_latch};

/// What is stored of a latch.
#[derive(Default)]
pub(crate) struct Latch {
    /// And until when it lasts.
    state: Option<(LatchState, Moment)>,
    last_generation: u64,
    /// Which call counted an id, in this generation and in the one before.
    arrived: HashMap<ArrivalId, u64>,
    arrived_before: HashMap<ArrivalId, u64>,
}

impl Latch {
    pub(crate) fn ask(&mut self, now: Moment, request: &Request) -> Seen {
        if self.state.is_some_and(|(_, until)| until <= now) {
            *self = Self { last_generation: self.last_generation, ..Self::default() };
        }
        let Ok((state, _)) = ask_latch(&mut OneLatch { now, latch: self }, request);
        Seen { state, told: false }
    }
}

struct OneLatch<'a> {
    now: Moment,
    latch: &'a mut Latch,
}

impl LatchRows for OneLatch<'_> {
    type Error = Infallible;

    fn now(&self) -> Moment {
        self.now
    }

    fn state(&mut self) -> Result<Option<LatchState>, Infallible> {
        Ok(self.latch.state.map(|(state, _)| state))
    }

    fn has_arrived(&mut self, _: Generation, id: &ArrivalId) -> Result<bool, Infallible> {
        Ok(self.latch.arrived.contains_key(id))
    }

    fn has_arrived_before(&mut self, _: Generation, id: &ArrivalId, call: u64) -> Result<bool, Infallible> {
        Ok(self.latch.arrived_before.get(id) == Some(&call))
    }

    fn next_generation(&mut self, _: Option<Generation>) -> Result<Generation, Infallible> {
        Ok(Generation::new(self.latch.last_generation + 1))
    }

    fn write(&mut self, LatchUpdate { state, until, arrival }: LatchUpdate<'_>) -> Result<(), Infallible> {
        let latch = &mut *self.latch;
        if latch.state.is_some_and(|(present, _)| present.generation != state.generation) {
            latch.arrived_before = std::mem::take(&mut latch.arrived);
        }
        latch.arrived.extend(arrival.map(|(id, call)| (id.clone(), call)));
        latch.last_generation = latch.last_generation.max(state.generation.get());
        let present = latch.state.map_or(until, |(_, until)| until);
        latch.state = Some((state, present.max(until)));
        Ok(())
    }
}
