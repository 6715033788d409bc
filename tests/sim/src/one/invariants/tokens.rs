//! Tokens rise in the order of admission: those of writers, and those of a slot. A reader's is above that of any writer
//! before it. Across a loss of data, whatever is granted later has a higher token, even if an earlier grant is admitted only
//! then.

use std::collections::BTreeMap;

use lock_core::{FencingToken, Hold, LockName, Mode};

use crate::invariants::{Epoch, Rule, Watch};

#[derive(Debug, Default)]
pub(crate) struct Tokens(BTreeMap<LockName, BTreeMap<Epoch, Admitted>>);

/// What was admitted at a lock in one memory of the store.
#[derive(Debug)]
struct Admitted {
    lowest: FencingToken,
    highest: FencingToken,
    /// The highest of a writer.
    written: Option<FencingToken>,
    /// The highest with each slot.
    slots: BTreeMap<u32, FencingToken>,
}

impl Tokens {
    /// Checks the holds that were handed out since the last time.
    pub(crate) fn check(&mut self, watch: &mut Watch) {
        for hold in watch.take_admitted() {
            if let Some(epoch) = watch.epoch_of(hold.lease()) {
                watch.report(Rule::TokensRise, self.admitted(epoch, &hold));
            }
        }
    }

    fn admitted(&mut self, epoch: Epoch, hold: &Hold) -> Result<(), String> {
        let token = hold.token();
        let admitted = self.0.entry(hold.lease().name.clone()).or_default();
        if let Some((_, before)) = admitted.range(..epoch).next_back() {
            rises(Some(before.highest), token)?;
        }
        let mut later = admitted.range(epoch..).filter(|(other, _)| **other != epoch);
        if let Some((_, after)) = later.next().filter(|(_, after)| after.lowest <= token) {
            return Err(format!("token {token} is from before a loss of data, and {} from after it", after.lowest));
        }
        match admitted.get_mut(&epoch) {
            Some(known) => known.and(hold),
            None => {
                admitted.insert(epoch, Admitted::first(hold));
                Ok(())
            }
        }
    }
}

impl Admitted {
    fn first(hold: &Hold) -> Self {
        let token = hold.token();
        let mut first = Self { lowest: token, highest: token, written: None, slots: BTreeMap::new() };
        first.note(hold);
        first
    }

    fn and(&mut self, hold: &Hold) -> Result<(), String> {
        match hold.lease().terms.mode {
            Mode::Permits { .. } => {
                of_slots(hold).try_for_each(|(slot, token)| rises(self.slots.get(&slot).copied(), token))?;
            }
            Mode::Shared => rises(self.written, hold.token())?,
            Mode::Exclusive | _ => rises(Some(self.highest), hold.token())?,
        }
        self.note(hold);
        Ok(())
    }

    fn note(&mut self, hold: &Hold) {
        let token = hold.token();
        (self.lowest, self.highest) = (self.lowest.min(token), self.highest.max(token));
        if hold.lease().terms.mode == Mode::Exclusive {
            self.written = Some(token);
        }
        for (slot, token) in of_slots(hold) {
            self.highest = self.highest.max(token);
            self.slots.insert(slot, token);
        }
    }
}

fn of_slots(hold: &Hold) -> impl Iterator<Item = (u32, FencingToken)> {
    let lease = hold.lease();
    lease.slots.get().iter().copied().zip((0..).map_while(|nth| lease.tokens.nth(nth)))
}

fn rises(floor: Option<FencingToken>, token: FencingToken) -> Result<(), String> {
    match floor.filter(|floor| *floor >= token) {
        Some(floor) => Err(format!("token {token} was admitted after {floor}")),
        None => Ok(()),
    }
}
