//! One look at the file on behalf of waiters: what changed for them.
//!
//! # Source
//! "PRAGMA data_version" of the SQLite manual.

use std::collections::BTreeSet;
use std::time::Duration;

use lock_core::{BackendError, Event, Lease, LockName, Mode, Moment, Operation, Owner, Terms};
use lock_host::{Clock, HostClock};

use crate::error::{Fault, Stage, explain};
use crate::file::Missing;
use crate::session::{Access, Ask, Begun, Session};
use crate::settings::Settings;
use crate::transaction::Transaction;
use crate::waiter::{News, Waiter};
use crate::wire::{Held, Hold, Place};

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
        let (held, next) = transaction.look(name)?;
        sight.events.extend(grants(transaction, name, held.as_ref(), next.is_some(), &mine)?);
        let due = match prospect(transaction, name, held.as_ref(), next.as_ref(), &mine)? {
            Prospect::Fits => {
                sight.events.push(Event::Freed { name: name.clone() });
                None
            }
            Prospect::In(time) => Some(now + time),
        };
        sight.due = [sight.due, due].into_iter().flatten().min();
    }
    for waiter in waiters {
        sight.positions.push((waiter.owner, transaction.position(&transaction.key(&waiter.name), waiter.owner)?));
    }
    Ok(sight)
}

/// What was handed over to waiters of this client.
fn grants(
    transaction: &Transaction<'_>,
    name: &LockName,
    held: Option<&Held>,
    wanted: bool,
    mine: &[&Waiter],
) -> Result<Vec<Event>, Fault> {
    let Some(held) = held else { return Ok(Vec::new()) };
    let mut events = Vec::new();
    for waiter in mine {
        let Some(hold) = transaction.own(&transaction.key(name), Some(held), waiter.owner)? else { continue };
        if held.mode.kind() != waiter.terms.mode.kind() {
            // An older program handed it over. Asking again makes it what it should be.
            events.push(Event::Freed { name: name.clone() });
            continue;
        }
        let Hold { owner, tokens, slots, remaining, .. } = hold;
        // The limit may have been changed since the waiter asked.
        let mode = held.mode.limit().map_or(waiter.terms.mode, |limit| waiter.terms.mode.under(limit)).covering(&slots);
        let terms = Terms { mode, ..waiter.terms };
        let lease = Lease { name: name.clone(), owner, tokens, slots, terms };
        let wanted = wanted && held.mode != Mode::Exclusive;
        events.push(Event::Granted { lease, valid_for: remaining, wanted });
    }
    Ok(events)
}

/// What to expect of a lock.
enum Prospect {
    /// A waiter of this client would get it now.
    Fits,
    /// Nobody can get it before this time has passed, unless somebody writes.
    In(Duration),
}

fn prospect(
    transaction: &Transaction<'_>,
    name: &LockName,
    held: Option<&Held>,
    next: Option<&Place>,
    mine: &[&Waiter],
) -> Result<Prospect, Fault> {
    let Some(next) = next else { return Ok(held.map_or(Prospect::Fits, |held| Prospect::In(held.last.remaining))) };
    let fits_in = match held {
        Some(held) => transaction.fits_in(&transaction.key(name), held, next.mode)?,
        None => None,
    };
    let is_mine = mine.iter().any(|waiter| waiter.owner == next.owner);
    Ok(match (is_mine, fits_in) {
        (true, None) => Prospect::Fits,
        (true, Some(time)) => Prospect::In(time),
        // Only the next in line asks for the lock. For the others that is useless until its place has expired.
        (false, None) => Prospect::In(next.remaining),
        (false, Some(time)) => Prospect::In(time.min(next.remaining)),
    })
}
