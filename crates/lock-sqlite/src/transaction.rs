//! The tables of a file inside one transaction.

use lock_core::{FencingToken, LockName, Moment, Note};
use lock_rules::Undone;
use rusqlite::{Connection, OptionalExtension, Params, Row, named_params};

use crate::error::Fault;
use crate::settings::Settings;
use crate::wire::{self, nanos};

/// The tables at one moment. A writing transaction is alone with them; a reading one changes nothing.
pub(crate) struct Transaction<'a> {
    pub(crate) db: &'a Connection,
    pub(crate) settings: &'a Settings,
    pub(crate) now: Moment,
}

impl<'a> Transaction<'a> {
    /// Inside a transaction that has begun: the time spent waiting for it has passed.
    pub(crate) fn new(db: &'a Connection, settings: &'a Settings) -> Self {
        Self { db, settings, now: settings.timing.now() }
    }

    /// Who revoked the lease whose highest token this is, if that is remembered.
    pub(crate) fn revoked_by(&self, key: &str, highest: FencingToken) -> Result<Option<Note>, Fault> {
        let revocation = named_params! { ":name": key, ":token": i64::from(highest), ":now": nanos(self.now) };
        self.one(wire::REVOCATION, revocation, wire::note)
    }

    /// The first row about a lock that has not expired.
    pub(crate) fn live<T>(
        &self,
        sql: &str,
        key: &str,
        read: impl FnOnce(&Row<'_>) -> rusqlite::Result<T>,
    ) -> Result<Option<T>, Fault> {
        self.one(sql, named_params! { ":name": key, ":now": nanos(self.now) }, read)
    }

    pub(crate) fn one<T>(
        &self,
        sql: &str,
        params: impl Params,
        read: impl FnOnce(&Row<'_>) -> rusqlite::Result<T>,
    ) -> Result<Option<T>, Fault> {
        Ok(self.db.prepare_cached(sql)?.query_row(params, read).optional()?)
    }

    pub(crate) fn all<T>(
        &self,
        sql: &str,
        params: impl Params,
        read: impl FnMut(&Row<'_>) -> rusqlite::Result<T>,
    ) -> Result<Vec<T>, Fault> {
        let mut statement = self.db.prepare_cached(sql)?;
        let rows = statement.query_map(params, read)?;
        Ok(rows.collect::<Result<_, _>>()?)
    }

    pub(crate) fn run(&self, sql: &str, params: impl Params) -> Result<usize, Fault> {
        Ok(self.db.prepare_cached(sql)?.execute(params)?)
    }

    pub(crate) fn key(&self, name: &LockName) -> String {
        self.settings.prefix.key(name.as_str())
    }

    pub(crate) fn boot(&self) -> &str {
        self.settings.timing.boot()
    }
}

impl From<Undone<Self>> for Fault {
    fn from(undone: Undone<Self>) -> Self {
        match undone {
            Undone::Refused(error) => Self::Refused(error),
            Undone::Failed(fault) => fault,
        }
    }
}
