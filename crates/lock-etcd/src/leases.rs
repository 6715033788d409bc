//! Leases of etcd: each entry has one of its own, so it ends by itself unless that is renewed. Those of entries that were deleted are used
//! again, and so are their names, which name the keys too: etcd keeps the names of deleted keys for a while, and each list walks them.

use std::collections::hash_map::Entry;
use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures_util::stream::unfold;
use lock_core::Moment;
use lock_host::{Clock, HostClock};
use lock_rules::{LeaseProof, Renewal};
use tokio::runtime::Handle;
use tokio::sync::oneshot::error::RecvError;
use tokio::sync::{Semaphore, mpsc, oneshot};
use tokio::time::timeout;
use tonic::Status;

use crate::proto::{
    LeaseGrantRequest, LeaseGrantResponse, LeaseKeepAliveRequest, LeaseKeepAliveResponse, LeaseTimeToLiveRequest,
    LeaseTimeToLiveResponse,
};
use crate::servers::{Seen, Servers};

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
        let renewing = self.renewing(server);
        let answer = match self.answered(&renewing, renewing.ask(lease.id)).await {
            Some(answer) => answer.map_err(|_| Status::unavailable("the connection for renewals has ended"))?,
            None => {
                self.servers.leave(server);
                return Err(Status::unavailable("a renewal was not answered in time"));
            }
        };
        if answer.ttl > 0 {
            lease.ttl = duration(answer.ttl);
            lease.proof.renewed(Renewal { sent, answered: HostClock.now(), ttl: lease.ttl });
        }
        Ok(answer.ttl > 0)
    }

    /// Waits for an answer, for as long as others come: a follower asks the leader for one after the other.
    async fn answered<T>(&self, renewing: &Renewing, mut answer: oneshot::Receiver<T>) -> Option<Result<T, RecvError>> {
        loop {
            let (answers, patience) = (renewing.answers.load(Ordering::Relaxed), self.servers.patience());
            match timeout(patience, &mut answer).await {
                Ok(answer) => return Some(answer),
                Err(_) if renewing.answers.load(Ordering::Relaxed) > answers => {}
                Err(_) => {
                    // It may only be slow.
                    self.servers.answered_after(patience);
                    return None;
                }
            }
        }
    }

    /// The stream of renewals to this server.
    fn renewing(&self, server: usize) -> Renewing {
        let mut renewing = lock(&self.renewing);
        let open = renewing.take().filter(|open| open.server == server && !open.ids.is_closed());
        renewing.insert(open.unwrap_or_else(|| self.open(server))).clone()
    }

    fn open(&self, server: usize) -> Renewing {
        let (ids, mut to_send) = mpsc::unbounded_channel::<(i64, Answer)>();
        let (servers, answers) = (Arc::clone(&self.servers), Arc::<AtomicU64>::default());
        let counted = Arc::clone(&answers);
        self.runtime.spawn(async move {
            let waiting = Arc::<Mutex<Unanswered>>::default();
            let asked = Arc::clone(&waiting);
            let Some(first) = to_send.recv().await else { return };
            let messages = unfold((Some(first), to_send), move |(first, mut to_send)| {
                let asked = Arc::clone(&asked);
                async move {
                    let next = match first {
                        Some(first) => Some(first),
                        None => to_send.recv().await,
                    };
                    let (id, answer) = next?;
                    lock(&asked).asked(id, answer);
                    Some((LeaseKeepAliveRequest { id }, (None, to_send)))
                }
            });
            let opened = tokio::select! {
                opened = servers.stream(server, "/etcdserverpb.Lease/LeaseKeepAlive", messages) => opened,
                () = servers.left(server) => return lock(&waiting).0.clear(),
            };
            let Ok(mut told) = opened else { return servers.leave(server) };
            loop {
                tokio::select! {
                    answer = told.message() => {
                        let Ok(Some(answer)) = answer else { return servers.leave(server) };
                        counted.fetch_add(1, Ordering::Relaxed);
                        lock(&waiting).answered(answer);
                    }
                    () = servers.left(server) => return lock(&waiting).0.clear(),
                }
            }
        });
        Renewing { server, ids, answers }
    }
}

/// The open stream of renewals.
#[derive(Clone)]
struct Renewing {
    server: usize,
    ids: mpsc::UnboundedSender<(i64, Answer)>,
    /// How many answers there were.
    answers: Arc<AtomicU64>,
}

/// What learns of the answer to a renewal.
type Answer = oneshot::Sender<LeaseKeepAliveResponse>;

/// The renewals that were not answered yet, by lease. Those of one lease are answered in their order.
#[derive(Default)]
struct Unanswered(HashMap<i64, VecDeque<Answer>>);

impl Unanswered {
    fn asked(&mut self, id: i64, answer: Answer) {
        self.0.entry(id).or_default().push_back(answer);
    }

    fn answered(&mut self, answer: LeaseKeepAliveResponse) {
        let Entry::Occupied(mut waiting) = self.0.entry(answer.id) else { return };
        let first = waiting.get_mut().pop_front();
        if waiting.get().is_empty() {
            waiting.remove();
        }
        if let Some(first) = first {
            _ = first.send(answer);
        }
    }
}

impl Renewing {
    /// Asks for a renewal.
    fn ask(&self, id: i64) -> oneshot::Receiver<LeaseKeepAliveResponse> {
        let (answer, answered) = oneshot::channel();
        _ = self.ids.send((id, answer));
        answered
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

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_that_of_the_first_request_for_its_lease() {
        let mut unanswered = Unanswered::default();
        let mut ask = |id| {
            let (answer, answered) = oneshot::channel();
            unanswered.asked(id, answer);
            answered
        };
        let [mut one, mut two, mut again] = [ask(1), ask(2), ask(1)];
        let mut tell = |id, ttl| unanswered.answered(LeaseKeepAliveResponse { header: None, id, ttl });
        tell(2, 20);
        tell(3, 30);
        assert_eq!((two.try_recv().unwrap().ttl, one.try_recv().is_err()), (20, true));
        tell(1, 10);
        assert_eq!((one.try_recv().unwrap().ttl, again.try_recv().is_err()), (10, true));
        tell(1, 11);
        assert_eq!(again.try_recv().unwrap().ttl, 11);
        assert!(unanswered.0.is_empty());
    }
}
