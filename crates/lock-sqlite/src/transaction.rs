//! The verbs, inside one transaction.
//!
//! A moment at which something ends is a moment at which it has ended.

use std::time::Duration;

use lock_core::{
    Answer, BackendError, Certainty, Claim, ErrorKind, Fairness, Fenced, Lease, Mode, Moment, Note, Operation, Owner,
    Queueing, ReleaseRequest, Released, Renewed, Slots, Stamped,
};
use rusqlite::{Connection, named_params};

use crate::error::{BACKEND, Fault, refusal};
use crate::modes::kind;
use crate::settings::Settings;
use crate::wire::{self, Held, Hold, Standing, nanos, place_for, signed};

/// The tables at one moment. A writing transaction is alone with them; a reading one changes nothing.
pub(crate) struct Transaction<'a> {
    pub(crate) db: &'a Connection,
    pub(crate) settings: &'a Settings,
    pub(crate) now: Moment,
}

impl<'a> Transaction<'a> {
    /// Inside a transaction that has begun: the time spent waiting for it is over.
    pub(crate) fn new(db: &'a Connection, settings: &'a Settings) -> Self {
        Self { db, settings, now: settings.timing.now() }
    }

    pub(crate) fn acquire(&self, claim: &Claim) -> Result<Answer, Fault> {
        let key = self.key(&claim.name);
        if claim.replaces.is_none()
            && let Some(last) = self.last_token_if_free(&key, claim.owner)?
        {
            return self.grant_free(&key, claim, last);
        }
        self.refuse_given_up(&key, claim.owner)?;
        let held = self.held(&key)?;
        let own = self.own(&key, held.as_ref(), claim.owner)?;
        let (claim, held) = self.under_the_limit(&key, claim, held, own.as_ref())?;
        let claim = &claim;
        if let Some(own) = own {
            return self.grant_again(&key, claim, held.map(|held| held.mode), own);
        }
        refuse_other_use(claim, held.as_ref().map(|held| held.mode))?;
        match (claim.replaces, held) {
            (Some(old), held) => self.replace(&key, claim, held, old),
            (None, Some(held)) if held.mode == Mode::Exclusive => self.put_off(&key, claim, &held, claim.terms.mode),
            (None, held) => self.join(&key, claim, held.map(|held| held.mode)),
        }
    }

    /// Answers a claim on a lock that nobody holds and nobody waits for. `last` is the last token.
    fn grant_free(&self, key: &str, claim: &Claim, last: i64) -> Result<Answer, Fault> {
        let (claim, _) = self.under_the_limit(key, claim, None, None)?;
        let slots = self.fit(key, None, claim.terms.mode)?.ok_or_else(|| contradiction(&claim))?;
        self.sweep(key)?;
        self.grant(key, &claim, Standing { mode: None, next: None }, self.new_hold(&claim, slots, last)?)
    }

    /// Answers a claim on a lock that is free, or that several may hold.
    fn join(&self, key: &str, claim: &Claim, held: Option<Mode>) -> Result<Answer, Fault> {
        let mut standing = self.standing(key, held)?;
        if held.is_none() {
            refuse_other_use(claim, standing.next.as_ref().map(|next| next.mode))?;
        }
        self.hand_over(key, &mut standing, Some(claim.owner), Operation::Acquire)?;
        let first = standing.next.as_ref().filter(|next| next.owner != claim.owner).map(|next| next.mode);
        let slots = match (first, claim.fairness) {
            (None, _) | (Some(_), Fairness::Barging) => self.fit(key, standing.mode, claim.terms.mode)?,
            (Some(_), Fairness::Fair) => None,
        };
        if let Some(slots) = slots {
            self.sweep(key)?;
            return self.grant(key, claim, standing, self.new_hold(claim, slots, self.last_token()?)?);
        }
        let held = self.held(key)?.ok_or_else(|| contradiction(claim))?;
        self.put_off(key, claim, &held, first.unwrap_or(claim.terms.mode))
    }

    pub(crate) fn renew(&self, leases: &[Lease]) -> Result<Vec<Renewed>, Fault> {
        leases.iter().map(|lease| self.renew_one(lease)).collect()
    }

