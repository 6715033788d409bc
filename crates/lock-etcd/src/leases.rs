//! Leases of etcd: each entry has one of its own, so it ends by itself unless that is renewed. Those of entries that were deleted are used
//! again, and so are their names, which name the keys too: etcd keeps the names of deleted keys for a while, and each list walks them.

mod renewing;

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use lock_core::Moment;
use lock_host::{Clock, HostClock};
use lock_rules::{LeaseProof, Renewal};
use tokio::runtime::Handle;
use tokio::sync::{Semaphore, oneshot};
use tonic::Status;

use crate::leases::renewing::Renewing;
use crate::proto::{LeaseGrantRequest, LeaseGrantResponse, LeaseTimeToLiveRequest, LeaseTimeToLiveResponse};
use crate::servers::{Seen, Servers};
use crate::unpoisoned::lock;

/// How many leases of one ttl wait for another entry. Chosen: those of a busy client; the others end by themselves.
const IDLE_MAX: usize = 64;

/// How many leases are asked for at the same time. Chosen: this many are left over if servers hang, and callers ask again and again.
const GRANTS_MAX: usize = 16;

/// How much longer than an entry a lease lasts, so that it can be used again within this time without a renewal. Chosen: short, because others
/// wait for so much longer if a holder dies.
const USED_AGAIN_WITHIN: Duration = Duration::from_secs(1);

/// A lease, and how long it is sure to last.
#[derive(Debug)]
pub(crate) struct Lease {
    id: i64,
    /// The ttl that was asked for, in seconds.
    asked: i64,
    /// How long it lasts from a renewal.
    ttl: Duration,
    proof: LeaseProof,
    /// Whether another client may use it.
    is_shared: bool,
}

impl Lease {
    /// One that another client has made, in this term, if that is known.
    pub(crate) const fn of_others(id: i64, granted_in: Option<u64>) -> Self {
        Self { id, asked: 0, ttl: Duration::ZERO, proof: LeaseProof::new(Moment::ORIGIN, granted_in), is_shared: true }
    }

    /// The term in which it was granted, if that is known.
    pub(crate) const fn granted_in(&self) -> Option<u64> {
        self.proof.granted_in()
    }

    pub(crate) const fn id(&self) -> i64 {
        self.id
    }

    /// How long it lasts from a renewal.
    pub(crate) const fn ttl(&self) -> Duration {
        self.ttl
    }

    /// How long it is sure to last.
    pub(crate) fn lasts(&self, now: Moment) -> Duration {
        self.proof.lasts(now)
    }

    /// Whether little of its time is left, or nothing is known of it.
    pub(crate) fn is_old(&self) -> bool {
        self.ttl.is_zero() || self.lasts(HostClock.now()) < self.ttl / 3 * 2
    }

    /// Whether it was renewed, and that is not proved yet.
    pub(crate) const fn is_pending(&self) -> bool {
        self.proof.is_pending()
    }

    /// Counts its renewal, if this answer proves it: it has to be to a transaction that was sent after the renewal was answered.
    pub(crate) fn prove(&mut self, seen: Seen) {
        self.proof.prove(&seen);
    }
}

/// The leases of a client.
pub(crate) struct Leases {
    servers: Arc<Servers>,
    runtime: Handle,
    idle: Arc<Mutex<Idle>>,
    granting: Arc<Semaphore>,
    renewing: Mutex<Option<Renewing>>,
}

/// Leases that no entry has, by the ttl that was asked for.
#[derive(Default)]
struct Idle(HashMap<i64, Vec<Lease>>);

impl Idle {
    fn put(&mut self, lease: Lease) {
        let idle = self.0.entry(lease.asked).or_default();
        if !lease.is_shared && idle.len() < IDLE_MAX {
            idle.push(lease);
        }
    }
}

impl Leases {
    pub(crate) fn new(servers: Arc<Servers>, runtime: Handle) -> Self {
        let granting = Arc::new(Semaphore::new(GRANTS_MAX));
        Self { servers, runtime, idle: Arc::default(), granting, renewing: Mutex::default() }
    }

