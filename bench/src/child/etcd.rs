//! The least that a lock in etcd needs: a key of one's own, the list of all keys in the order of their creation, and word of the end of the one
//! before. The transactions are those of the store: one writes, lists and reads, and one lists and deletes. A watch begins when somebody first waits, and serves all waiters of the client.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use anyhow::{Context, Result};
use bench_measure::{Client, Lock, Plan};
use prost::Message;
use tokio::sync::{OnceCell, oneshot};
use tonic::Request as Call;
use tonic::client::Grpc;
use tonic::codegen::http::uri::PathAndQuery;
use tonic::transport::Channel;
use tonic_prost::ProstCodec;

use self::proto::{
    Compare, CompareResult, CompareTarget, CompareWith, DeleteRangeRequest, KeyValue, LeaseGrantRequest,
    LeaseGrantResponse, PutRequest, RangeRequest, RangeResponse, Request, RequestOp, Response, SortOrder, SortTarget,
    TxnRequest, TxnResponse, WatchAct, WatchCreate, WatchFilter, WatchRequest, WatchResponse,
};

/// The messages that the store itself sends.
#[path = "../../../crates/lock-etcd/src/proto.rs"]
#[allow(dead_code, unused_imports, reason = "the store uses more of them")]
mod proto;

/// The prefix of all keys, and the end of their range.
const ALL: [&[u8]; 2] = [b"bare/", b"bare0"];

/// A key in place of the others that the store reads.
const NOTHING: &[u8] = b"bare-nothing";
/// As long as those of the store.
const VALUE: &[u8] = &[b'x'; 120];

/// As many as the store lists.
const LISTED_MAX: i64 = 33;

/// Whether this plan measures etcd.
pub(super) fn is_wanted_by(plan: &Plan) -> bool {
    address(plan).is_some()
}

fn address(plan: &Plan) -> Option<&str> {
    plan.server().ok()?.strip_prefix("etcd://")
}

/// A client: a connection, and a lease for all of its keys.
pub(super) struct Bare(Arc<Session>);

struct Session {
    channel: Channel,
    lease: i64,
    next: AtomicU64,
    ends: OnceCell<Arc<Mutex<Ends>>>,
}

/// The events of the watch, and the tasks that wait for them.
#[derive(Default)]
struct Ends {
    /// When a key was last deleted.
    latest: HashMap<Vec<u8>, i64>,
    waiting: HashMap<Vec<u8>, Vec<oneshot::Sender<()>>>,
}

/// One lock.
pub(super) struct BareLock {
    session: Arc<Session>,
    /// The prefix of its keys, and the end of their range.
    directory: [Vec<u8>; 2],
    own: Vec<u8>,
}

impl Bare {
    pub(super) async fn connect(plan: &Plan) -> Result<Self> {
        let address = format!("http://{}", address(plan).context("no address")?);
        let channel = Channel::from_shared(address)?.tcp_nodelay(true).connect().await?;
        // This lease outlasts the benchmark.
        let request = LeaseGrantRequest { ttl: 3600 };
        let granted: LeaseGrantResponse = ask(&channel, "/etcdserverpb.Lease/LeaseGrant", request).await?;
        let next = AtomicU64::new(fastrand::u64(..1 << 32) << 32);
        Ok(Self(Arc::new(Session { channel, lease: granted.id, next, ends: OnceCell::new() })))
    }
}

impl Client for Bare {
    type Lock = BareLock;

    fn lock(&self, name: &str) -> Result<BareLock> {
        let own = format!("bare/{name}/{:x}", self.0.next.fetch_add(1, Ordering::Relaxed)).into_bytes();
        let directory = [format!("bare/{name}/").into_bytes(), format!("bare/{name}0").into_bytes()];
        Ok(BareLock { session: Arc::clone(&self.0), directory, own })
    }
}

impl Session {
    /// Begins a watch, and returns its events.
    async fn ends(&self) -> Result<&Arc<Mutex<Ends>>> {
        self.ends.get_or_try_init(|| watch(self.channel.clone())).await
    }
}

async fn watch(channel: Channel) -> Result<Arc<Mutex<Ends>>> {
    let [key, range_end] = ALL.map(<[u8]>::to_vec);
    let filters = vec![i32::from(WatchFilter::NoPut)];
    let create = WatchAct::Create(WatchCreate { key, range_end, filters, watch_id: 1 });
    let requests = futures_util::StreamExt::chain(
        futures_util::stream::iter([WatchRequest { act: Some(create) }]),
        futures_util::stream::pending(),
    );
    let mut grpc = Grpc::new(channel);
    grpc.ready().await?;
    let codec: ProstCodec<WatchRequest, WatchResponse> = ProstCodec::default();
    let path = PathAndQuery::from_static("/etcdserverpb.Watch/Watch");
    let mut told = grpc.streaming(Call::new(requests), path, codec).await?.into_inner();
    told.message().await?.context("the watch has not begun")?;
    let ends = Arc::<Mutex<Ends>>::default();
    let heard = Arc::clone(&ends);
    tokio::spawn(async move {
        while let Ok(Some(answer)) = told.message().await {
            let mut ends = lock(&heard);
            for ended in answer.events.into_iter().filter_map(|event| event.kv) {
                let waiting = ends.waiting.remove(&ended.key).unwrap_or_default();
                waiting.into_iter().for_each(|waits| _ = waits.send(()));
                ends.latest.insert(ended.key, ended.mod_revision);
            }
        }
    });
    Ok(ends)
}

