//! What a client knows of its claims, and what it does about them.

use std::collections::HashMap;
use std::sync::{Arc, Mutex as StdMutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::stream::FuturesOrdered;
use lock_core::{
    Answer, BackendError, Certainty, Claim, Effect, Fenced, Lease, Listeners, LockName, Mode, Moment, Operation, Owner,
    ReleaseRequest, Released, Renewed, StoreEvent, Ttl,
};
use lock_host::{Bridge, Clock, HostClock};
use lock_rules::cannot_keep;
use tokio::sync::{Mutex, OwnedMutexGuard};
use tokio::time::timeout;
use tonic::Status;

use crate::EtcdConfig;
use crate::claim::{Asking, Watching};
use crate::cluster::Cluster;
use crate::directory::OwnerHash;
use crate::entry::Entry;
use crate::error::{self, BACKEND};
use crate::place::{Place, State};
use crate::renewal;
use crate::servers::Servers;
use crate::waiters::{Waiter, Waiters};
use crate::watches::Watcher;

/// How long a look for a waiter may take. Chosen: then it asks by itself, and others are not kept waiting.
const WAKES_WITHIN: Duration = Duration::from_secs(1);

/// The client of a cluster.
pub(crate) struct Client {
    pub(crate) config: EtcdConfig,
    bridge: Bridge,
    pub(crate) cluster: Cluster,
    pub(crate) listeners: Listeners,
    waiters: Waiters,
    places: StdMutex<HashMap<Waiter, Shared>>,
    own: Weak<Self>,
}

/// A place, and the claim that it is of.
#[derive(Clone)]
struct Shared {
    place: Arc<Mutex<Place>>,
    claim: Claim,
}

impl Client {
    pub(crate) fn new(config: &EtcdConfig, servers: Servers, bridge: Bridge) -> Arc<Self> {
        Arc::new_cyclic(|own| Self {
            cluster: Cluster::new(servers, config.root(), config.prefix().clone(), bridge.handle()),
            config: config.clone(),
            bridge,
            listeners: Listeners::default(),
            waiters: Waiters::default(),
            places: StdMutex::default(),
            own: Weak::clone(own),
        })
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Waiter, Shared>> {
        self.places.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The place of an owner, if this client has made one.
    fn known(&self, name: &LockName, owner: Owner) -> Option<Shared> {
        self.lock().get(&(name.clone(), owner)).cloned()
    }

    fn place(&self, claim: &Claim) -> Shared {
        let new = || Shared {
            place: Arc::new(Mutex::new(Place::new(self.cluster.directory(&claim.name), claim.owner, claim.terms.ttl))),
            claim: claim.clone(),
        };
        self.lock().entry((claim.name.clone(), claim.owner)).or_insert_with(new).clone()
    }

    /// The place of an owner, which another client may have made.
    async fn known_or_new(&self, name: &LockName, owner: Owner, ttl: Ttl) -> OwnedMutexGuard<Place> {
        let new = || Arc::new(Mutex::new(Place::new(self.cluster.directory(name), owner, ttl)));
        let place = self.known(name, owner).map_or_else(new, |shared| shared.place);
        place.lock_owned().await
    }

    /// Forgets the place of an owner that has nothing any more.
    fn forget(&self, name: &LockName, owner: Owner) {
        let waiter = (name.clone(), owner);
        self.waiters.leave(&waiter);
        self.lock().remove(&waiter);
    }

    pub(crate) async fn claim(&self, claim: &Claim) -> Result<Answer, BackendError> {
        let (shared, since) = (self.place(claim), HostClock.now());
        let mut place = shared.place.lock().await;
        let answer = self.ask(claim, Some(since), async |asking: &Asking<'_>| asking.claim(&mut place).await).await;
        let has_nothing = matches!(place.state, State::None);
        let answer = answer.map_err(|error| if has_nothing { error } else { error::after_others(error) });
        let is_refused = answer.as_ref().is_err_and(|error| error.effect() == Effect::None);
        if let (Ok(Answer::Granted { .. }), Some(replaced)) = (&answer, claim.replaces) {
            self.forget(&claim.name, replaced);
        }
        if matches!(answer, Ok(Answer::Busy { .. })) || is_refused && has_nothing {
            self.forget(&claim.name, claim.owner);
        }
        answer
    }

    async fn ask<T>(&self, claim: &Claim, since: Option<Moment>, act: impl AsyncFnOnce(&Asking<'_>) -> T) -> T {
        let directory = self.cluster.directory(&claim.name);
        let watcher: Weak<dyn Watcher> = self.own.clone();
        let watch = || -> Watching<'_> {
            let (directory, watcher) = (directory.clone(), watcher.clone());
            Box::pin(async move { self.cluster.watches.watch(&directory, &watcher).await })
        };
        let wake = || self.wake_all(vec![(claim.name.clone(), claim.owner)]);
        act(&Asking { cluster: &self.cluster, waiters: &self.waiters, claim, since, watch: &watch, wake: &wake }).await
    }

    pub(crate) async fn release(&self, request: &ReleaseRequest) -> Result<Released, BackendError> {
        let mut place = self.known_or_new(&request.name, request.owner, request.terms.ttl).await;
        let buried = match request.certainty {
            Certainty::Unknown => place.bury(&self.cluster).await,
            Certainty::Answered => Ok(()),
        };
        let released = self.end(&mut place, request).await?;
        // Without room, nobody can be buried, and what is there can be deleted.
        buried.map_err(|status| error::of(Operation::Release, status))?;
        Ok(released)
    }

    async fn end(&self, place: &mut Place, request: &ReleaseRequest) -> Result<Released, BackendError> {
        let failed = |status| error::of(Operation::Release, status);
        if matches!(place.state, State::None) {
            place.find(&self.cluster).await.map_err(failed)?;
        }
        // A waiter may hold by now and not know it.
        let keeps = request.keep.is_some() && place.finds_itself_granted(&self.cluster).await.map_err(failed)?;
        if keeps && request.terms.mode != Mode::Exclusive {
            return Err(cannot_keep(BACKEND));
        }
        let is_kept = match request.keep {
            Some(time) => place.keep(&self.cluster, request.owner, time).await.map_err(failed)?,
            None => false,
        };
        let released = if is_kept { Released::Released } else { place.delete(&self.cluster).await.map_err(failed)? };
        self.forget(&request.name, request.owner);
        if released == Released::Released {
            return Ok(released);
        }
        let was_kept = self.release_kept(request).await.map_err(failed)?;
        Ok(if was_kept { Released::Released } else { released })
    }

    /// Frees the lock that was kept for an owner, or keeps it for a shorter time. Returns whether it was kept.
    async fn release_kept(&self, request: &ReleaseRequest) -> Result<bool, Status> {
        let owner = request.owner.kept();
        let mut kept = Place::new(self.cluster.directory(&request.name), owner, request.terms.ttl);
        kept.find(&self.cluster).await?;
        match request.keep {
            None => Ok(kept.delete(&self.cluster).await? == Released::Released),
            Some(time) => kept.keep_no_longer(&self.cluster, request.owner, time).await,
        }
    }

    pub(crate) async fn renew(&self, leases: &[Lease]) -> Result<Vec<Renewed>, BackendError> {
        let mut places = Vec::new();
        for lease in leases {
            let mut place = self.known_or_new(&lease.name, lease.owner, lease.terms.ttl).await;
            if matches!(place.state, State::None) {
                place.find(&self.cluster).await.map_err(|status| error::of(Operation::Renew, status))?;
            }
            places.push(place);
        }
        renewal::renew(&self.cluster, leases, &mut places).await
    }

    pub(crate) async fn fence(&self, lease: &Lease) -> Result<Fenced, BackendError> {
        let failed = |status| error::of(Operation::Fence, status);
        let directory = self.cluster.directory(&lease.name);
        let listed = self.cluster.list_all(&directory).await.map_err(failed)?;
        let owner = OwnerHash::of(lease.owner);
        let tokens = |entry: &Entry| listed.base.tokens(entry.drawn_at(), lease.tokens.width()).ok();
        if listed.entries.iter().any(|entry| entry.is_of(&owner) && tokens(entry) == Some(lease.tokens)) {
            return Ok(Fenced::Acknowledged);
        }
        let later = listed.first().filter(|first| first.is_exclusive()).and_then(tokens);
        let higher = later.map(|tokens| tokens.low()).filter(|low| *low > lease.tokens.high());
        Ok(higher.map_or(Fenced::NotHeld, Fenced::Higher))
    }

    /// Looks whether the turns of these waiters have come, and tells them.
    fn wake_all(&self, waiters: Vec<Waiter>) {
        let Some(own) = self.own.upgrade().filter(|_| !waiters.is_empty()) else { return };
        self.bridge.handle().spawn(async move {
            // They look together, and are notified in the order in which they came.
            let mut looks: FuturesOrdered<_> = waiters.into_iter().map(|waiter| own.wake(waiter)).collect();
            while let Some(told) = looks.next().await {
                told.into_iter().for_each(|event| own.listeners.deliver(&event));
            }
        });
    }

    /// Looks whether the turn of a waiter has come. Returns what to notify it of.
    async fn wake(&self, (name, owner): Waiter) -> Option<StoreEvent> {
        let shared = self.known(&name, owner)?;
        let mut place = shared.place.lock().await;
        if place.is_granted || !self.waiters.leave(&(name.clone(), owner)) {
            return None;
        }
        let look = self.ask(&shared.claim, None, async |asking: &Asking<'_>| asking.go_on(&mut place).await);
        match timeout(WAKES_WITHIN, look).await {
            Ok(Ok(Some(Answer::Granted { lease, valid_for, wanted }))) => {
                Some(StoreEvent::Granted { lease, valid_for, wanted })
            }
            Ok(Ok(Some(_))) => None,
            Ok(Ok(None) | Err(_)) | Err(_) => Some(StoreEvent::Freed { name }),
        }
    }
}

impl Watcher for Client {
    fn ended(&self, key: &[u8], revision: i64) {
        self.wake_all(self.waiters.ended(key, revision));
    }

    fn missed(&self) {
        self.waiters.forget_ends();
        self.listeners.deliver(&StoreEvent::RecheckAll);
    }
}
