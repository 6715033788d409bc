//! The store for tokio.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::{Duration, Instant};
use std::{fmt, iter};

use async_trait::async_trait;
use futures_util::future::join_all;
use lock_core::inspect::{Entry, Page, Query, Revoked};
use lock_core::latch::{self, Seen};
use lock_core::{
    Ability, Answer, AsyncBackend, Backend, BackendError, Capabilities, Certainty, Claim, Durability, EntriesEnd,
    EventSink, Fenced, FencingToken, Isolation, Lease, Location, LockName, Mode, ModeKind, Note, Operation, Owner,
    ReleaseRequest, Released, Renewed, RequestOrder, Waiting, WriteSide,
};
use lock_host::Bridge;
use zookeeper_client::Error;

use crate::ZookeeperConfig;
use crate::claim::SharedPlace;
use crate::directory::Directory;
use crate::entries::Entries;
use crate::entry;
use crate::error::{self, BACKEND};
use crate::path;
use crate::place::{Place, Whose};
use crate::sessions::{Current, Sessions, bridge};
use crate::{inspect, latches};

/// How long the check for waiters may take. Chosen: a small part of the time for a renewal.
const HINT_WITHIN: Duration = Duration::from_millis(100);

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
    store.session_for(Operation::Connect).await?;
    Ok(store)
}

impl Store {
    fn new(config: &ZookeeperConfig, bridge: Bridge) -> Self {
        Self { config: config.clone(), sessions: Sessions::new(config, bridge) }
    }

    /// The session, for a request.
    async fn session_for(&self, operation: Operation) -> Result<Arc<Current>, BackendError> {
        self.sessions.current().await.map_err(|failure| failure.of_operation(operation))
    }

