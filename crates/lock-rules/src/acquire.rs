//! Claims: granted, granted again, put off, or granted in place of another lease.

use lock_core::limit::Record;
use lock_core::{Answer, BackendError, Claim, Fairness, FencingToken, Mode, NameKind, Owner, Queueing};

use crate::periods::{REPLACED_FOR, place_for};
use crate::plan::Plan;
use crate::refusal::{Undone, cannot_replace, contradiction, given_up, held_in_another_mode, nothing_to_replace};
use crate::rows::{Hold, Rows, Write};

/// Grants the lock to the claim's owner, or says who holds it.
///
/// An owner that holds the lock gets the same tokens and slots again and its full ttl. Any other claim is granted if it
/// fits beside the present leases and nobody waits before it:
///
/// - An exclusive lease fits if the lock is free.
/// - A shared one fits if all others are shared.
/// - Permits fit if no more than the limit are taken with them.
///
/// If the limit of a semaphore was set (see [`limit`](crate::limit)), a claim for permits is served under that.
///
/// The waiters before it are served first, as far as they fit. A claim that is barging is then granted if it fits, even if
/// other waiters do not. A claim that is not granted takes or refreshes its place if it wants to queue; otherwise it loses
/// the place that it may have. A claim that replaces a lease is granted past the queue, as [`Claim::replaces`] has it.
///
/// # Errors
/// `OtherKind` if the name is in use as the other kind, or as a semaphore of another limit, or if the claim is for more
/// permits than the limit that was set. `Protocol` if the claim was given up by a release of unknown certainty, if its owner
/// holds the lock in another mode, if it replaces what it cannot, or if the tokens are used up. `NotHeld` if the lease that it
/// replaces is not held. Those of the rows. None of these changes anything.
pub fn acquire<R: Rows>(rows: &mut R, client: R::Client, claim: &Claim) -> Result<Answer, Undone<R::Error>> {
    let mut plan = Plan::new(rows, &claim.name)?;
    let own = plan.rows.hold(claim.owner)?;
    let claim = &plan.checked(claim, own.as_ref())?;
    let answer = match (own, claim.replaces) {
        (Some(own), old) => {
            if let Some(old) = old {
                plan.bury(old);
            }
            plan.grant_again(claim, own)?
        }
        (None, Some(old)) => plan.replace(claim, old)?,
        (None, None) => plan.ask(client, claim)?,
    };
    plan.end()?;
    Ok(answer)
}

