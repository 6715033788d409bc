//! The requests, inside one transaction. `lock-rules` decides, except where one statement says the same.

use lock_core::inspect::{Cursor, Entry, Page, Query, Revoked, glob_matches};
use lock_core::limit::{self, Usage};
use lock_core::{
    Answer, Certainty, Claim, Fenced, FencingToken, Lease, LockName, Mode, NameKind, Note, ReleaseRequest, Released,
    Renewed, Slots, TokenRange,
};
use lock_rules::{Changes, Hold, Rows, Standing, Write, used_up};
use rusqlite::named_params;

use crate::error::{BACKEND, Fault};
use crate::rows::SqliteRows;
use crate::timing::wall_micros;
use crate::transaction::Transaction;
use crate::wire::{self, fast, nanos, unsigned};

impl Transaction<'_> {
    pub(crate) fn rows(&self, name: &LockName) -> SqliteRows<'_> {
        SqliteRows::new(self, name)
    }

    /// The rows for a request that writes.
    fn rows_to_change(&self, name: &LockName) -> Result<SqliteRows<'_>, Fault> {
        let mut rows = self.rows(name);
        rows.drop_dead()?;
        Ok(rows)
    }

    pub(crate) fn acquire(&self, claim: &Claim) -> Result<Answer, Fault> {
        if let Some(granted) = self.acquire_free(claim)? {
            return Ok(granted);
        }
        let mut rows = self.rows_to_change(&claim.name)?;
        rows.adapt(claim)?;
        Ok(lock_rules::acquire(&mut rows, (), claim)?)
    }

    /// Grants a lock that is free, for which nobody waits. A claim for permits looks at the limit as well.
    fn acquire_free(&self, claim: &Claim) -> Result<Option<Answer>, Fault> {
        if claim.replaces.is_some() || claim.terms.mode.name_kind() == NameKind::Semaphore {
            return Ok(None);
        }
        let key = self.key(&claim.name);
        let free = named_params! { ":name": key, ":owner": claim.owner.to_wire(), ":now": nanos(self.now) };
        let Some(last) = self.one(fast::LAST_TOKEN_IF_FREE, free, |row| row.get(0))?.map(unsigned) else {
            return Ok(None);
        };
        let tokens =
            TokenRange::above(last.max(wall_micros()), claim.width).map_err(|error| used_up(BACKEND, error))?;
        let standing = Some(Standing { mode: claim.terms.mode, permits: 0 });
        let hold = Hold::new(self.now, claim, tokens, Slots::NONE);
        let writes = vec![Write::LastToken(tokens.high().get()), Write::Hold(hold)];
        self.rows(&claim.name).write(Changes { writes, standing, notices: Vec::new() })?;
        let (lease, valid_for) = (claim.lease(tokens), claim.terms.ttl.get());
        Ok(Some(Answer::Granted { lease, valid_for, wanted: false }))
    }

    pub(crate) fn renew(&self, leases: &[Lease]) -> Result<Vec<Renewed>, Fault> {
        leases.iter().map(|lease| self.renew_one(lease)).collect()
    }

    fn renew_one(&self, lease: &Lease) -> Result<Renewed, Fault> {
        let valid_for = lease.terms.ttl.get();
        if lease.terms.mode == Mode::Exclusive && self.renew_alone(lease)? {
            return Ok(Renewed::Renewed { valid_for, wanted: false });
        }
        lock_rules::renew(&mut self.rows_to_change(&lease.name)?, lease)
    }

    /// Renews a lease that holds the lock alone. Returns whether it did.
    fn renew_alone(&self, lease: &Lease) -> Result<bool, Fault> {
        let alone = named_params! {
            ":name": self.key(&lease.name), ":owner": lease.owner.to_wire(),
            ":low": i64::from(lease.tokens.low()), ":high": i64::from(lease.tokens.high()),
            ":now": nanos(self.now), ":until": nanos(self.now + lease.terms.ttl.get()),
        };
        Ok(self.run(fast::RENEW_ALONE, alone)? == 1)
    }

    pub(crate) fn release(&self, request: &ReleaseRequest) -> Result<Released, Fault> {
        if request.keep.is_none() && request.certainty == Certainty::Answered && self.end_alone(request)? {
            return Ok(Released::Released);
        }
        Ok(lock_rules::release(&mut self.rows_to_change(&request.name)?, request)?)
    }

    /// Ends a lease that holds the lock alone, if nobody waits. Returns whether it did.
    fn end_alone(&self, request: &ReleaseRequest) -> Result<bool, Fault> {
        let alone = named_params! {
            ":name": self.key(&request.name), ":owner": request.owner.to_wire(), ":now": nanos(self.now),
        };
        Ok(self.run(fast::END_ALONE, alone)? == 1)
    }

    pub(crate) fn fence(&self, lease: &Lease) -> Result<Fenced, Fault> {
        lock_rules::fence(&mut self.rows(&lease.name), lease)
    }

    pub(crate) fn limit(&self, request: &limit::Request) -> Result<Usage, Fault> {
        let mut rows = match request.act {
            limit::Act::Look => self.rows(&request.name),
            limit::Act::Set(_) => self.rows_to_change(&request.name)?,
        };
        Ok(lock_rules::limit(&mut rows, request)?)
    }

    pub(crate) fn holder(&self, name: &LockName) -> Result<Option<Entry>, Fault> {
        let mut rows = self.rows(name);
        let (holds, waiting) = (rows.holds(Entry::SHOWN_MAX)?, rows.waiting(Entry::SHOWN_MAX)?);
        Ok(lock_rules::entry(self.now, name, holds, waiting))
    }

    pub(crate) fn list(&self, query: &Query) -> Result<Page, Fault> {
        let prefix = &self.settings.prefix;
        let after = prefix.key(query.cursor.as_ref().map_or("", |cursor| cursor.0.as_str()));
        // At least one, or the listing would never end.
        let limit = usize::try_from(query.limit).unwrap_or(usize::MAX).max(1);
        let mut entries = Vec::new();
        let (mut seen, mut last) = (0, None);
        for key in self.held_after(&after)? {
            let Some(name) = prefix.name(&key) else { break };
            if glob_matches(&query.pattern, name.as_str()) {
                if entries.len() == limit {
                    return Ok(Page { entries, next: last.map(Cursor) });
                }
                entries.extend(self.holder(&name)?);
            }
            seen += 1;
            last = Some(name.as_str().to_owned());
        }
        let next = if seen == wire::SCAN_MAX { last.map(Cursor) } else { None };
        Ok(Page { entries, next })
    }

    fn held_after(&self, key: &str) -> Result<Vec<String>, Fault> {
        let bounds = named_params! { ":name": key, ":limit": wire::SCAN_MAX, ":now": nanos(self.now) };
        self.all(wire::LIST, bounds, |row| row.get(0))
    }

    pub(crate) fn revoke(&self, name: &LockName, token: FencingToken, by: &Note) -> Result<Revoked, Fault> {
        lock_rules::revoke(&mut self.rows_to_change(name)?, name, token, by)
    }
}

#[cfg(test)]
mod tests;