    /// A lease for an entry, which lasts for this long or can be renewed.
    pub(crate) async fn take(&self, ttl: Duration) -> Result<Lease, Status> {
        let ttl_and_more = ttl + USED_AGAIN_WITHIN;
        let idle = lock(&self.idle).0.get_mut(&seconds(ttl_and_more)).and_then(Vec::pop);
        if let Some(mut lease) = idle {
            let lasts = lease.lasts(HostClock.now());
            let may_be_renewed = !lasts.is_zero() && self.renewals_count(&lease);
            if lasts >= ttl || may_be_renewed && self.renew(&mut lease).await? {
                return Ok(lease);
            }
        }
        self.grant(ttl_and_more).await
    }

    /// Whether renewals of this lease can count.
    pub(crate) fn renewals_count(&self, lease: &Lease) -> bool {
        lease.granted_in().is_some_and(|term| self.servers.term() == Some(term))
    }

    /// How long a lease lasts unless it is renewed. `None` if it has ended.
    pub(crate) async fn remaining(&self, id: i64) -> Result<Option<Duration>, Status> {
        let request = LeaseTimeToLiveRequest { id };
        let (left, _): (LeaseTimeToLiveResponse, usize) =
            self.servers.ask("/etcdserverpb.Lease/LeaseTimeToLive", request).await?;
        Ok((left.ttl >= 0).then(|| duration(left.ttl)))
    }

    /// A new lease. It begins when the cluster grants it. If the caller gives up, it is kept for another entry.
    pub(crate) async fn grant(&self, ttl: Duration) -> Result<Lease, Status> {
        let granting = Arc::clone(&self.granting).acquire_owned().await;
        let (servers, idle) = (Arc::clone(&self.servers), Arc::clone(&self.idle));
        let (tell, told) = oneshot::channel();
        self.runtime.spawn(async move {
            let _granting = granting;
            if let Err(Ok(unwanted)) = tell.send(grant(&servers, seconds(ttl)).await) {
                lock(&idle).put(unwanted);
            }
        });
        told.await.unwrap_or_else(|ended| Err(Status::cancelled(ended.to_string())))
    }

    /// Takes the leases back of an entry that was deleted or not written.
    pub(crate) fn put_back(&self, leases: impl Iterator<Item = Lease>) {
        let mut idle = lock(&self.idle);
        leases.for_each(|lease| idle.put(lease));
    }

    /// Renews a lease; false if the server does not know it, which it may not yet, after a restart. The renewal counts once it is proved.
    pub(crate) async fn renew(&self, lease: &mut Lease) -> Result<bool, Status> {
        let (sent, server) = (HostClock.now(), self.servers.current());
        let answer = match self.renewing(server).ask(&self.servers, lease.id).await {
            Some(Ok(answer)) => answer,
            Some(Err(_)) => {
                self.servers.check_login().await?;
                return Err(Status::unavailable("the connection for renewals has ended"));
            }
            None => {
                self.servers.leave(server);
                self.servers.check_login().await?;
                return Err(Status::unavailable("a renewal was not answered in time"));
            }
        };
        if answer.ttl > 0 {
            lease.ttl = duration(answer.ttl);
            lease.proof.renewed(Renewal { sent, answered: HostClock.now(), ttl: lease.ttl });
        }
        Ok(answer.ttl > 0)
    }

    /// The stream of renewals to this server.
    fn renewing(&self, server: usize) -> Renewing {
        let mut renewing = lock(&self.renewing);
        let open = renewing.take().filter(|open| open.is_to(server));
        renewing.insert(open.unwrap_or_else(|| Renewing::open(&self.servers, &self.runtime, server))).clone()
    }
}

/// Asks for a lease. The term of its grant is known if it was the same before and after that.
async fn grant(servers: &Arc<Servers>, asked: i64) -> Result<Lease, Status> {
    let (before, sent) = (servers.term(), HostClock.now());
    let request = LeaseGrantRequest { ttl: asked };
    let (granted, _): (LeaseGrantResponse, usize) = servers.ask("/etcdserverpb.Lease/LeaseGrant", request).await?;
    let (ttl, after) = (duration(granted.ttl), granted.header.unwrap_or_default().raft_term);
    let proof = LeaseProof::new(sent + ttl, before.filter(|before| *before == after));
    Ok(Lease { id: granted.id, asked, ttl, proof, is_shared: false })
}

/// A ttl as etcd takes it.
fn seconds(ttl: Duration) -> i64 {
    let rounded_up = ttl.as_millis().div_ceil(1000);
    i64::try_from(rounded_up).unwrap_or(i64::MAX)
}

fn duration(seconds: i64) -> Duration {
    Duration::from_secs(u64::try_from(seconds).unwrap_or_default())
}
