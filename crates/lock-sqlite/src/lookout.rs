//! One look at the file on behalf of waiters: what changed for them.
//!
//! # Source
//! "PRAGMA data_version" of the SQLite manual.

use std::collections::BTreeSet;
use std::time::Duration;

use lock_core::{BackendError, Event, Lease, LockName, Mode, Moment, Operation, Owner, Terms};
use lock_host::{Clock, HostClock};
use lock_rules::{Hold, Place, Rows, position};

use crate::error::{Fault, Stage, explain};
use crate::file::Missing;
use crate::rows::SqliteRows;
use crate::session::{Access, Ask, Begun, Session};
use crate::settings::Settings;
use crate::transaction::Transaction;
use crate::waiter::{News, Waiter};

/// How long one look may wait for others.
const LOOK_WITHIN: Duration = Duration::from_secs(1);

/// A connection for looking only, and what it saw last.
pub(crate) struct Lookout<'a> {
    settings: &'a Settings,
    session: Option<Session>,
    version: Option<i64>,
    /// When something that was seen expires.
    pub(crate) due: Option<Moment>,
}

impl<'a> Lookout<'a> {
    pub(crate) fn new(settings: &'a Settings) -> Self {
        Self { settings, session: None, version: None, due: None }
    }

    pub(crate) fn forget_everything(&mut self) {
        *self = Self::new(self.settings);
    }

    /// What to tell waiters, if anything happened since the last look.
    pub(crate) fn look(&mut self, news: News, waiters: impl FnOnce() -> Vec<Waiter>) -> Result<Sight, BackendError> {
        let now = self.settings.timing.now();
        let session = self.session()?;
        let version = session.data_version();
        let version =
            version.map_err(|error| explain(Operation::Acquire, Stage::Before, &self.settings.path, error.into()))?;
        let is_due = self.due.is_some_and(|due| due <= now);
        if self.version == Some(version) && news == News::None && !is_due {
            self.session = Some(session);
            return Ok(Sight::default());
        }
        // Read before the look: what is committed between the two is seen twice rather than never.
        self.version = Some(version);
        let sight = self.survey(session, now, &waiters())?;
        self.due = sight.due;
        Ok(sight)
    }

    fn session(&mut self) -> Result<Session, BackendError> {
        if let Some(session) = self.session.take_if(|session| session.is_current()) {
            return Ok(session);
        }
        self.version = None;
        Session::open(self.settings, &mut self.session, Missing::Refuse, HostClock.now() + LOOK_WITHIN)
    }

    fn survey(&mut self, session: Session, now: Moment, waiters: &[Waiter]) -> Result<Sight, BackendError> {
        let deadline = HostClock.now() + LOOK_WITHIN;
        let ask = Ask { operation: Operation::Acquire, access: Access::Read, deadline };
        match session.begin(self.settings, &ask, || {})? {
            Begun::Here => {
                let work = |db: &_| survey(&Transaction::new(db, self.settings), now, waiters);
                let (session, sight) = session.finish(work);
                self.session = session;
                sight.map_err(|failure| failure.explain(ask.operation, &self.settings.path))
            }
            Begun::Replaced => {
                self.session = Some(session);
                Ok(Sight::default())
            }
        }
    }
}

/// What waiters should know, their positions, and when to look again although nobody writes.
#[derive(Default)]
pub(crate) struct Sight {
    pub(crate) events: Vec<Event>,
    pub(crate) positions: Vec<(Owner, u32)>,
    due: Option<Moment>,
}

fn survey(transaction: &Transaction<'_>, now: Moment, waiters: &[Waiter]) -> Result<Sight, Fault> {
    let mut sight = Sight::default();
    let names: BTreeSet<&LockName> = waiters.iter().map(|waiter| &waiter.name).collect();
    for name in names {
        let mine: Vec<&Waiter> = waiters.iter().filter(|waiter| waiter.name == *name).collect();
        let mut rows = transaction.rows(name);
        let next = rows.next_place(0)?;
        for waiter in &mine {
            let (granted, place) = (grant(&mut rows, waiter, next.is_some(), now)?, rows.place(waiter.owner)?);
            // A waiter that has lost its place learns why by asking.
            let is_gone = granted.is_none() && place.is_none();
            sight.events.extend(granted.or_else(|| is_gone.then(|| Event::Freed { name: name.clone() })));
            let position = place.map(|place| position(&mut rows, place.number)).transpose()?;
            sight.positions.push((waiter.owner, position.unwrap_or(0)));
        }
        let due = match prospect(&mut rows, name, next.as_ref(), &mine)? {
            Prospect::Fits => {
                sight.events.push(Event::Freed { name: name.clone() });
                None
            }
            Prospect::At(time) => Some(time),
        };
        sight.due = [sight.due, due].into_iter().flatten().min();
    }
    Ok(sight)
}

/// What was handed over to a waiter of this client.
fn grant(rows: &mut SqliteRows<'_>, waiter: &Waiter, has_waiters: bool, now: Moment) -> Result<Option<Event>, Fault> {
    let Some(hold) = rows.hold(waiter.owner)? else { return Ok(None) };
    let name = waiter.name.clone();
    if hold.mode.kind() != waiter.terms.mode.kind() {
        // An older program handed it over. Asking again makes it what it should be.
        return Ok(Some(Event::Freed { name }));
    }
    let Hold { owner, mode, tokens, slots, until, .. } = hold;
    let (terms, wanted) =
        (Terms { mode: mode.covering(&slots), ..waiter.terms }, has_waiters && mode != Mode::Exclusive);
    let lease = Lease { name, owner, tokens, slots, terms };
    Ok(Some(Event::Granted { lease, valid_for: until.since(now), wanted }))
}

/// What to expect of a lock.
enum Prospect {
    /// A waiter of this client would get it now.
    Fits,
    /// Nobody can get it before this time, unless somebody writes.
    At(Moment),
}

fn prospect(
    rows: &mut SqliteRows<'_>,
    name: &LockName,
    next: Option<&Place<()>>,
    mine: &[&Waiter],
) -> Result<Prospect, Fault> {
    let Some(next) = next else {
        return Ok(rows.last_hold(None)?.map_or(Prospect::Fits, |last| Prospect::At(last.until)));
    };
    let is_mine = mine.iter().any(|waiter| waiter.owner == next.owner);
    Ok(match (is_mine, lock_rules::fits_at(rows, name, next.terms.mode)?) {
        (true, None) => Prospect::Fits,
        (true, Some(time)) => Prospect::At(time),
        // Only the next waiter asks for the lock. For the others that is useless until its place has expired.
        (false, None) => Prospect::At(next.until),
        (false, Some(time)) => Prospect::At(time.min(next.until)),
    })
}
