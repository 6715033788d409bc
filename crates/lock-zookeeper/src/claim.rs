//! A claim: it looks at the directory until it holds or waits, and is woken when an entry ends that it waits for.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::{Arc, Weak};

use futures_util::future::{select_all, try_join_all};
use lock_core::{Answer, BackendError, Claim, Effect, ErrorKind, Operation, Queueing, Released, StoreEvent};
use lock_rules::used_up;
use tokio::sync::oneshot::error::TryRecvError;
use tokio::sync::{Mutex, MutexGuard, oneshot};
use zookeeper_client::{Error, OneshotWatcher};

use crate::directory::drawn;
use crate::entry::{self, Listed, Role, Turn};
use crate::error::{self, BACKEND};
use crate::place::{Entry, Place, State};
use crate::session::Session;

/// How often a claim looks again because the order changed while it looked. Chosen: only a bound.
const LOOKS_MAX: u32 = 16;

/// A place that one request at a time uses.
#[derive(Clone)]
pub(crate) struct SharedPlace(Arc<Mutex<Watching>>);

impl SharedPlace {
    pub(crate) fn new(place: Place) -> Self {
        Self(Arc::new(Mutex::new(Watching { place, watched: None })))
    }

    pub(crate) fn is(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    pub(crate) async fn lock(&self) -> LockedPlace<'_> {
        LockedPlace { own: self.0.lock().await, shared: Arc::downgrade(&self.0) }
    }
}

/// A place that a request uses now.
pub(crate) struct LockedPlace<'a> {
    own: MutexGuard<'a, Watching>,
    shared: Weak<Mutex<Watching>>,
}

/// A place, and the entries whose end wakes it.
struct Watching {
    place: Place,
    watched: Option<Watched>,
}

struct Watched {
    children: Vec<String>,
    /// Ends the watch when it is dropped.
    _wanted: oneshot::Sender<Infallible>,
}

/// What a look at the directory led to.
enum Look {
    /// The answer.
    Told(Answer),
    /// The order changed meanwhile.
    Again,
}