impl<R: Rows> Plan<'_, R> {
    /// The claim under the limit in force. Refuses one that was given up, and one whose mode does not suit the rows.
    fn checked(&mut self, claim: &Claim, own: Option<&Hold>) -> Result<Claim, Undone<R::Error>> {
        if self.rows.is_given_up(claim.owner)? {
            return Err(Undone::Refused(given_up(R::BACKEND)));
        }
        let mode = self.under_limit(claim, own)?;
        if let Some(used) = self.mode()?.filter(|used| !used.suits(mode)) {
            return Err(Undone::Refused(BackendError::in_other_use(R::BACKEND, used, claim.terms.mode)));
        }
        match own {
            Some(hold) if hold.mode != mode => Err(Undone::Refused(held_in_another_mode(R::BACKEND))),
            Some(_) | None => Ok(claim.in_mode(mode)),
        }
    }

    /// The mode of a claim under the limit in force. A granted lease stays, whatever its limit was.
    fn under_limit(&mut self, claim: &Claim, own: Option<&Hold>) -> Result<Mode, Undone<R::Error>> {
        let mode = claim.terms.mode;
        let record: Option<Record> = if mode.limit().is_some() { self.rows.limit()? } else { None };
        Ok(match record {
            None => mode,
            Some(record) if claim.replaces.is_some() || own.is_some() => mode.under(record.limit()),
            Some(record) => record.apply(R::BACKEND, mode).map_err(Undone::Refused)?,
        })
    }

    fn ask(&mut self, client: R::Client, claim: &Claim) -> Result<Answer, Undone<R::Error>> {
        self.serve(Some(claim.owner))?;
        let is_next = self.head()?.is_none_or(|head| head.owner == claim.owner);
        let may_be_next = is_next || claim.fairness == Fairness::Barging;
        if may_be_next && self.fits(claim.terms.mode) { self.grant(claim) } else { self.put_off(client, claim) }
    }

    fn grant(&mut self, claim: &Claim) -> Result<Answer, Undone<R::Error>> {
        let (tokens, slots) = (self.draw(claim.width)?, self.draw_slots(claim.terms.mode)?);
        let hold = Hold::new(self.now, claim, tokens, slots);
        self.add(hold.clone());
        self.granted(claim, &hold)
    }

    fn grant_again(&mut self, claim: &Claim, own: Hold) -> Result<Answer, Undone<R::Error>> {
        let hold = Hold { granted: own.granted, ..Hold::new(self.now, claim, own.tokens, own.slots) };
        self.write(Write::Hold(hold.clone()));
        self.granted(claim, &hold)
    }

    /// The answer to a claim that is granted. Its owner no longer waits, and the waiters that fit beside it are served.
    fn granted(&mut self, claim: &Claim, hold: &Hold) -> Result<Answer, Undone<R::Error>> {
        self.leave(claim.owner)?;
        self.serve(None)?;
        let (valid_for, wanted) = (claim.terms.ttl.get(), self.has_waiters()?);
        Ok(Answer::Granted { lease: claim.lease_of(hold.tokens, hold.slots.clone()), valid_for, wanted })
    }

    /// Answers a claim that does not fit, or has waiters before it.
    fn put_off(&mut self, client: R::Client, claim: &Claim) -> Result<Answer, Undone<R::Error>> {
        let Some(last) = self.last_hold()? else {
            // The tokens may be used up, so that nobody was served.
            let is_free = self.standing.is_none();
            return if is_free {
                self.grant(claim)
            } else {
                Err(Undone::Refused(contradiction(R::BACKEND, &claim.name)))
            };
        };
        let position = match claim.queueing {
            Queueing::Wanted => Some(self.queue(client, claim)?),
            Queueing::Unwanted => {
                self.leave(claim.owner)?;
                None
            }
        };
        let first = self.head()?.map_or(claim.terms.mode, |head| head.terms.mode);
        let remaining = self.fits_at(first)?.map(|end| end.since(self.now));
        let (holder, drawn) = (last.holder(), FencingToken::new(self.last_token()?).ok());
        Ok(match position {
            Some(position) => {
                let valid_for = place_for(claim.terms.ttl);
                Answer::Queued { position, remaining, valid_for, holder, drawn }
            }
            None => Answer::Busy { remaining, holder, drawn },
        })
    }

    /// Grants the claim and ends the lease of `old`, past the queue.
    fn replace(&mut self, claim: &Claim, old: Owner) -> Result<Answer, Undone<R::Error>> {
        let Some(held) = self.rows.hold(old)? else { return Err(Undone::Refused(nothing_to_replace(R::BACKEND))) };
        let mode = claim.terms.mode;
        if !is_replaced_by(held.mode, mode) {
            return Err(Undone::Refused(cannot_replace(R::BACKEND)));
        }
        if let Some(other) = self.in_the_way(mode, old)? {
            let (holder, remaining) = (other.holder(), Some(other.until.since(self.now)));
            return Ok(Answer::Busy { remaining, holder, drawn: FencingToken::new(self.last_token()?).ok() });
        }
        let tokens = self.draw(claim.width)?;
        self.end_hold(&held)?;
        self.bury(old);
        let slots = self.keep_slots(&held, mode);
        let hold = Hold::new(self.now, claim, tokens, slots);
        let granted = if held.mode.kind() == mode.kind() { held.granted } else { hold.granted };
        let hold = Hold { granted, ..hold };
        self.add(hold.clone());
        self.granted(claim, &hold)
    }

    /// The lease beside which that of `old` cannot become one of this mode.
    fn in_the_way(&mut self, mode: Mode, old: Owner) -> Result<Option<Hold>, Undone<R::Error>> {
        if mode == Mode::Exclusive { Ok(self.rows.last_hold(Some(old))?) } else { Ok(None) }
    }

    /// Refuses late claims of an owner that was replaced.
    fn bury(&mut self, old: Owner) {
        self.write(Write::Tombstone(old, self.now + REPLACED_FOR));
    }
}

/// Whether a lease of one mode can be replaced by one of another in one step.
pub fn is_replaced_by(old: Mode, new: Mode) -> bool {
    let is_lock = matches!(old, Mode::Exclusive | Mode::Shared) && new.name_kind() == NameKind::Lock;
    is_lock || (old.suits(new) && (1..=old.count()).contains(&new.count()))
}
