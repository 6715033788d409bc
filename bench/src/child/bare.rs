//! What a lock needs at the very least: `SET NX PX`, and a script that compares and deletes.

use std::time::Duration;

use anyhow::{Result, ensure};
use bench_measure::{Client, Lock, Plan};
use redis::aio::MultiplexedConnection;
use redis::{Cmd, Script};

use super::connection;

/// How far apart the tries are while somebody else holds the lock, in milliseconds.
const RETRY_MS: std::ops::RangeInclusive<u64> = 5..=15;
const RELEASE: &str = "if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end return 0";
const RENEW: &str =
    "if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('PEXPIRE', KEYS[1], ARGV[2]) end return 0";

/// The commands of one lock, the same for async and blocking.
#[derive(Clone)]
pub(super) struct Commands {
    key: String,
    ttl: Duration,
    release: String,
    renew: String,
}

impl Commands {
    pub(super) fn new(name: &str, ttl: Duration) -> Self {
        let hash = |text| Script::new(text).get_hash().to_owned();
        Self { key: name.to_owned(), ttl, release: hash(RELEASE), renew: hash(RENEW) }
    }

    /// The scripts that the server has to know.
    pub(super) fn scripts() -> [Cmd; 2] {
        [RELEASE, RENEW].map(|text| {
            let mut load = redis::cmd("SCRIPT");
            load.arg("LOAD").arg(text);
            load
        })
    }

    /// A fresh value, as secret as those of this library.
    pub(super) fn value() -> Result<String> {
        Ok(lock_host::new_owner()?.to_wire())
    }

    pub(super) fn acquire(&self, value: &str) -> Cmd {
        let mut set = redis::cmd("SET");
        set.arg(&self.key).arg(value).arg("NX").arg("PX").arg(self.ttl.as_millis() as u64);
        set
    }

    pub(super) fn release(&self, value: &str) -> Cmd {
        let mut evaluate = redis::cmd("EVALSHA");
        evaluate.arg(&self.release).arg(1).arg(&self.key).arg(value);
        evaluate
    }

    fn renew(&self, value: &str) -> Cmd {
        let mut evaluate = redis::cmd("EVALSHA");
        evaluate.arg(&self.renew).arg(1).arg(&self.key).arg(value).arg(self.ttl.as_millis() as u64);
        evaluate
    }
}

/// One connection.
pub(super) struct Bare {
    connection: MultiplexedConnection,
    ttl: Duration,
}

/// One lock over it.
pub(super) struct BareLock {
    connection: MultiplexedConnection,
    commands: Commands,
}

impl Bare {
    pub(super) async fn connect(plan: &Plan) -> Result<Self> {
        let mut connection = connection::multiplexed(plan.server()?).await?;
        for load in Commands::scripts() {
            load.query_async::<()>(&mut connection).await?;
        }
        Ok(Self { connection, ttl: plan.ttl })
    }
}

impl Client for Bare {
    type Lock = BareLock;

    fn lock(&self, name: &str) -> Result<BareLock> {
        Ok(BareLock { connection: self.connection.clone(), commands: Commands::new(name, self.ttl) })
    }
}

impl Lock for BareLock {
    type Held = String;
    const RENEWS_BY_ITSELF: bool = false;

    async fn acquire(&self) -> Result<String> {
        let mut connection = self.connection.clone();
        let value = Commands::value()?;
        loop {
            let set: Option<String> = self.commands.acquire(&value).query_async(&mut connection).await?;
            if set.is_some() {
                return Ok(value);
            }
            tokio::time::sleep(Duration::from_millis(fastrand::u64(RETRY_MS))).await;
        }
    }

    async fn release(&self, value: String) -> Result<()> {
        let deleted: i64 = self.commands.release(&value).query_async(&mut self.connection.clone()).await?;
        ensure!(deleted == 1, "the lock was lost");
        Ok(())
    }

    async fn keep(&self, value: &String) {
        let mut connection = self.connection.clone();
        loop {
            tokio::time::sleep(self.commands.ttl / 3).await;
            match self.commands.renew(value).query_async::<i64>(&mut connection).await {
                Ok(1) => {}
                Ok(_) | Err(_) => return,
            }
        }
    }
}
