//! The scripts of a quorum's nodes, sent over connections of redis-rs: to all nodes at once, and on at the majority.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use bench_measure::{Client, Lock, Plan, now};
use futures_util::future::BoxFuture;
use futures_util::stream::{FuturesUnordered, StreamExt};
use lock_core::node::{Ask, Epoch};
use lock_core::{
    Certainty, Claim, Evidence, Fairness, FencingToken, Lease, LockName, NameKind, Note, Owner, Queueing,
    ReleaseRequest, Terms, TokenRange, Ttl, Width,
};
use lock_redis::by_hand::NodeByHand;
use redis::aio::MultiplexedConnection;
use redis::{RedisResult, Value, from_redis_value};

use super::connection;

/// How far ahead of the newest clock a wish is, in microseconds.
const LEAD: u64 = 1000;

/// A connection to each node.
pub(super) struct ByHand {
    nodes: Arc<Nodes>,
    ttl: Duration,
}

struct Nodes {
    all: Vec<Node>,
    /// What the newest node's clock showed at this process's time zero, in microseconds.
    newest: AtomicU64,
    last_wish: AtomicU64,
}

struct Node {
    connection: MultiplexedConnection,
    scripts: NodeByHand,
    epoch: Epoch,
}

/// A lock of theirs.
pub(super) struct HandLock {
    nodes: Arc<Nodes>,
    name: LockName,
    ttl: Ttl,
    note: Note,
}

type Asked = FuturesUnordered<BoxFuture<'static, RedisResult<Value>>>;

impl ByHand {
    pub(super) async fn connect(plan: &Plan) -> Result<Self> {
        let mut all = Vec::new();
        for server in &plan.servers {
            all.push(Node::connect(server).await?);
        }
        let nodes = Nodes { all, newest: AtomicU64::new(0), last_wish: AtomicU64::new(0) };
        Ok(Self { nodes: Arc::new(nodes), ttl: plan.ttl })
    }
}

impl Node {
    async fn connect(server: &str) -> Result<Self> {
        let client = redis::Client::open(server)?;
        let mut connection = connection::multiplexed(server).await?;
        NodeByHand::load().exec_async(&mut connection).await?;
        let seal: String = redis::cmd("HGET").arg("leasehold:node").arg("seal").query_async(&mut connection).await?;
        let (run_id, epoch) = seal.split_once(':').context("the node does not vote")?;
        Ok(Self { connection, scripts: NodeByHand::new(&client, run_id), epoch: epoch.parse()? })
    }
}

impl Nodes {
    fn majority(&self) -> usize {
        self.all.len() / 2 + 1
    }

    /// Asks all nodes.
    fn ask(&self, ask: impl Fn(&Node) -> Ask) -> Result<Asked> {
        let one = |node: &Node| -> Result<BoxFuture<'static, RedisResult<Value>>> {
            let command = node.scripts.ask(&ask(node)).context("it cannot be sent")?;
            let mut connection = node.connection.clone();
            Ok(Box::pin(async move { command.query_async(&mut connection).await }))
        };
        self.all.iter().map(one).collect()
    }

    fn wish(&self) -> Result<FencingToken> {
        let height = self.newest.load(Ordering::Relaxed) + micros() + LEAD;
        let last = self.last_wish.fetch_max(height, Ordering::Relaxed);
        let wish = if height > last { height } else { self.last_wish.fetch_add(1, Ordering::Relaxed) + 1 };
        Ok(FencingToken::new(wish)?)
    }

    /// The token that a node drew: the wish where it tells nothing but its clock.
    fn drawn(&self, wish: FencingToken, answer: RedisResult<Value>) -> Result<FencingToken> {
        let answer = answer?;
        let (token, clock) =
            if let Value::Int(clock) = answer { (wish.get(), clock) } else { from_redis_value(answer)? };
        self.newest.fetch_max(u64::try_from(clock)?.saturating_sub(micros()), Ordering::Relaxed);
        Ok(FencingToken::new(token)?)
    }

    /// The token of a majority that drew the same one, the highest; otherwise the highest, once a majority took it over.
    async fn token(&self, claim: &Arc<Claim>) -> Result<FencingToken> {
        let wish = self.wish()?;
        let mut asked = self.ask(|node| Ask::Acquire { claim: Arc::clone(claim), wish, epoch: node.epoch })?;
        let (mut highest, mut same) = (wish, 0);
        while let Some(answer) = asked.next().await {
            let token = self.drawn(wish, answer)?;
            same = if token > highest { 1 } else { same + usize::from(token == highest) };
            highest = highest.max(token);
            if same == self.majority() {
                finish(asked);
                return Ok(highest);
            }
        }
        self.fence(claim, highest).await
    }

    async fn fence(&self, claim: &Claim, token: FencingToken) -> Result<FencingToken> {
        let tokens = TokenRange::new(token, token)?;
        let lease = claim.lease(tokens);
        let leases: Arc<[Lease]> = Arc::from([lease]);
        let mut asked = self.ask(|node| Ask::Fence { leases: Arc::clone(&leases), epoch: node.epoch })?;
        let mut acknowledged = 0;
        while let Some(answer) = asked.next().await {
            acknowledged += usize::from(from_redis_value::<Vec<u64>>(answer?)? == [1]);
            if acknowledged == self.majority() {
                finish(asked);
                return Ok(token);
            }
        }
        bail!("the lock was lost")
    }

    async fn release(&self, request: Arc<ReleaseRequest>) -> Result<()> {
        let mut asked = self.ask(|_| Ask::Release(Arc::clone(&request)))?;
        let mut released = 0;
        while let Some(answer) = asked.next().await {
            released += from_redis_value::<usize>(answer?)?;
            if released == self.majority() {
                finish(asked);
                return Ok(());
            }
        }
        bail!("the lock was lost")
    }
}

/// Those that were slower than the majority go on in the background.
fn finish(mut asked: Asked) {
    if !asked.is_empty() {
        tokio::spawn(async move { while asked.next().await.is_some() {} });
    }
}

fn micros() -> u64 {
    now() / 1000
}

impl Client for ByHand {
    type Lock = HandLock;

    fn lock(&self, name: &str) -> Result<HandLock> {
        let nodes = Arc::clone(&self.nodes);
        Ok(HandLock { nodes, name: name.parse()?, ttl: Ttl::new(self.ttl)?, note: lock_host::note("")? })
    }
}

impl Lock for HandLock {
    type Held = (Owner, FencingToken);
    const RENEWS_BY_ITSELF: bool = false;

    /// Of a lock that is free.
    async fn acquire(&self) -> Result<(Owner, FencingToken)> {
        let owner = lock_host::new_owner()?;
        let claim = Claim {
            name: self.name.clone(),
            owner,
            terms: Terms::exclusive(self.ttl),
            width: Width::for_waiters(1),
            floor: None,
            note: self.note.clone(),
            queueing: Queueing::Unwanted,
            replaces: None,
            fairness: Fairness::Fair,
            kind: NameKind::Lock,
        };
        let token = self.nodes.token(&Arc::new(claim)).await?;
        Ok((owner, token))
    }

    async fn release(&self, (owner, _): (Owner, FencingToken)) -> Result<()> {
        let request = ReleaseRequest {
            name: self.name.clone(),
            owner,
            terms: Terms::exclusive(self.ttl),
            certainty: Certainty::Answered,
            keep: None,
            evidence: Evidence::Nothing,
        };
        self.nodes.release(Arc::new(request)).await
    }
}