    fn renew_one(&self, lease: &Lease) -> Result<Renewed, Fault> {
        let (key, valid_for) = (self.key(&lease.name), lease.terms.ttl.get());
        // An older program may have handed it over, as an exclusive one.
        let several = match lease.terms.mode {
            Mode::Exclusive => None,
            Mode::Shared | Mode::Permits { .. } | _ => {
                self.held(&key)?.map(|held| held.mode).filter(|mode| *mode != Mode::Exclusive)
            }
        };
        let renewed = self.run(
            if several.is_some() { wire::RENEW_HOLD } else { wire::RENEW_LOCK },
            named_params! {
                ":name": key, ":owner": lease.owner.to_wire(),
                ":low": i64::from(lease.tokens.low()), ":high": i64::from(lease.tokens.high()),
                ":now": nanos(self.now), ":until": nanos(self.now + valid_for),
            },
        )?;
        let wanted = match several {
            Some(mode) if renewed == 1 => {
                self.restate(&key, mode)?;
                self.first_place(&key)?.is_some()
            }
            Some(_) | None => false,
        };
        if renewed == 1 {
            return Ok(Renewed::Renewed { valid_for, wanted });
        }
        let by = self.revoked_by(&lease.name, lease.tokens.high())?;
        Ok(by.map_or(Renewed::NotHeld, |by| Renewed::Revoked { by }))
    }

    pub(crate) fn release(&self, request: &ReleaseRequest) -> Result<Released, Fault> {
        let key = self.key(&request.name);
        let released = if request.keep.is_none() && self.end_alone(&key, request.owner)? {
            Released::Released
        } else {
            self.release_in_full(&key, request)?
        };
        match request.certainty {
            Certainty::Answered => {}
            Certainty::Unknown => self.bury(&key, request.owner, request.terms.ttl)?,
        }
        Ok(released)
    }

    /// Ends whatever this owner has of the lock, and serves those who wait.
    fn release_in_full(&self, key: &str, request: &ReleaseRequest) -> Result<Released, Fault> {
        let held = self.lock(key)?;
        let is_kept = self.keep(key, held.as_ref(), request)?;
        let left = self.clear_places(key, request.owner)?;
        let ended = if is_kept { Some(true) } else { self.give_up(key, held, request.owner)? };
        Ok(match (ended, left) {
            (Some(true), _) => Released::Released,
            (_, 1..) => Released::Left,
            (_, 0) => Released::NotHeld,
        })
    }

    /// Ends the hold of this owner, or the time for which it kept the lock, and serves those who wait. Returns whether that
    /// was living; `None` if there is none.
    fn give_up(&self, key: &str, held: Option<Held>, owner: Owner) -> Result<Option<bool>, Fault> {
        let ended = self.end(key, held.as_ref(), owner)?;
        let present = held.filter(|held| ended.is_some() || held.is_living()).map(|held| held.mode);
        if ended.is_some() || present != Some(Mode::Exclusive) {
            // Its place may have been in the way of those behind it, and others may have ended since the last request.
            self.pass_on(key, present, Operation::Release)?;
        }
        Ok(ended)
    }

    pub(crate) fn fence(&self, lease: &Lease) -> Result<Fenced, Fault> {
        let key = self.key(&lease.name);
        let held = self.held(&key)?;
        let own = self.own(&key, held.as_ref(), lease.owner)?;
        Ok(match (own, held) {
            (Some(own), _) if own.tokens == lease.tokens => Fenced::Acknowledged,
            // The token of a reader raises nobody's fence.
            (_, Some(Held { mode: Mode::Exclusive, last })) if last.tokens.low() > lease.tokens.high() => {
                Fenced::Higher(last.tokens.low())
            }
            (_, _) => Fenced::NotHeld,
        })
    }

    /// What a claim is granted now.
    pub(crate) fn new_hold(&self, claim: &Claim, slots: Slots, last: i64) -> Result<Hold, Fault> {
        let (tokens, note) = (self.draw(last, claim.width, Operation::Acquire)?, self.stamped(claim.note.clone()));
        Ok(Hold { owner: claim.owner, tokens, slots, note, remaining: claim.terms.ttl.get() })
    }

    /// The note of a lease that is granted now.
    pub(crate) fn stamped(&self, note: Note) -> Stamped {
        Stamped::new(note, self.now.since(Moment::ORIGIN))
    }

    /// Stores the claim's hold beside the others; a holder no longer waits. Those behind it follow if they fit.
    pub(crate) fn grant(&self, key: &str, claim: &Claim, standing: Standing, hold: Hold) -> Result<Answer, Fault> {
        let (mode, valid_for) = (claim.terms.mode, claim.terms.ttl.get());
        if standing.next.is_some() {
            self.drop_place(key, claim.owner)?;
        }
        self.store(key, standing.mode, mode, &hold)?;
        let wanted = match standing.next {
            None => false,
            Some(_) => {
                let mut standing = self.standing(key, Some(mode))?;
                self.hand_over(key, &mut standing, None, Operation::Acquire)?;
                standing.next.is_some()
            }
        };
        Ok(Answer::Granted { lease: claim.lease_of(hold.tokens, hold.slots), valid_for, wanted })
    }