impl BareLock {
    fn list(&self) -> RangeRequest {
        let [key, range_end] = self.directory.clone();
        let (sort_order, sort_target) = (SortOrder::Ascend.into(), SortTarget::Create.into());
        RangeRequest { key, range_end, limit: LISTED_MAX, sort_order, sort_target }
    }

    /// Waits until the key before this one has gone. Returns at once if this is the first.
    async fn wait_behind(&self, mut listed: RangeResponse) -> Result<()> {
        while let Some(before) = self.before(&listed.kvs) {
            let ends = self.session.ends().await?;
            let (tell, told) = oneshot::channel();
            let is_over = {
                let mut ends = lock(ends);
                let is_over = ends.latest.get(&before.key).is_some_and(|end| *end > before.create_revision);
                ends.waiting.entry(before.key.clone()).or_default().push(tell);
                is_over
            };
            // One that ended before the watch began is found by the list.
            if !is_over && self.ask_list().await?.kvs.contains(before) {
                told.await?;
            }
            listed = self.ask_list().await?;
        }
        Ok(())
    }

    fn before<'a>(&self, listed: &'a [KeyValue]) -> Option<&'a KeyValue> {
        let place = listed.iter().position(|listed| listed.key == self.own).unwrap_or(listed.len());
        listed.get(place.checked_sub(1)?)
    }

    async fn transact<const N: usize>(&self, compare: Vec<Compare>, requests: [Request; N]) -> Result<TxnResponse> {
        let success = requests.map(|request| RequestOp { request: Some(request) }).to_vec();
        ask(&self.session.channel, "/etcdserverpb.KV/Txn", TxnRequest { compare, success, failure: Vec::new() }).await
    }

    async fn ask_list(&self) -> Result<RangeResponse> {
        ask(&self.session.channel, "/etcdserverpb.KV/Range", self.list()).await
    }
}

impl Lock for BareLock {
    /// The revision that created the key.
    type Held = i64;
    const RENEWS_BY_ITSELF: bool = true;

    async fn acquire(&self) -> Result<i64> {
        let put = PutRequest { key: self.own.clone(), value: VALUE.to_vec(), lease: self.session.lease };
        let read = RangeRequest { key: NOTHING.to_vec(), ..RangeRequest::default() };
        let compare = [&*self.own, NOTHING].map(|key| is_created(key, 0)).to_vec();
        let told =
            self.transact(compare, [Request::Put(put), Request::Range(self.list()), Request::Range(read)]).await?;
        let created = told.header.unwrap_or_default().revision;
        let listed = told.responses.into_iter().find_map(|told| match told.response? {
            Response::Range(listed) => Some(listed),
            Response::Put(_) | Response::DeleteRange(_) => None,
        });
        self.wait_behind(listed.context("the key was there")?).await?;
        Ok(created)
    }

    async fn release(&self, created: i64) -> Result<()> {
        let delete = DeleteRangeRequest { key: self.own.clone(), range_end: Vec::new() };
        let requests = [Request::Range(self.list()), Request::DeleteRange(delete)];
        self.transact(vec![is_created(&self.own, created)], requests).await.map(drop)
    }
}

/// That the key was created at this revision; 0 if there is none.
fn is_created(key: &[u8], revision: i64) -> Compare {
    Compare {
        result: CompareResult::Equal.into(),
        target: CompareTarget::Create.into(),
        key: key.to_vec(),
        with: Some(CompareWith::Create(revision)),
        range_end: Vec::new(),
    }
}

async fn ask<Q, A>(channel: &Channel, method: &'static str, message: Q) -> Result<A>
where
    Q: Message + Send + Sync + 'static,
    A: Message + Default + Send + Sync + 'static,
{
    let mut grpc = Grpc::new(channel.clone());
    grpc.ready().await?;
    let codec: ProstCodec<Q, A> = ProstCodec::default();
    Ok(grpc.unary(Call::new(message), PathAndQuery::from_static(method), codec).await?.into_inner())
}

fn lock(ends: &Mutex<Ends>) -> MutexGuard<'_, Ends> {
    ends.lock().unwrap_or_else(PoisonError::into_inner)
}
