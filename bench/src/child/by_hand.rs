//! The scripts of this library, sent over a connection of redis-rs: what is left of the library is what it costs.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use bench_measure::{Client, Lock, Plan};
use lock_core::{
    Certainty, Claim, Evidence, Fairness, LockName, Mode, NameKind, Note, Owner, Queueing, ReleaseRequest, Terms, Ttl,
    Width,
};
use lock_redis::by_hand::ByHand as Scripts;
use redis::aio::MultiplexedConnection;
use redis::{Cmd, Value};

use super::connection;

/// How far apart the tries are while somebody else holds the lock, in milliseconds.
const RETRY_MS: std::ops::RangeInclusive<u64> = 5..=15;

/// The commands of one lock, the same for async and blocking.
pub(super) struct Commands {
    scripts: Scripts,
    name: LockName,
    terms: Terms,
    note: Note,
}

impl Commands {
    pub(super) fn new(client: &redis::Client, name: &str, terms: Terms) -> Result<Self> {
        Ok(Self { scripts: Scripts::new(client), name: name.parse()?, terms, note: lock_host::note("")? })
    }

    pub(super) fn acquire(&self, owner: Owner) -> Result<Cmd> {
        let claim = Claim {
            name: self.name.clone(),
            owner,
            terms: self.terms,
            width: Width::for_waiters(1),
            floor: None,
            note: self.note.clone(),
            queueing: Queueing::Unwanted,
            replaces: None,
            fairness: Fairness::Fair,
            kind: NameKind::Lock,
        };
        self.scripts.acquire(&claim).context("the claim cannot be sent")
    }

    pub(super) fn release(&self, owner: Owner) -> Result<Cmd> {
        let request = ReleaseRequest {
            name: self.name.clone(),
            owner,
            terms: self.terms,
            certainty: Certainty::Answered,
            keep: None,
            evidence: Evidence::Nothing,
        };
        self.scripts.release(&request).context("the release cannot be sent")
    }
}

/// Whether an answer grants the lock: one that was free by its token alone.
pub(super) fn is_granted(answer: Value) -> Result<bool> {
    if let Value::Int(_) = answer {
        return Ok(true);
    }
    let parts: Vec<Value> = redis::from_redis_value(answer)?;
    let verdict: String = redis::from_redis_value(parts.into_iter().next().context("an empty answer")?)?;
    Ok(verdict == "granted")
}

/// One connection.
pub(super) struct ByHand {
    client: redis::Client,
    connection: MultiplexedConnection,
    terms: Terms,
}

/// One lock over it.
pub(super) struct HandLock {
    connection: MultiplexedConnection,
    commands: Commands,
}

impl ByHand {
    pub(super) async fn connect(plan: &Plan, mode: Mode) -> Result<Self> {
        let client = redis::Client::open(plan.server()?)?;
        let mut connection = connection::multiplexed(plan.server()?).await?;
        Scripts::load().exec_async(&mut connection).await?;
        Ok(Self { client, connection, terms: Terms { mode, ttl: Ttl::new(plan.ttl)? } })
    }
}

impl Client for ByHand {
    type Lock = HandLock;

    fn lock(&self, name: &str) -> Result<HandLock> {
        let commands = Commands::new(&self.client, name, self.terms)?;
        Ok(HandLock { connection: self.connection.clone(), commands })
    }
}

impl Lock for HandLock {
    type Held = Owner;
    const RENEWS_BY_ITSELF: bool = false;

    async fn acquire(&self) -> Result<Owner> {
        let mut connection = self.connection.clone();
        let owner = lock_host::new_owner()?;
        let claim = self.commands.acquire(owner)?;
        while !is_granted(claim.query_async(&mut connection).await?)? {
            tokio::time::sleep(Duration::from_millis(fastrand::u64(RETRY_MS))).await;
        }
        Ok(owner)
    }

    async fn release(&self, owner: Owner) -> Result<()> {
        let request = self.commands.release(owner)?;
        let released: i64 = request.query_async(&mut self.connection.clone()).await?;
        ensure!(released == 1, "the lock was lost");
        Ok(())
    }
}
