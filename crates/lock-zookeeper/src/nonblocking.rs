//! The store for tokio.

use std::sync::Arc;
use std::time::Duration;
use std::{fmt, iter};

use async_trait::async_trait;
use lock_core::{
    Answer, AsyncBackend, Backend, BackendError, Capabilities, Certainty, Claim, Durability, EntriesEnd, EventSink,
    Fenced, Isolation, Lease, Location, LockName, Mode, ModeKind, Operation, Owner, ReleaseRequest, Released, Renewed,
    RequestOrder, Waiting, WriteSide,
};
use lock_host::Bridge;

use crate::ZookeeperConfig;
use crate::claim::SharedPlace;
use crate::directory::Directory;
use crate::entries::Entries;
use crate::entry;
use crate::error::{self, BACKEND};
use crate::path;
use crate::place::{Place, Whose};
use crate::sessions::{Current, Sessions, bridge};

/// One client: one session, whose connection has a thread of its own, so that nothing that users do delays a renewal.
pub struct Store {
    config: ZookeeperConfig,
    sessions: Sessions,
}

/// Opens a session.
///
/// # Errors
/// `Unreachable` if no server answers, `Config` if the chroot does not exist, `Denied` for a wrong login.
///
/// # Cancel safety
/// Can be dropped at any point.
pub async fn connect(config: &ZookeeperConfig) -> Result<Store, BackendError> {
    over(config, bridge()?).await
}

pub(crate) async fn over(config: &ZookeeperConfig, bridge: Bridge) -> Result<Store, BackendError> {
    let store = Store::new(config, bridge);
    store.session().await.map_err(|failure| failure.of_operation(Operation::Connect))?;
    Ok(store)
}

impl Store {
    fn new(config: &ZookeeperConfig, bridge: Bridge) -> Self {
        Self { config: config.clone(), sessions: Sessions::new(config, bridge) }
    }

    async fn session(&self) -> Result<Arc<Current>, BackendError> {
        self.sessions.current().await
    }

    async fn claim(&self, claim: &Claim) -> Result<Answer, BackendError> {
        let current = self.session().await.map_err(|failure| failure.of_operation(Operation::Acquire))?;
        let Current { session, entries } = &*current;
        loop {
            let shared = entries.place(claim, || Place::new(claim.owner, self.directory(&claim.name)))?;
            let mut place = shared.lock().await;
            // The request before this one may have given it up.
            if !entries.of(&claim.name, claim.owner).is_some_and(|current| current.is(&shared)) {
                continue;
            }
            let answer = place.claim(session, claim).await;
            if let Ok(Answer::Busy { .. }) = answer {
                entries.forget(&claim.name, claim.owner);
            }
            return answer;
        }
    }

    async fn give_up(&self, request: &ReleaseRequest) -> Result<Released, BackendError> {
        let current = self.session().await.map_err(|failure| failure.of_operation(Operation::Release))?;
        let Current { session, entries } = &*current;
        if request.certainty == Certainty::Unknown {
            entries.refuse(request.owner);
        }
        let place = self.place(entries, &request.name, request.owner);
        let mut place = place.lock().await;
        let released = place.leave(session).await.map_err(|failure| error::of(Operation::Release, failure))?;
        entries.forget(&request.name, request.owner);
        Ok(released)
    }

    /// The place of an owner. One that this session has not made is looked for.
    fn place(&self, entries: &Entries, name: &LockName, owner: Owner) -> SharedPlace {
        entries.of(name, owner).unwrap_or_else(|| SharedPlace::new(Place::unknown(owner, self.directory(name))))
    }

    fn directory(&self, name: &LockName) -> String {
        path::of(self.config.prefix(), name)
    }

    /// Which of these leases the leader knows, in their order, and how long the session is sure to last.
    async fn known(
        &self,
        leases: &[Lease],
        whose: Whose,
        operation: Operation,
    ) -> Result<(Vec<bool>, Duration), BackendError> {
        let failed = |failure| error::of(operation, failure);
        let current = self.session().await.map_err(|failure| failure.of_operation(operation))?;
        let Current { session, entries } = &*current;
        let mut nodes = Vec::new();
        for lease in leases {
            let place = self.place(entries, &lease.name, lease.owner);
            let mut place = place.lock().await;
            nodes.push(place.place().node(session, lease, whose).await.map_err(failed)?);
        }
        loop {
            let asked: Vec<_> = nodes.iter().flatten().map(String::as_str).collect();
            let Some(missing) = session.missing(&asked).await.map_err(failed)? else { break };
            let Some(node) = nodes.iter_mut().filter(|node| node.is_some()).nth(missing) else { break };
            *node = None;
        }
        let lasts = session.lasts().await.map_err(failed)?;
        Ok((nodes.iter().map(Option::is_some).collect(), lasts))
    }

