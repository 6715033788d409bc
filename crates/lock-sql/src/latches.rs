//! Requests about latches, and their rows as the server's functions take and return them.

use std::time::Duration;

use lock_core::latch::{self, Act, Count, Generation, LatchState};
use lock_core::{BackendError, Effect, ErrorKind, Invalid};
use lock_rules::window::{self, LatchCommit, LatchWindow};
use serde::{Deserialize, Serialize};

use crate::database::{Database, damaged, error};
use crate::session::Session;
use crate::wire::{to_micros, to_moment};

#[derive(Deserialize)]
pub(crate) struct LoadedLatch {
    now: u64,
    latch: Option<LatchRow>,
    has_arrived: bool,
    arrived_before: Option<i64>,
}

#[derive(Deserialize)]
struct LatchRow {
    version: u64,
    until: u64,
    generation: u64,
    expected: Option<u32>,
    arrived: u32,
    completed: Option<u64>,
}

#[derive(Serialize)]
pub(crate) struct LatchQuestion<'a> {
    name: &'a str,
    id: Option<&'a str>,
}

#[derive(Serialize)]
pub(crate) struct LatchArguments<'a> {
    name: &'a str,
    within: u128,
    version: u64,
    until: u64,
    generation: u64,
    expected: Option<u32>,
    arrived: u32,
    completed: Option<u64>,
    id: Option<String>,
    call: Option<i64>,
}

impl<D: Database> Session<D> {
    /// Carries out a request about a latch.
    pub(crate) async fn latch(
        &mut self,
        key: &str,
        request: &latch::Request,
    ) -> Result<Option<LatchState>, BackendError> {
        loop {
            let window = self.load_latch(key, request).await?;
            let ((state, _), commit) = window::ask_latch(window, request);
            let Some(commit) = commit else { return Ok(state) };
            if self.commit_latch(key, commit).await? {
                return Ok(state);
            }
        }
    }

    async fn load_latch(&mut self, key: &str, request: &latch::Request) -> Result<LatchWindow, BackendError> {
        let id = match &request.act {
            Act::Arrive { id, .. } => Some(id.as_str()),
            Act::Make { .. } | Act::Expect { .. } | Act::Reset { .. } | Act::Look { .. } => None,
        };
        let loaded = self.call::<LoadedLatch>("load_latch_1", &LoadedLatch::arguments(key, id)).await?;
        let missing = || error::<D>(ErrorKind::Protocol, Effect::None, "the server did not show the latch");
        loaded.ok_or_else(missing)?.window().map_err(damaged::<D>)
    }

    async fn commit_latch(&mut self, key: &str, commit: LatchCommit) -> Result<bool, BackendError> {
        let arguments = LatchArguments::new(key, self.within(), commit);
        Ok(self.call("commit_latch_1", &arguments).await? == Some(true))
    }
}

impl LoadedLatch {
    pub(crate) fn arguments<'a>(name: &'a str, id: Option<&'a str>) -> LatchQuestion<'a> {
        LatchQuestion { name, id }
    }

    pub(crate) fn window(self) -> Result<LatchWindow, Invalid> {
        let now = to_moment(self.now);
        let living = self.latch.as_ref().filter(|latch| now < to_moment(latch.until));
        let last_generation = self.latch.as_ref().map_or(0, |latch| latch.generation);
        Ok(LatchWindow {
            now,
            version: self.latch.as_ref().map_or(0, |latch| latch.version),
            state: living.map(LatchRow::state).transpose()?,
            has_arrived: self.has_arrived && living.is_some(),
            arrived_before: self.arrived_before.filter(|_| living.is_some()).map(i64::cast_unsigned),
            // Above those of a row that was removed.
            next_generation: Generation::new(last_generation.saturating_add(1).max(self.now)),
        })
    }
}

impl LatchRow {
    fn state(&self) -> Result<LatchState, Invalid> {
        let mut state = LatchState::new(Generation::new(self.generation));
        state.expected = self.expected.map(Count::new).transpose()?;
        (state.arrived, state.completed) = (self.arrived, self.completed.map(Generation::new));
        Ok(state)
    }
}

impl<'a> LatchArguments<'a> {
    pub(crate) fn new(name: &'a str, within: Duration, commit: LatchCommit) -> Self {
        let LatchCommit { version, state, until, arrival } = commit;
        let (id, call) = arrival.map(|(id, call)| (id.as_str().to_owned(), call.cast_signed())).unzip();
        Self {
            name,
            within: within.as_millis(),
            version,
            until: to_micros(until),
            generation: state.generation.get(),
            expected: state.expected.map(Count::get),
            arrived: state.arrived,
            completed: state.completed.map(Generation::get),
            id,
            call,
        }
    }
}