    /// Answers a claim of an owner that holds the lock: nothing changes but the time.
    fn grant_again(&self, key: &str, claim: &Claim, held: Option<Mode>, own: Hold) -> Result<Answer, Fault> {
        let mode = claim.terms.mode;
        let slots = match (held, mode) {
            (Some(Mode::Exclusive), Mode::Exclusive) | (Some(Mode::Shared), Mode::Shared) => Slots::NONE,
            (Some(held), _) if held.suits(mode) && own.slots.get().len() == wire::size(mode.count()) => {
                own.slots.clone()
            }
            // An older program handed it over, as an exclusive one.
            (Some(Mode::Exclusive), _) => Slots::new(0..mode.count()),
            (_, _) => {
                refuse_other_use(claim, held)?;
                return Err(held_in_another_mode());
            }
        };
        if let Some(old) = claim.replaces {
            self.bury(key, old, claim.terms.ttl)?;
        }
        let standing = Standing { mode: held, next: self.first_place(key)? };
        self.grant(key, claim, standing, Hold { slots, remaining: claim.terms.ttl.get(), ..own })
    }

    /// Answers a claim on a lock that others hold, or that others wait for, the first of them in the mode `first`.
    fn put_off(&self, key: &str, claim: &Claim, held: &Held, first: Mode) -> Result<Answer, Fault> {
        match claim.queueing {
            Queueing::Wanted => {
                let position = self.take_place(key, claim)?;
                let (remaining, holder) = (self.fits_in(key, held, first)?, held.last.shown());
                Ok(Answer::Queued { position, remaining, valid_for: place_for(claim.terms.ttl), holder, drawn: None })
            }
            Queueing::Unwanted => {
                let left = self.drop_place(key, claim.owner)?;
                if left == 0 || held.mode == Mode::Exclusive {
                    return Ok(busy(&held.last, self.fits_in(key, held, first)?));
                }
                let first = self.first_place(key)?.map_or(claim.terms.mode, |next| next.mode);
                let answer = busy(&held.last, self.fits_in(key, held, first)?);
                // It may have been in the way of those behind it.
                self.pass_on(key, Some(held.mode), Operation::Acquire)?;
                Ok(answer)
            }
        }
    }

    /// Refreshes the owner's place where it is, or appends one. Returns its position, 1 for the next in line.
    fn take_place(&self, key: &str, claim: &Claim) -> Result<u32, Fault> {
        let owner = claim.owner.to_wire();
        let (boot, now, until) = (self.boot(), nanos(self.now), nanos(self.now + place_for(claim.terms.ttl)));
        let (ttl, width, note) = (signed(claim.terms.ttl.as_millis()), signed(claim.width.get()), claim.note.to_wire());
        let kind = kind(claim.terms.mode);
        let refreshed = self.run(
            wire::REFRESH_PLACE,
            named_params! { ":name": key, ":owner": owner, ":ttl": ttl, ":width": width, ":kind": kind, ":note": note,
            ":now": now, ":until": until },
        )?;
        if refreshed == 0 {
            self.drop_dead_places(key)?;
            self.run(
                wire::APPEND_PLACE,
                named_params! { ":name": key, ":owner": owner, ":ttl": ttl, ":width": width, ":kind": kind,
                ":note": note, ":boot": boot, ":until": until },
            )?;
        }
        self.position(key, claim.owner)
    }
}

pub(crate) fn busy(last: &Hold, remaining: Option<Duration>) -> Answer {
    Answer::Busy { remaining, holder: last.shown(), drawn: None }
}

fn refuse_other_use(claim: &Claim, used: Option<Mode>) -> Result<(), Fault> {
    match used {
        Some(used) if !used.suits(claim.terms.mode) => {
            Err(BackendError::in_other_use(BACKEND, used, claim.terms.mode).into())
        }
        Some(_) | None => Ok(()),
    }
}

/// The rows contradict each other. No version of this crate leaves them like that.
fn contradiction(claim: &Claim) -> BackendError {
    let message = format!("the rows of {:?} contradict each other", claim.name.as_str());
    refusal(Operation::Acquire, ErrorKind::Protocol, message)
        .with_remedy("check that only this library writes the file")
}

fn held_in_another_mode() -> Fault {
    let error = refusal(Operation::Acquire, ErrorKind::Protocol, "this owner holds the lock in another mode");
    error.with_remedy("ask as another owner").into()
}