    async fn renewed(&self, leases: &[Lease]) -> Result<Vec<Renewed>, BackendError> {
        let (known, lasts) = self.known(leases, Whose::Session, Operation::Renew).await?;
        let mut answers = Vec::new();
        for (lease, known) in iter::zip(leases, known) {
            answers.push(if known {
                Renewed::Renewed { valid_for: lasts.min(lease.terms.ttl.get()), wanted: self.is_wanted(lease).await? }
            } else {
                Renewed::NotHeld
            });
        }
        Ok(answers)
    }

    /// Whether somebody waits for a lock that is not held alone.
    async fn is_wanted(&self, lease: &Lease) -> Result<bool, BackendError> {
        if lease.terms.mode == Mode::Exclusive {
            return Ok(false);
        }
        let current = self.session().await?;
        let directory = Directory::at(self.directory(&lease.name));
        let listed =
            directory.listed(&current.session).await.map_err(|failure| error::of(Operation::Renew, failure))?;
        Ok(entry::is_wanted(&listed))
    }

    async fn check(&self, lease: &Lease) -> Result<Fenced, BackendError> {
        let failed = |failure| error::of(Operation::Fence, failure);
        if self.known(std::slice::from_ref(lease), Whose::Anybody, Operation::Fence).await?.0 == [true] {
            return Ok(Fenced::Acknowledged);
        }
        let current = self.session().await?;
        let place = self.place(&current.entries, &lease.name, lease.owner);
        let higher = place.lock().await.place().higher(&current.session, lease.tokens).await.map_err(failed)?;
        Ok(higher.map_or(Fenced::NotHeld, Fenced::Higher))
    }

    async fn within<T>(
        operation: Operation,
        within: Duration,
        run: impl Future<Output = Result<T, BackendError>>,
    ) -> Result<T, BackendError> {
        tokio::time::timeout(within, run).await.unwrap_or_else(|_| Err(error::timeout(operation, within)))
    }
}

impl Backend for Store {
    fn capabilities(&self) -> Capabilities {
        Capabilities::new(BACKEND, Waiting::QueueWithPush, Durability::Durable)
            .with_ordering(RequestOrder::Unordered)
            .with_isolation(Isolation::Isolated)
            .with_modes(&[ModeKind::Exclusive, ModeKind::Shared, ModeKind::Permits])
            .with_write_side(WriteSide::Apart)
            .with_entries_end(EntriesEnd::WithSession)
    }

    fn listen(&self, sink: EventSink) {
        self.sessions.listen(sink);
    }

    fn locate(&self, name: &LockName) -> Option<Location> {
        Some(Location { store: self.config.place(), key: self.config.prefix().key(name.as_str()) })
    }

    fn end_session(&self) {
        self.sessions.end();
    }
}

#[async_trait]
impl AsyncBackend for Store {
    /// The same: one session is one fate, and its connection has a thread of its own.
    fn for_keeper(self: Arc<Self>) -> Arc<dyn AsyncBackend> {
        self
    }

    async fn acquire(&self, claim: &Claim, within: Duration) -> Result<Answer, BackendError> {
        Self::within(Operation::Acquire, within, self.claim(claim)).await
    }

    async fn renew(&self, leases: &[Lease], within: Duration) -> Result<Vec<Renewed>, BackendError> {
        Self::within(Operation::Renew, within, self.renewed(leases)).await
    }

    async fn release(&self, request: &ReleaseRequest, within: Duration) -> Result<Released, BackendError> {
        Self::within(Operation::Release, within, self.give_up(request)).await
    }

    async fn fence(&self, lease: &Lease, within: Duration) -> Result<Fenced, BackendError> {
        Self::within(Operation::Fence, within, self.check(lease)).await
    }
}

impl fmt::Debug for Store {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Store").field(&self.config).finish()
    }
}
