//! One lease in place of another one of the same client.

use lock_core::{Answer, Claim, ErrorKind, Mode, Operation, Owner, Slots};
use rusqlite::{OptionalExtension, named_params};

use crate::error::{Fault, refusal};
use crate::transaction::{Transaction, busy};
use crate::wire::{self, Held, Hold, Standing, nanos};

impl Transaction<'_> {
    /// Grants the claim and ends the lease of `old` in one step, past the queue. Those who wait get what that leaves over.
    pub(crate) fn replace(&self, key: &str, claim: &Claim, held: Option<Held>, old: Owner) -> Result<Answer, Fault> {
        let lease = self.own(key, held.as_ref(), old)?;
        let (Some(held), Some(lease)) = (held, lease) else { return Err(nothing_to_replace()) };
        let slots = match (held.mode, claim.terms.mode) {
            (Mode::Exclusive, Mode::Exclusive | Mode::Shared) | (Mode::Shared, Mode::Shared) => Slots::NONE,
            (Mode::Shared, Mode::Exclusive) => match self.other_than(key, old)? {
                Some(other) => return Ok(busy(&other, Some(other.remaining))),
                None => Slots::NONE,
            },
            (Mode::Permits { .. }, mode @ Mode::Permits { .. }) => {
                first(&lease.slots, mode.count()).ok_or_else(cannot_replace)?
            }
            (_, _) => return Err(cannot_replace()),
        };
        let mut hold = self.new_hold(claim, slots, self.last_token()?)?;
        if held.mode.kind() == claim.terms.mode.kind() {
            hold.note = lease.note.with_note(hold.note.note);
        }
        if held.mode != Mode::Exclusive {
            self.end_hold(key, old)?;
        }
        self.bury(key, old, claim.terms.ttl)?;
        let standing = Standing { mode: Some(held.mode), next: self.first_place(key)? };
        self.grant(key, claim, standing, hold)
    }

    /// Of the other holds the one that ends last.
    fn other_than(&self, key: &str, owner: Owner) -> Result<Option<Hold>, Fault> {
        let mut statement = self.db.prepare_cached(wire::OTHER_HOLD)?;
        let living = named_params! {
            ":name": key, ":owner": owner.to_wire(), ":now": nanos(self.now),
        };
        Ok(statement.query_row(living, Hold::from_several).optional()?)
    }
}

/// So many of these slots, if there are enough.
fn first(slots: &Slots, count: u32) -> Option<Slots> {
    let (first, _) = slots.get().split_at_checked(usize::try_from(count).ok()?)?;
    Some(Slots::new(first.iter().copied()))
}

fn nothing_to_replace() -> Fault {
    let error = refusal(Operation::Acquire, ErrorKind::NotHeld, "the lease to replace is not held");
    error.with_remedy("acquire the lock again").into()
}

fn cannot_replace() -> Fault {
    let error = refusal(Operation::Acquire, ErrorKind::Protocol, "a lease cannot be replaced by one of this mode");
    error.with_remedy("release it, and acquire the lock again").into()
}
