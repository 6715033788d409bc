//! Who holds a lock beside whom, and who is next.

use std::time::Duration;

use lock_core::{Mode, Operation, Owner, Slots};
use rusqlite::named_params;

use crate::error::Fault;
use crate::modes::owner_of_several;
use crate::transaction::Transaction;
use crate::wire::{self, Held, Hold, Place, Standing, place_for, size};

/// To how many waiters one request hands over at most. Those behind them follow with the next one.
///
/// Chosen: half of what shares a commit, so that nobody waits much longer for it.
const HAND_OVERS_MAX: usize = 32;

impl Transaction<'_> {
    pub(crate) fn standing(&self, key: &str, mode: Option<Mode>) -> Result<Standing, Fault> {
        let next = if mode == Some(Mode::Exclusive) { None } else { self.first_place(key)? };
        Ok(Standing { mode, next })
    }

    /// Hands over to the first in line, and to those behind it, as long as they fit. Stops before the place of `end`.
    ///
    /// What is handed over lasts as long as a place: if that waiter has stopped meanwhile, the others need not wait for a
    /// whole ttl.
    pub(crate) fn hand_over(
        &self,
        key: &str,
        standing: &mut Standing,
        end: Option<Owner>,
        operation: Operation,
    ) -> Result<(), Fault> {
        for _ in 0..HAND_OVERS_MAX {
            let Some(next) = standing.next.take_if(|next| Some(next.owner) != end) else { break };
            let Some(slots) = self.fit(key, standing.mode, next.mode)? else {
                standing.next = Some(next);
                break;
            };
            let Place { owner, ttl, mode, width, note, .. } = next;
            let (tokens, note) = (self.draw(self.last_token()?, width, operation)?, self.stamped(note));
            let hold = Hold { owner, tokens, slots, note, remaining: place_for(ttl) };
            self.drop_place(key, owner)?;
            self.store(key, standing.mode, mode, &hold)?;
            *standing = self.standing(key, Some(mode))?;
        }
        Ok(())
    }

    /// Serves those who wait, after a hold or a place has ended of a lock that was held in this mode. Clears the row of the
    /// lock if nobody holds it then.
    pub(crate) fn pass_on(&self, key: &str, held: Option<Mode>, operation: Operation) -> Result<(), Fault> {
        let left = match held {
            Some(Mode::Exclusive) | None => None,
            Some(several) => self.restate(key, several)?,
        };
        let mut standing = self.standing(key, left)?;
        self.hand_over(key, &mut standing, None, operation)?;
        if standing.mode.is_none() {
            self.run(wire::CLEAR_LOCK, named_params! { ":name": key })?;
        }
        Ok(())
    }

    /// The slots of a hold in this mode beside those that are there; `None` if it does not fit.
    pub(crate) fn fit(&self, key: &str, held: Option<Mode>, mode: Mode) -> Result<Option<Slots>, Fault> {
        match (held, mode) {
            (None, Mode::Permits { count, .. }) => Ok(Some(Slots::new(0..count.get()))),
            (None, _) | (Some(Mode::Shared), Mode::Shared) => Ok(Some(Slots::NONE)),
            (Some(Mode::Permits { limit, .. }), Mode::Permits { count, .. })
                if held.is_some_and(|held| held.suits(mode)) =>
            {
                let mut used: Vec<u32> = self.holds(key)?.iter().flat_map(|hold| hold.slots.get().to_vec()).collect();
                used.sort_unstable();
                // Some may be above the limit, if that was lowered.
                let fits = used.len() + size(count.get()) <= size(limit.get());
                Ok(if fits { free_slots(&used, limit.get(), count.get()) } else { None })
            }
            (Some(_), _) => Ok(None),
        }
    }

    /// How long until a claim of this mode fits at the earliest: until enough holds have ended. `None` if it fits now.
    pub(crate) fn fits_in(&self, key: &str, held: &Held, mode: Mode) -> Result<Option<Duration>, Fault> {
        match (held.mode, mode) {
            (Mode::Shared, Mode::Shared) => Ok(None),
            (Mode::Permits { limit, .. }, Mode::Permits { count, .. }) => {
                let most = size(limit.get()).saturating_sub(size(count.get()));
                Ok(falls_to(&self.holds(key)?, most))
            }
            (_, _) => Ok(Some(held.last.remaining)),
        }
    }

    /// Stores a hold beside those of the mode `held`, or in place of them if they are of another one.
    pub(crate) fn store(&self, key: &str, held: Option<Mode>, mode: Mode, hold: &Hold) -> Result<(), Fault> {
        if mode == Mode::Exclusive {
            return self.set_lock(key, &hold.owner.to_wire(), hold);
        }
        if held.map(Mode::kind) != Some(mode.kind()) {
            // Their lock may have been ended by a program that does not know them.
            self.run(wire::CLEAR_HOLDS, named_params! { ":name": key })?;
        }
        self.set_hold(key, hold)?;
        self.restate(key, mode).map(drop)
    }

    /// Lets the row of a lock say that several hold it in this mode, and for how long. Returns `None`, and leaves the row,
    /// if nobody does.
    pub(crate) fn restate(&self, key: &str, mode: Mode) -> Result<Option<Mode>, Fault> {
        let last = self.live(wire::LAST_HOLD, key, Hold::from_several)?;
        let Some((last, owner)) = last.zip(owner_of_several(mode)) else { return Ok(None) };
        self.set_lock(key, &owner, &last)?;
        Ok(Some(mode))
    }

    /// The hold of this owner, alone or one of several.
    pub(crate) fn own(&self, key: &str, held: Option<&Held>, owner: Owner) -> Result<Option<Hold>, Fault> {
        match held {
            None => Ok(None),
            Some(held) if held.mode == Mode::Exclusive => Ok((held.last.owner == owner).then(|| held.last.clone())),
            Some(_) => self.hold_of(key, owner),
        }
    }

    /// Ends the hold of this owner, or the time for which it kept the lock, but leaves the row of the lock. Returns whether that
    /// was living; `None` if there is none.
    pub(crate) fn end(&self, key: &str, held: Option<&Held>, owner: Owner) -> Result<Option<bool>, Fault> {
        match held {
            None => Ok(None),
            Some(held) if held.mode == Mode::Exclusive => {
                Ok([owner, owner.kept()].contains(&held.last.owner).then(|| held.is_living()))
            }
            Some(_) => self.end_hold(key, owner),
        }
    }
}

/// How long until no more slots than this are taken, unless holds are renewed; `None` if that is so now. The hold that ends
/// last is the first.
fn falls_to(holds: &[Hold], most: usize) -> Option<Duration> {
    let mut taken: usize = holds.iter().map(|hold| hold.slots.get().len()).sum();
    let mut time = None;
    for hold in holds.iter().rev() {
        if taken <= most {
            break;
        }
        taken -= hold.slots.get().len();
        time = Some(hold.remaining);
    }
    time
}

/// The lowest slots that are free, of which so many are wanted. `used` is sorted.
fn free_slots(used: &[u32], limit: u32, count: u32) -> Option<Slots> {
    let slots = Slots::new((0..limit).filter(|slot| used.binary_search(slot).is_err()).take(size(count)));
    (slots.get().len() == size(count)).then_some(slots)
}
