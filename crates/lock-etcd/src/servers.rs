//! The servers of a cluster. One of them is asked, until it does not answer.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use prost::Message;
use tokio::runtime::Handle;
use tokio::time::{sleep, timeout};
use tonic::client::Grpc;
use tonic::codegen::http::uri::PathAndQuery;
use tonic::transport::{Channel, Endpoint};
use tonic::{Request, Status, Streaming};
use tonic_prost::ProstCodec;

use crate::proto::{Header, TxnRequest, TxnResponse};

/// How long a server may take before other requests go to the next one. Chosen: several round trips of a slow disk, and less
/// than requests have in all.
pub(crate) const ANSWERS_WITHIN: Duration = Duration::from_millis(300);
/// How long a connection may take.
const CONNECTS_WITHIN: Duration = Duration::from_secs(2);
/// Makes a server refuse a request while it knows no leader, instead of keeping it.
const NEEDS_LEADER: &str = "hasleader";

/// Where and when a request was answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Seen {
    /// The number of the address.
    server: usize,
    /// The server that has answered. There may be several behind one address.
    member: u64,
    /// The term of the latest entry that it had applied.
    term: u64,
}

/// The servers, and which one is asked.
pub(crate) struct Servers {
    channels: Vec<Channel>,
    /// Counts up. Of a number, the remainder is that of a server.
    current: Arc<AtomicUsize>,
    seen: Mutex<Option<Seen>>,
    runtime: Handle,
}

impl Seen {
    /// Whether the same server has given this answer too.
    pub(crate) const fn is_by(self, header: Header) -> bool {
        self.member == header.member_id
    }
}

impl Servers {
    /// Connects when the first request is sent.
    pub(crate) fn new(endpoints: Vec<Endpoint>, runtime: &Handle) -> Self {
        let _entered = runtime.enter();
        let connect = |endpoint: Endpoint| endpoint.connect_timeout(CONNECTS_WITHIN).tcp_nodelay(true).connect_lazy();
        Self {
            channels: endpoints.into_iter().map(connect).collect(),
            current: Arc::default(),
            seen: Mutex::default(),
            runtime: runtime.clone(),
        }
    }

    /// The number of the server that is asked now.
    pub(crate) fn current(&self) -> usize {
        self.current.load(Ordering::SeqCst)
    }

    /// Leaves this server for the next one, unless that was done.
    pub(crate) fn leave(&self, server: usize) {
        leave(&self.current, server);
    }

    /// The latest answer of this server that was ordered by the leader.
    pub(crate) fn seen(&self, server: usize) -> Option<Seen> {
        self.lock_seen().filter(|seen| seen.server == server)
    }

    /// Sends a request. Returns the number of the server with the answer.
    pub(crate) async fn ask<Q, A>(&self, method: &'static str, message: Q) -> Result<(A, usize), Status>
    where
        Q: Message + Send + Sync + 'static,
        A: Message + Default + Send + Sync + 'static,
    {
        let server = self.current();
        let mut grpc = Grpc::new(self.channel(server));
        // A task of its own, so that a caller that gives up does not cancel the request: etcd before 3.5.5 panics when a transaction that only
        // reads is cancelled.
        let current = Arc::clone(&self.current);
        let answered = self.runtime.spawn(async move {
            let asked = async {
                ready(&mut grpc).await?;
                let codec: ProstCodec<Q, A> = ProstCodec::default();
                grpc.unary(with_leader(message), PathAndQuery::from_static(method), codec).await
            };
            let mut asked = Box::pin(asked);
            if let Ok(answer) = timeout(ANSWERS_WITHIN, &mut asked).await {
                return answer;
            }
            leave(&current, server);
            asked.await
        });
        let answer = answered.await.unwrap_or_else(|ended| Err(Status::cancelled(ended.to_string())));
        if answer.as_ref().is_err_and(|status| status.code() == tonic::Code::Unavailable) {
            self.leave(server);
        }
        Ok((answer?.into_inner(), server))
    }

    /// Carries out a transaction that the leader orders. Also returns where and when it was answered.
    pub(crate) async fn transact(&self, transaction: TxnRequest) -> Result<(TxnResponse, Seen), Status> {
        let (answer, server): (TxnResponse, usize) = self.ask("/etcdserverpb.KV/Txn", transaction).await?;
        let header = answer.header.unwrap_or_default();
        let seen = Seen { server, member: header.member_id, term: header.raft_term };
        *self.lock_seen() = Some(seen);
        Ok((answer, seen))
    }

    /// Opens a stream of requests and answers. The server answers the opening together with the first request.
    pub(crate) async fn stream<Q, A>(
        &self,
        server: usize,
        method: &'static str,
        messages: impl futures_util::Stream<Item = Q> + Send + 'static,
    ) -> Result<Streaming<A>, Status>
    where
        Q: Message + Send + Sync + 'static,
        A: Message + Default + Send + Sync + 'static,
    {
        let mut grpc = Grpc::new(self.channel(server));
        ready(&mut grpc).await?;
        let codec: ProstCodec<Q, A> = ProstCodec::default();
        let answers = grpc.streaming(with_leader(messages), PathAndQuery::from_static(method), codec).await?;
        Ok(answers.into_inner())
    }

    /// Waits until another server than this one is asked.
    pub(crate) async fn left(&self, server: usize) {
        while self.current() == server {
            sleep(ANSWERS_WITHIN / 3).await;
        }
    }

    fn channel(&self, server: usize) -> Channel {
        self.channels[server % self.channels.len()].clone()
    }

    fn lock_seen(&self) -> MutexGuard<'_, Option<Seen>> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn leave(current: &AtomicUsize, server: usize) {
    _ = current.compare_exchange(server, server.wrapping_add(1), Ordering::SeqCst, Ordering::SeqCst);
}

async fn ready(grpc: &mut Grpc<Channel>) -> Result<(), Status> {
    grpc.ready().await.map_err(|failure| Status::unavailable(failure.to_string()))
}

fn with_leader<T>(message: T) -> Request<T> {
    let mut request = Request::new(message);
    request.metadata_mut().insert(NEEDS_LEADER, tonic::metadata::MetadataValue::from_static("true"));
    request
}
