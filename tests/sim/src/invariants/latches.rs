//! Each call about a latch takes effect once, in one generation; and a wait ends as its generation did.

use std::collections::BTreeMap;

use lock_core::LockName;
use lock_core::latch::{Act, Generation, LatchError, LatchState, Request};

use crate::fault::{Fault, Tally};

#[derive(Debug, Default)]
pub(super) struct Latches {
    /// The generation in which a call counted, set the count, or which it ended.
    effects: BTreeMap<u64, Generation>,
    /// The generations that were complete at some time, and in which of the store's memories that was.
    complete: BTreeMap<(LockName, Generation), u32>,
    /// How often the store forgot something.
    memory: u32,
    /// The generation that followed one that was reset.
    next: BTreeMap<(LockName, Generation), Generation>,
}

/// A latch before a request and after it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Change {
    pub(crate) before: Option<LatchState>,
    pub(crate) after: Option<LatchState>,
}

impl Latches {
    /// The store has carried out a request of this call.
    pub(super) fn asked(
        &mut self,
        call: u64,
        request: &Request,
        Change { before, after }: Change,
        tally: &mut Tally,
    ) -> Result<(), String> {
        let Some(state) = after.filter(|_| before != after) else {
            let counted = matches!(request.act, Act::Arrive { .. }).then(|| self.effects.get(&call)).flatten();
            if counted.is_some_and(|generation| after.is_some_and(|state| state.generation > *generation)) {
                tally.count(Fault::LateArrival);
            }
            return Ok(());
        };
        let named = |generation| (request.name.clone(), generation);
        if state.is_complete() && self.complete.insert(named(state.generation), self.memory).is_none() {
            tally.count(Fault::Opened);
        }
        let earlier = self.effects.get(&call).copied();
        let (arrived, expected) = before.map_or((0, None), |state| (state.arrived, state.expected));
        let is_again = match request.act {
            // Two resets within the time for which a call is repeated are one too many.
            Act::Arrive { .. } if state.arrived == arrived + 1 => earlier.is_some_and(|earlier| {
                earlier == state.generation || self.next.get(&named(earlier)) == Some(&state.generation)
            }),
            Act::Expect { .. } if state.expected != expected && state.arrived == arrived => earlier.is_some(),
            Act::Reset { generation, .. }
                if state.arrived == 0 && before.is_some_and(|state| state.generation == generation) =>
            {
                tally.count(Fault::LatchReset);
                self.next.insert(named(generation), state.generation);
                earlier.is_some()
            }
            Act::Make { .. } if before.is_none() && state.arrived == 0 => return Ok(()),
            Act::Make { .. } | Act::Arrive { .. } | Act::Expect { .. } | Act::Reset { .. } | Act::Look { .. } => {
                return Err(format!("{request:?} made {state:?} of {before:?}"));
            }
        };
        if is_again {
            return Err(format!("{request:?} took effect in {earlier:?}, and made {state:?} of {before:?}"));
        }
        self.effects.insert(call, state.generation);
        Ok(())
    }

    /// A wait for this generation is over.
    pub(super) fn waited(
        &self,
        name: &LockName,
        generation: Option<Generation>,
        end: &Result<(), LatchError>,
    ) -> Result<(), String> {
        let Some(generation) = generation else {
            return end.as_ref().map_or(Ok(()), |()| Err(format!("a wait for {name} ended before it saw anything")));
        };
        let complete_in = self.complete.get(&(name.clone(), generation));
        match end {
            Ok(()) if complete_in.is_none() => {
                Err(format!("a wait for {generation:?} of {name} ended, and it was never complete"))
            }
            Err(LatchError::Reset { .. })
                if complete_in == Some(&self.memory) && self.is_remembered(name, generation) =>
            {
                Err(format!("a wait for {generation:?} of {name} failed, and it was complete"))
            }
            _ => Ok(()),
        }
    }

    /// Whether the store still knows that this generation was complete: it is the latest of those that were reset.
    fn is_remembered(&self, name: &LockName, generation: Generation) -> bool {
        let next = |generation| self.next.get(&(name.clone(), generation)).copied();
        let Some(mut later) = next(generation) else { return false };
        while let Some(after) = next(later) {
            if self.complete.contains_key(&(name.clone(), later)) {
                return false;
            }
            later = after;
        }
        true
    }

    /// The store forgot something.
    pub(super) fn data_lost(&mut self) {
        self.memory += 1;
        self.effects.clear();
        self.next.clear();
    }
}
