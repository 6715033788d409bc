//! The limit of a semaphore, inside one transaction.

use std::borrow::Cow;

use lock_core::limit::{Record, Request, Usage};
use lock_core::{BackendError, Claim, Limit, Mode, Operation};
use rusqlite::types::Type;
use rusqlite::{Error as SqlError, Row, named_params};

use crate::error::{BACKEND, Fault};
use crate::transaction::Transaction;
use crate::wire::{Held, Hold, nanos};

const RECORD: &str = "SELECT record FROM limits WHERE name = :name AND expires_ns > :now";
const SET_RECORD: &str =
    "INSERT OR REPLACE INTO limits(name, record, boot, expires_ns) VALUES (:name, :record, :boot, :until)";
const DROP_OLD_RECORDS: &str = "DELETE FROM limits WHERE expires_ns <= :now";
/// Places of permits have a kind above 0: their limit.
const SET_PLACES: &str = "UPDATE queue SET kind = :limit WHERE name = :name AND kind > 0";
const DROP_PLACES_ABOVE: &str = "DELETE FROM queue WHERE name = :name AND kind > 0 AND width > :limit";
/// Slots are numbers with commas in between.
const PERMITS: &str = "SELECT coalesce(sum(1 + length(slots) - length(replace(slots, ',', ''))), 0) FROM holds
    WHERE name = :name AND expires_ns > :now";

impl Transaction<'_> {
    /// The claim as it is served, and how the lock is held: both under the limit that was set. A lease that was granted goes
    /// on, whatever its limit was.
    pub(crate) fn under_the_limit<'c>(
        &self,
        key: &str,
        claim: &'c Claim,
        held: Option<Held>,
        own: Option<&Hold>,
    ) -> Result<(Cow<'c, Claim>, Option<Held>), Fault> {
        let mode = claim.terms.mode;
        let record = if mode.limit().is_some() { self.record(key)? } else { None };
        let Some(record) = record else { return Ok((Cow::Borrowed(claim), held)) };
        let goes_on = own.is_some() || claim.replaces.is_some();
        let mode = if goes_on { mode.under(record.limit()) } else { record.apply(BACKEND, mode)? };
        // An older program, which does not know the record, may have been the first to hold.
        let held = held.map(|held| Held { mode: held.mode.under(record.limit()), ..held });
        Ok((Cow::Owned(claim.in_mode(mode)), held))
    }

    /// Limit and use of a semaphore.
    pub(crate) fn usage(&self, request: &Request) -> Result<Usage, Fault> {
        let key = self.key(&request.name);
        let (held, record) = (self.held(&key)?, self.record(&key)?);
        let used_as = self.semaphore(&key, request, held.as_ref())?;
        let limit = record.as_ref().map(Record::limit).or(used_as.and_then(Mode::limit)).unwrap_or(request.known);
        let is_served = record.map_or(request.known == limit, |record| record.serves(request.known));
        if !is_served {
            return Err(refused(Mode::one_permit(limit), request));
        }
        self.usage_under(&key, limit, held.as_ref())
    }

    /// Puts a limit in force, and hands over what is free under it.
    pub(crate) fn set_limit(&self, request: &Request, limit: Limit) -> Result<Usage, Fault> {
        let key = self.key(&request.name);
        let held = self.held(&key)?;
        let used_as = self.semaphore(&key, request, held.as_ref())?;
        let record = Record::of(limit, used_as.and_then(Mode::limit), request.known, self.record(&key)?.as_ref());
        self.set_record(&key, &record)?;
        let places = named_params! { ":name": key, ":limit": limit.get() };
        self.run(DROP_PLACES_ABOVE, places)?;
        self.run(SET_PLACES, places)?;
        self.pass_on(&key, held.map(|held| held.mode.under(limit)), Operation::Limit)?;
        self.usage_under(&key, limit, self.held(&key)?.as_ref())
    }

    /// The mode in which permits are held or, if nobody holds, waited for.
    fn semaphore(&self, key: &str, request: &Request, held: Option<&Held>) -> Result<Option<Mode>, Fault> {
        let used_as = match held {
            Some(held) => Some(held.mode),
            None => self.first_place(key)?.map(|next| next.mode),
        };
        match used_as.filter(|used| used.limit().is_none()) {
            Some(lock) => Err(refused(lock, request)),
            None => Ok(used_as),
        }
    }

    fn usage_under(&self, key: &str, limit: Limit, held: Option<&Held>) -> Result<Usage, Fault> {
        let used = match held {
            Some(_) => self.live(PERMITS, key, |row| row.get(0))?.unwrap_or(0),
            None => 0,
        };
        Ok(Usage { limit, used })
    }

    fn record(&self, key: &str) -> Result<Option<Record>, Fault> {
        self.live(RECORD, key, record)
    }

    fn set_record(&self, key: &str, record: &Record) -> Result<(), Fault> {
        self.run(DROP_OLD_RECORDS, named_params! { ":now": nanos(self.now) })?;
        self.run(
            SET_RECORD,
            named_params! {
                ":name": key, ":record": record.to_string(), ":boot": self.boot(),
                ":until": nanos(self.now + Record::KEPT_FOR),
            },
        )?;
        Ok(())
    }
}

fn refused(used: Mode, request: &Request) -> Fault {
    let asked = Mode::one_permit(request.known);
    BackendError::in_other_use(BACKEND, used, asked).of_operation(Operation::Limit).into()
}

fn record(row: &Row<'_>) -> Result<Record, SqlError> {
    let text = row.get_ref(0)?.as_str()?;
    text.parse().map_err(|error| SqlError::FromSqlConversionFailure(0, Type::Text, Box::new(error)))
}
