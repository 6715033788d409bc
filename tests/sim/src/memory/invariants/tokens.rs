//! Tokens rise in the order of admission: those of writers, and those of a slot. A reader's is above that of any writer
//! before it.

use std::collections::BTreeMap;

use lock_core::{FencingToken, Hold, LockName, Mode};

#[derive(Debug, Default)]
pub(crate) struct Tokens {
    /// The highest token that was admitted at each lock, and the highest of a writer.
    locks: BTreeMap<LockName, (FencingToken, Option<FencingToken>)>,
    /// The highest token that was admitted with each slot.
    slots: BTreeMap<(LockName, u32), FencingToken>,
}

impl Tokens {
    pub(crate) fn admitted(&mut self, hold: &Hold) -> Result<(), String> {
        match hold.lease().terms.mode {
            Mode::Permits { .. } => self.with_slots(hold),
            Mode::Exclusive | Mode::Shared | _ => self.without_slots(hold),
        }
    }

    fn without_slots(&mut self, hold: &Hold) -> Result<(), String> {
        let reads = hold.lease().terms.mode == Mode::Shared;
        let (name, token) = (&hold.lease().name, hold.token());
        let before = self.locks.get(name).copied();
        let floor = before.and_then(|(highest, written)| if reads { written } else { Some(highest) });
        rises(floor, token)?;
        let highest = before.map_or(token, |(highest, _)| highest.max(token));
        let written = if reads { before.and_then(|(_, written)| written) } else { Some(token) };
        self.locks.insert(name.clone(), (highest, written));
        Ok(())
    }

    fn with_slots(&mut self, hold: &Hold) -> Result<(), String> {
        let lease = hold.lease();
        let tokens = (0..).map_while(|nth| lease.tokens.nth(nth));
        for (slot, token) in lease.slots.get().iter().zip(tokens) {
            rises(self.slots.insert((lease.name.clone(), *slot), token), token)?;
        }
        Ok(())
    }
}

fn rises(floor: Option<FencingToken>, token: FencingToken) -> Result<(), String> {
    match floor.filter(|floor| *floor >= token) {
        Some(floor) => Err(format!("token {token} was admitted after {floor}")),
        None => Ok(()),
    }
}
