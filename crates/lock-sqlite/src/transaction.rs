//! The verbs, inside one transaction.
//!
//! A moment at which something ends is a moment at which it has ended.

use lock_core::inspect::{Cursor, Entry, Page, Query, Revoked, glob_matches};
use lock_core::{
    Answer, Certainty, Claim, Fenced, FencingToken, Lease, LockName, Moment, Operation, Queueing, ReleaseRequest,
    Released, Renewed, TokenRange,
};
use rusqlite::{Connection, named_params};

use crate::error::Fault;
use crate::settings::Settings;
use crate::wire::{self, Hold, Place, nanos, place_for, signed};

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
        self.refuse_given_up(&key, claim.owner)?;
        let mut hold = self.hold(&key)?;
        if hold.is_none() && self.first_place(&key)?.is_some_and(|next| next.owner != claim.owner) {
            self.hand_over(&key, Operation::Acquire)?;
            hold = self.hold(&key)?;
        }
        match hold {
            None => {
                self.sweep(&key)?;
                self.grant(&key, claim, self.draw(claim.width, Operation::Acquire)?)
            }
            Some(hold) if hold.owner == claim.owner => self.grant(&key, claim, hold.tokens),
            Some(hold) => self.put_off(&key, claim, &hold),
        }
    }

    pub(crate) fn renew(&self, leases: &[Lease]) -> Result<Vec<Renewed>, Fault> {
        leases.iter().map(|lease| self.renew_one(lease)).collect()
    }

    fn renew_one(&self, lease: &Lease) -> Result<Renewed, Fault> {
        let valid_for = lease.terms.ttl.get();
        let renewed = self.run(
            wire::RENEW,
            named_params! {
                ":name": self.key(&lease.name), ":owner": lease.owner.to_wire(),
                ":low": i64::from(lease.tokens.low()), ":high": i64::from(lease.tokens.high()),
                ":boot": self.boot(), ":now": nanos(self.now), ":until": nanos(self.now + valid_for),
            },
        )?;
        Ok(if renewed == 1 { Renewed::Renewed { valid_for, wanted: false } } else { Renewed::NotHeld })
    }

    pub(crate) fn release(&self, request: &ReleaseRequest) -> Result<Released, Fault> {
        let key = self.key(&request.name);
        self.drop_dead_places(&key)?;
        let left = self.drop_place(&key, request.owner)?;
        let holds = self.hold(&key)?.is_some_and(|hold| hold.owner == request.owner);
        if self.last_owner(&key)?.is_some_and(|owner| owner == request.owner.to_wire()) {
            self.hand_over(&key, Operation::Release)?;
        }
        match request.certainty {
            Certainty::Answered => {}
            Certainty::Unknown => self.bury(&key, request)?,
        }
        Ok(match (holds, left) {
            (true, _) => Released::Released,
            (false, 1..) => Released::Left,
            (false, 0) => Released::NotHeld,
        })
    }

    pub(crate) fn fence(&self, lease: &Lease) -> Result<Fenced, Fault> {
        Ok(match self.hold(&self.key(&lease.name))? {
            Some(hold) if hold.owner == lease.owner && hold.tokens == lease.tokens => Fenced::Acknowledged,
            Some(hold) if hold.tokens.low() > lease.tokens.high() => Fenced::Higher(hold.tokens.low()),
            Some(_) | None => Fenced::NotHeld,
        })
    }

    pub(crate) fn holder(&self, name: &LockName) -> Result<Option<Entry>, Fault> {
        let key = self.key(name);
        self.hold(&key)?.map(|hold| self.entry(&key, name.clone(), &hold)).transpose()
    }

    pub(crate) fn list(&self, query: &Query) -> Result<Page, Fault> {
        let prefix = &self.settings.prefix;
        let after = prefix.key(query.cursor.as_ref().map_or("", |cursor| cursor.0.as_str()));
        // At least one, or the listing would never end.
        let limit = usize::try_from(query.limit).unwrap_or(usize::MAX).max(1);
        let mut entries = Vec::new();
        let (mut seen, mut last) = (0, None);
        for (key, hold) in self.holds_after(&after)? {
            let Some(name) = prefix.name(&key) else { break };
            if glob_matches(&query.pattern, name.as_str()) {
                if entries.len() == limit {
                    return Ok(Page { entries, next: last.map(Cursor) });
                }
                entries.push(self.entry(&key, name.clone(), &hold)?);
            }
            seen += 1;
            last = Some(name.as_str().to_owned());
        }
        let next = if seen == wire::SCAN_MAX { last.map(Cursor) } else { None };
        Ok(Page { entries, next })
    }

    pub(crate) fn revoke(&self, name: &LockName, token: FencingToken) -> Result<Revoked, Fault> {
        let key = self.key(name);
        let spans = |hold: Hold| (hold.tokens.low()..=hold.tokens.high()).contains(&token);
        if !self.hold(&key)?.is_some_and(spans) {
            return Ok(Revoked::NotHeld);
        }
        self.hand_over(&key, Operation::Inspect)?;
        Ok(Revoked::Revoked)
    }

    /// Who holds the lock now, and who is the next in line.
    pub(crate) fn look(&self, name: &LockName) -> Result<(Option<Hold>, Option<Place>), Fault> {
        let key = self.key(name);
        Ok((self.hold(&key)?, self.first_place(&key)?))
    }

    /// Stores the claim's hold for its ttl; a holder no longer waits.
    fn grant(&self, key: &str, claim: &Claim, tokens: TokenRange) -> Result<Answer, Fault> {
        let valid_for = claim.terms.ttl.get();
        self.drop_place(key, claim.owner)?;
        self.set_hold(key, claim.owner, tokens, &claim.note, valid_for)?;
        let lease = claim.lease(tokens);
        Ok(Answer::Granted { lease, valid_for, wanted: false })
    }

    /// Answers a claim on a lock that somebody else holds.
    fn put_off(&self, key: &str, claim: &Claim, hold: &Hold) -> Result<Answer, Fault> {
        let (remaining, holder) = (Some(hold.remaining), hold.shown());
        match claim.queueing {
            Queueing::Wanted => {
                let position = self.take_place(key, claim)?;
                Ok(Answer::Queued { position, remaining, valid_for: place_for(claim.terms.ttl), holder, drawn: None })
            }
            Queueing::Unwanted => {
                self.drop_place(key, claim.owner)?;
                Ok(Answer::Busy { remaining, holder, drawn: None })
            }
        }
    }

    /// Refreshes the owner's place where it is, or appends one. Returns its position, 1 for the next in line.
    fn take_place(&self, key: &str, claim: &Claim) -> Result<u32, Fault> {
        let owner = claim.owner.to_wire();
        let (boot, now, until) = (self.boot(), nanos(self.now), nanos(self.now + place_for(claim.terms.ttl)));
        let (ttl, width, note) = (signed(claim.terms.ttl.as_millis()), signed(claim.width.get()), claim.note.to_wire());
        let refreshed = self.run(
            wire::REFRESH_PLACE,
            named_params! { ":name": key, ":owner": owner, ":ttl": ttl, ":width": width, ":note": note,
            ":boot": boot, ":now": now, ":until": until },
        )?;
        if refreshed == 0 {
            self.drop_dead_places(key)?;
            self.run(
                wire::APPEND_PLACE,
                named_params! { ":name": key, ":owner": owner, ":ttl": ttl, ":width": width, ":note": note,
                ":boot": boot, ":until": until },
            )?;
        }
        self.position(key, claim.owner)
    }

    /// Ends the hold and gives the lock to the first live place, for as long as a place lasts: if that waiter has
    /// stopped meanwhile, the next need not wait for a whole ttl.
    fn hand_over(&self, key: &str, operation: Operation) -> Result<(), Fault> {
        let Some(next) = self.first_place(key)? else {
            self.run(wire::CLEAR_HOLD, named_params! { ":name": key })?;
            return Ok(());
        };
        let tokens = self.draw(next.width, operation)?;
        self.drop_place(key, next.owner)?;
        self.set_hold(key, next.owner, tokens, &next.note, place_for(next.ttl))
    }
}
