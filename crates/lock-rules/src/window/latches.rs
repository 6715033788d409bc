//! Latches of a store behind a network.

use std::convert::Infallible;

use lock_core::Moment;
use lock_core::latch::{ArrivalId, Generation, LatchState, Request};

use crate::latch::{Change, LatchRows, LatchUpdate};

/// The part of a latch that was loaded.
#[derive(Clone, Debug)]
pub struct LatchWindow {
    /// The store's clock.
    pub now: Moment,
    /// Never the same again after a change, as [`Window::version`](super::Window::version).
    pub version: u64,
    /// The latch; `None` if there is none, or if it has expired.
    pub state: Option<LatchState>,
    /// Whether the id that is to arrive was counted in the present generation.
    pub has_arrived: bool,
    /// The call that counted it in the generation before.
    pub arrived_before: Option<u64>,
    /// The number of a new generation, above all earlier ones of this latch.
    pub next_generation: Generation,
}

/// The decision of a request about a latch. Each commit raises the version.
///
/// If the generation is new, the ids of the present one become those of the generation before, and older ones are dropped; if the latch had
/// expired, all are dropped.
#[derive(Clone, Debug)]
pub struct LatchCommit {
    /// The version that was loaded.
    pub version: u64,
    /// The latch from now on. If its generation is new, it has no arrivals.
    pub state: LatchState,
    /// It lasts until then, or until the stored end if that is later.
    pub until: Moment,
    /// An id to count, and the call that did.
    pub arrival: Option<(ArrivalId, u64)>,
}

/// Decides a request about a latch. Returns its answer, as [`ask_latch`](crate::ask_latch) has it, and what to commit first. If another
/// version is found then, the latch is loaded and decided again.
pub fn ask_latch(window: LatchWindow, request: &Request) -> ((Option<LatchState>, Change), Option<LatchCommit>) {
    let mut decision = LatchDecision { window, commit: None };
    let Ok(answer) = crate::ask_latch(&mut decision, request);
    (answer, decision.commit)
}

/// A window, and what the request has decided.
struct LatchDecision {
    window: LatchWindow,
    commit: Option<LatchCommit>,
}

impl LatchRows for LatchDecision {
    type Error = Infallible;

    fn now(&self) -> Moment {
        self.window.now
    }

    fn state(&mut self) -> Result<Option<LatchState>, Infallible> {
        Ok(self.window.state)
    }

    fn has_arrived(&mut self, _: Generation, _: &ArrivalId) -> Result<bool, Infallible> {
        Ok(self.window.has_arrived)
    }

    fn has_arrived_before(&mut self, _: Generation, _: &ArrivalId, call: u64) -> Result<bool, Infallible> {
        Ok(self.window.arrived_before == Some(call))
    }

    fn next_generation(&mut self, _: Option<Generation>) -> Result<Generation, Infallible> {
        Ok(self.window.next_generation)
    }

    fn write(&mut self, LatchUpdate { state, until, arrival }: LatchUpdate<'_>) -> Result<(), Infallible> {
        let arrival = arrival.map(|(id, call)| (id.clone(), call));
        self.commit = Some(LatchCommit { version: self.window.version, state, until, arrival });
        Ok(())
    }
}