    async fn claim(&self, claim: &Claim) -> Result<Answer, BackendError> {
        let current = self.session_for(Operation::Acquire).await?;
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
        let current = self.session_for(Operation::Release).await?;
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

    fn directory(&self, name: &LockName) -> Directory {
        Directory::at(path::of(self.config.prefix(), name))
    }

    /// Which of these leases the leader knows, in their order, and how long the session is sure to last.
    async fn known(
        &self,
        leases: &[Lease],
        whose: Whose,
        operation: Operation,
    ) -> Result<(Vec<bool>, Duration), BackendError> {
        let failed = |failure| error::of(operation, failure);
        let current = self.session_for(operation).await?;
        let Current { session, entries } = &*current;
        let mut known = Vec::new();
        for lease in leases {
            let place = self.place(entries, &lease.name, lease.owner);
            let mut place = place.lock().await;
            known.push(place.place().nodes(session, lease, whose).await.map_err(failed)?);
        }
        loop {
            let (asked, of): (Vec<&str>, Vec<usize>) = nodes_of(&known).unzip();
            let Some(missing) = session.missing(&asked).await.map_err(failed)? else { break };
            let Some(lease) = of.get(missing).copied() else { break };
            known[lease] = None;
        }
        let lasts = session.lasts().await.map_err(failed)?;
        Ok((known.iter().map(Option::is_some).collect(), lasts))
    }

    async fn renewed(&self, leases: &[Lease]) -> Result<Vec<Renewed>, BackendError> {
        let (known, lasts) = self.known(leases, Whose::Session, Operation::Renew).await?;
        let wanted = self.wanted(leases).await;
        let mut answers = Vec::new();
        for (lease, known) in iter::zip(leases, known) {
            answers.push(if known {
                Renewed::Renewed { valid_for: lasts.min(lease.terms.ttl.get()), wanted: wanted.contains(&lease.name) }
            } else {
                // Who did it is good to know, and no reason to fail the others.
                let revoked_by = self.revoker(Operation::Renew, lease.tokens.high()).await;
                revoked_by.ok().flatten().map_or(Renewed::NotHeld, |by| Renewed::Revoked { by })
            });
        }
        Ok(answers)
    }

    /// The names among these that have waiters, except those held exclusively. A hint: it never makes a renewal fail.
    async fn wanted(&self, leases: &[Lease]) -> HashSet<LockName> {
        let names = leases.iter().filter(|lease| lease.terms.mode != Mode::Exclusive).map(|lease| lease.name.clone());
        let names: HashSet<LockName> = names.collect();
        let looks = names.iter().map(async |name| {
            let current = self.session_for(Operation::Renew).await.ok()?;
            let listed = self.directory(name).listed(&current.session).await.ok()?;
            entry::is_wanted(&listed).then(|| name.clone())
        });
        tokio::time::timeout(HINT_WITHIN, join_all(looks)).await.into_iter().flatten().flatten().collect()
    }

    async fn check(&self, lease: &Lease) -> Result<Fenced, BackendError> {
        let failed = |failure| error::of(Operation::Fence, failure);
        if self.known(std::slice::from_ref(lease), Whose::Anybody, Operation::Fence).await?.0 == [true] {
            return Ok(Fenced::Acknowledged);
        }
        let current = self.session_for(Operation::Fence).await?;
        let place = self.place(&current.entries, &lease.name, lease.owner);
        let higher = place.lock().await.place().higher(&current.session, lease.tokens).await.map_err(failed)?;
        Ok(higher.map_or(Fenced::NotHeld, Fenced::Higher))
    }

    /// Who ended the lease whose highest token this is.
    async fn revoker(&self, operation: Operation, highest: FencingToken) -> Result<Option<Note>, BackendError> {
        let current = self.session_for(operation).await?;
        inspect::revoked_by(&current.session, highest).await.map_err(|failure| error::of(operation, failure))
    }

    async fn within<T>(
        operation: Operation,
        within: Duration,
        run: impl Future<Output = Result<T, BackendError>>,
    ) -> Result<T, BackendError> {
        tokio::time::timeout(within, run).await.unwrap_or_else(|_| Err(error::timeout(operation, within)))
    }
}

/// All nodes of these leases, each with the index of its lease.
fn nodes_of(known: &[Option<Vec<String>>]) -> impl Iterator<Item = (&str, usize)> {
    known.iter().enumerate().flat_map(|(lease, nodes)| nodes.iter().flatten().map(move |node| (node.as_str(), lease)))
}

fn of_inspection(failure: Error) -> BackendError {
    error::of(Operation::Inspect, failure)
}

impl Backend for Store {
    fn capabilities(&self) -> Capabilities {
        Capabilities::new(BACKEND, Waiting::QueueWithPush, Durability::ByOperator)
            .with_ordering(RequestOrder::Unordered)
            .with_isolation(Isolation::Isolated)
            .with_modes(&[ModeKind::Exclusive, ModeKind::Shared, ModeKind::Permits])
            .with_write_side(WriteSide::Apart)
            .with_abilities(&[Ability::Latch, Ability::Inspect])
            .with_entries_end(EntriesEnd::WithSession)
            .with_lease_max(Some(self.sessions.lease_max()))
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

    async fn latch(&self, request: &latch::Request, within: Duration) -> Result<Seen, BackendError> {
        let node = format!("/{}{}", path::LATCHES, path::of(self.config.prefix(), &request.name));
        let asked = async { latches::ask(&self.session_for(Operation::Latch).await?.session, &node, request).await };
        let state = Self::within(Operation::Latch, within, asked).await?;
        Ok(Seen { state, told: false })
    }

    async fn holder(&self, name: &LockName, within: Duration) -> Result<Option<Entry>, BackendError> {
        let shown = async {
            let current = self.session_for(Operation::Inspect).await?;
            inspect::shown(&current.session, &self.directory(name), name.clone()).await.map_err(of_inspection)
        };
        Self::within(Operation::Inspect, within, shown).await
    }

    async fn list(&self, query: &Query, within: Duration) -> Result<Page, BackendError> {
        let listed = async {
            let current = self.session_for(Operation::Inspect).await?;
            // A page is better than no answer in time.
            let until = Instant::now() + within / 2;
            inspect::list(&current.session, self.config.prefix(), query, until).await.map_err(of_inspection)
        };
        Self::within(Operation::Inspect, within, listed).await
    }

    async fn revoke(
        &self,
        name: &LockName,
        token: FencingToken,
        by: &Note,
        within: Duration,
    ) -> Result<Revoked, BackendError> {
        let revoked = async {
            let current = self.session_for(Operation::Inspect).await?;
            inspect::revoke(&current.session, &self.directory(name), token, by).await.map_err(of_inspection)
        };
        Self::within(Operation::Inspect, within, revoked).await
    }

    async fn revoked_by(
        &self,
        _: &LockName,
        highest: FencingToken,
        within: Duration,
    ) -> Result<Option<Note>, BackendError> {
        Self::within(Operation::Inspect, within, self.revoker(Operation::Inspect, highest)).await
    }
}

impl fmt::Debug for Store {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Store").field(&self.config).finish()
    }
}