impl LockedPlace<'_> {
    /// Carries out a claim. One that waits is notified of a grant when its turn comes.
    pub(crate) async fn claim(&mut self, session: &Arc<Session>, claim: &Claim) -> Result<Answer, BackendError> {
        for _ in 0..LOOKS_MAX {
            if let Look::Told(answer) = self.look(session, claim).await? {
                return Ok(answer);
            }
        }
        let message = "the order of the entries changed at each read";
        Err(error::new(Operation::Acquire, ErrorKind::Unavailable, Effect::Unknown, message))
    }

    /// Goes on with a claim that has waited. `None` if its entry is gone: then it may have been given up.
    async fn go_on(&mut self, session: &Arc<Session>, claim: &Claim) -> Result<Option<Answer>, BackendError> {
        for _ in 0..LOOKS_MAX {
            if matches!(self.own.place.state, State::None) {
                break;
            }
            if let Look::Told(answer) = self.look(session, claim).await? {
                return Ok(Some(answer));
            }
        }
        Ok(None)
    }

    async fn look(&mut self, session: &Arc<Session>, claim: &Claim) -> Result<Look, BackendError> {
        let failed = |failure| error::of(Operation::Acquire, failure);
        let role = Role::of(claim);
        let listed = match &self.own.place.state {
            State::Unknown => return self.own.place.find(session).await.map(|_| Look::Again).map_err(failed),
            State::None if claim.queueing == Queueing::Unwanted => {
                let listed = self.own.place.directory.listed(session).await.map_err(failed)?;
                role.check_use(&claim.name, &listed)?;
                if !role.is_free_in(&listed) {
                    return self.busy(session, &listed).await.map_err(failed);
                }
                self.own.place.create(session, claim, role).await.map_err(failed)?
            }
            State::None => self.own.place.create(session, claim, role).await.map_err(failed)?,
            State::There(_) => Some(self.own.place.directory.listed(session).await.map_err(failed)?),
        };
        let (Some(listed), Some(entry)) = (listed, self.own.place.entry()) else { return Ok(Look::Again) };
        if !entry.is_granted
            && let Err(refusal) = role.check_use(&claim.name, &listed)
        {
            self.leave(session).await.map_err(failed)?;
            return Err(refusal);
        }
        match entry::decide(&listed, &entry.child) {
            None => {
                self.own.place.state = State::None;
                Ok(Look::Again)
            }
            Some(Turn::Granted) => self.grant(session, claim, &entry, &listed).await,
            Some(Turn::Waits { .. }) if claim.queueing == Queueing::Unwanted => {
                self.leave(session).await.map_err(failed)?;
                self.busy(session, &listed).await.map_err(failed)
            }
            Some(Turn::Waits { position, watched }) => {
                if !self.watch(session, claim, watched).await.map_err(failed)? {
                    return Ok(Look::Again);
                }
                let Some(holder) = self.own.place.directory.holder(session, &listed).await.map_err(failed)? else {
                    return Ok(Look::Again);
                };
                let valid_for = session.lasts().await.map_err(failed)?;
                Ok(Look::Told(Answer::Queued { position, remaining: None, valid_for, drawn: drawn(&holder), holder }))
            }
        }
    }

    /// Has the end of these entries wake the claim. Returns false if one of them has ended already.
    async fn watch(&mut self, session: &Arc<Session>, claim: &Claim, children: Vec<String>) -> Result<bool, Error> {
        if self.own.watched.as_ref().is_some_and(|watched| watched.children == children) {
            return Ok(true);
        }
        let paths: Vec<_> = children.iter().map(|child| self.own.place.directory.path(child)).collect();
        let watched = paths.iter().map(|path| session.read(move |client| client.check_and_watch_stat(path)));
        let (stats, watchers): (Vec<_>, Vec<_>) = try_join_all(watched).await?.into_iter().unzip();
        if stats.iter().any(Option::is_none) {
            return Ok(false);
        }
        let (wanted, ended) = oneshot::channel();
        session.spawn(waking(watchers, ended, (Arc::downgrade(session), Weak::clone(&self.shared)), claim.clone()));
        self.own.watched = Some(Watched { children, _wanted: wanted });
        Ok(true)
    }

    /// Deletes the entry, whatever is known of it.
    pub(crate) async fn leave(&mut self, session: &Session) -> Result<Released, Error> {
        let released = self.own.place.leave(session).await?;
        self.own.watched = None;
        Ok(released)
    }

    /// The place itself.
    pub(crate) fn place(&mut self) -> &mut Place {
        &mut self.own.place
    }

    async fn busy(&self, session: &Session, listed: &[Listed]) -> Result<Look, Error> {
        let holder = self.own.place.directory.holder(session, listed).await?;
        let busy = |holder| Look::Told(Answer::Busy { remaining: None, drawn: drawn(&holder), holder });
        Ok(holder.map_or(Look::Again, busy))
    }

    async fn grant(
        &mut self,
        session: &Session,
        claim: &Claim,
        entry: &Entry,
        listed: &[Listed],
    ) -> Result<Look, BackendError> {
        let failed = |failure| error::of(Operation::Acquire, failure);
        if let Role::Permits { count, limit } = Role::of(claim)
            && entry.slots.get().is_empty()
        {
            self.own.place.take_slots(session, claim, (entry.clone(), (count, limit))).await.map_err(failed)?;
            return Ok(Look::Again);
        }
        let tokens = match session.base().tokens(entry.drawn_by, claim.width) {
            Ok(tokens) => tokens,
            Err(invalid) => {
                self.leave(session).await.map_err(failed)?;
                return Err(used_up(BACKEND, invalid));
            }
        };
        let lasts = session.lasts().await.map_err(failed)?;
        self.own.watched = None;
        self.own.place.mark_granted();
        let (lease, valid_for) = (claim.lease_of(tokens, entry.slots.clone()), lasts.min(claim.terms.ttl.get()));
        Ok(Look::Told(Answer::Granted { lease, valid_for, wanted: entry::is_wanted(listed) }))
    }
}

/// A task that waits until one of these entries ends, and then claims again: it delivers a grant, or watches other entries.
fn waking(
    watchers: Vec<OneshotWatcher>,
    mut ended: oneshot::Receiver<Infallible>,
    (session, place): (Weak<Session>, Weak<Mutex<Watching>>),
    claim: Claim,
) -> Pin<Box<dyn Future<Output = ()> + Send>> {
    Box::pin(async move {
        let changed = select_all(watchers.into_iter().map(|watcher| Box::pin(watcher.changed())));
        tokio::select! {
            _ = changed => {}
            _ = &mut ended => return,
        }
        let (Some(session), Some(place)) = (session.upgrade(), place.upgrade()) else { return };
        let place = SharedPlace(place);
        let mut locked = place.lock().await;
        // The request before this one may have given the place up, or watches anew.
        if ended.try_recv() != Err(TryRecvError::Empty) {
            return;
        }
        locked.own.watched = None;
        match locked.go_on(&session, &claim).await {
            Ok(Some(Answer::Granted { lease, valid_for, wanted })) => {
                session.tell(&StoreEvent::Granted { lease, valid_for, wanted });
            }
            Ok(Some(_)) => {}
            Ok(None) | Err(_) => session.tell(&StoreEvent::Freed { name: claim.name }),
        }
    })
}
