//! The end of a lease by an operator, inside one transaction, and who did it.

use std::time::Duration;

use lock_core::inspect::{REMEMBERED_MIN, Revoked};
use lock_core::{FencingToken, LockName, Mode, Note, Operation};
use rusqlite::{OptionalExtension, named_params};

use crate::error::Fault;
use crate::transaction::Transaction;
use crate::wire::{Held, nanos, unsigned};

/// Returns the highest token of the lease, and how long it would have lasted.
const REVOKE_HOLD: &str = "DELETE FROM holds
    WHERE name = :name AND :token BETWEEN low AND high AND expires_ns > :now
    RETURNING high, expires_ns - :now";
const REVOCATION: &str = "SELECT note FROM revocations WHERE name = :name AND token = :token AND expires_ns > :now";
const SET_REVOCATION: &str = "INSERT OR REPLACE INTO revocations(name, token, note, boot, expires_ns)
    VALUES (:name, :token, :note, :boot, :until)";
const DROP_OLD_REVOCATIONS: &str = "DELETE FROM revocations WHERE expires_ns <= :now";

/// A lease that was ended: its highest token, and how long it would have lasted.
type Ended = (i64, Duration);

impl Transaction<'_> {
    pub(crate) fn revoke(&self, name: &LockName, token: FencingToken, by: &Note) -> Result<Revoked, Fault> {
        let key = self.key(name);
        let Some(held) = self.held(&key)? else { return Ok(Revoked::NotHeld) };
        let Some(ended) = self.end_with(&key, &held, token)? else { return Ok(Revoked::NotHeld) };
        self.remember(&key, ended, by)?;
        self.pass_on(&key, Some(held.mode), Operation::Inspect)?;
        Ok(Revoked::Revoked)
    }

    /// Who revoked the lease whose highest token this is, if that is remembered.
    pub(crate) fn revoked_by(&self, name: &LockName, highest: FencingToken) -> Result<Option<Note>, Fault> {
        let revocation = named_params! {
            ":name": self.key(name), ":token": i64::from(highest), ":now": nanos(self.now),
        };
        let note: Option<String> =
            self.db.prepare_cached(REVOCATION)?.query_row(revocation, |row| row.get(0)).optional()?;
        Ok(note.map(|note| Note::from_wire(&note)))
    }

    /// Ends the hold that spans the token. The row of an exclusive one goes when the lock is passed on.
    fn end_with(&self, key: &str, held: &Held, token: FencingToken) -> Result<Option<Ended>, Fault> {
        if held.mode == Mode::Exclusive {
            let (tokens, remaining) = (held.last.tokens, held.last.remaining);
            let spans = (tokens.low()..=tokens.high()).contains(&token);
            return Ok(spans.then(|| (i64::from(tokens.high()), remaining)));
        }
        let holding = named_params! {
            ":name": key, ":token": i64::from(token), ":now": nanos(self.now),
        };
        let ended = |row: &rusqlite::Row<'_>| Ok((row.get(0)?, Duration::from_nanos(unsigned(row.get(1)?))));
        Ok(self.db.prepare_cached(REVOKE_HOLD)?.query_row(holding, ended).optional()?)
    }

    fn remember(&self, key: &str, (token, remaining): Ended, by: &Note) -> Result<(), Fault> {
        self.run(DROP_OLD_REVOCATIONS, named_params! { ":now": nanos(self.now) })?;
        self.run(
            SET_REVOCATION,
            named_params! {
                ":name": key, ":token": token, ":note": by.to_wire(), ":boot": self.boot(),
                ":until": nanos(self.now + remaining.max(REMEMBERED_MIN)),
            },
        )?;
        Ok(())
    }
}
