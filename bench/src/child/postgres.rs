//! The least that a lock in a table of PostgreSQL needs: one safe statement for each step, as durable as ours; and for waiters, functions
//! with a queue and notifications.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use bench_measure::{Client, Lock, Plan, Work};
use futures_util::StreamExt;
use futures_util::stream::poll_fn;
use tokio::sync::oneshot;
use tokio_postgres::{AsyncMessage, NoTls, Statement};

const SCRIPT: &str = include_str!("postgres.sql");
const ACQUIRE: &str =
    "UPDATE bare.lock k SET owner = ($2::text)::uuid, token = greatest(k.token + 1, c.t), expires = c.t + $3
    FROM (SELECT bare.clock() AS t OFFSET 0) c WHERE k.name = $1 AND (k.owner IS NULL OR k.expires <= c.t)
    RETURNING k.token, set_config('synchronous_commit', 'on', true)";
const RELEASE: &str = "WITH l AS MATERIALIZED (SELECT owner FROM bare.lock WHERE name = $1 FOR UPDATE)
    UPDATE bare.lock k SET owner = NULL, expires = 0 FROM l WHERE k.name = $1 AND l.owner = ($2::text)::uuid
    RETURNING set_config('synchronous_commit', 'off', true)";
const MAKE: &str = "INSERT INTO bare.lock (name) VALUES ($1) ON CONFLICT DO NOTHING";

/// Whether the plan is about PostgreSQL.
pub(super) fn is_wanted_by(plan: &Plan) -> bool {
    plan.server().is_ok_and(|server| server.starts_with("postgres:"))
}

fn micros(ttl: Duration) -> i64 {
    ttl.as_micros() as i64
}

/// A pair of a thread that has a connection of its own.
pub(super) fn pair(plan: &Plan, name: &str) -> Result<impl FnMut() -> Result<()> + use<>> {
    let mut client = postgres::Client::connect(plan.server()?, NoTls)?;
    client.batch_execute(SCRIPT)?;
    client.execute(MAKE, &[&name])?;
    let [acquire, release] = [client.prepare(ACQUIRE)?, client.prepare(RELEASE)?];
    let (name, ttl) = (name.to_owned(), micros(plan.ttl));
    Ok(move || {
        let owner = lock_host::new_owner()?.to_wire();
        ensure!(client.query(&acquire, &[&name, &owner, &ttl])?.len() == 1, "the lock is held");
        ensure!(client.query(&release, &[&name, &owner])?.len() == 1, "the lock was lost");
        Ok(())
    })
}

/// Waiters, by their owners.
type Waiters = Arc<Mutex<HashMap<String, oneshot::Sender<()>>>>;

/// One connection, which listens as well.
pub(super) struct Bare {
    client: Arc<tokio_postgres::Client>,
    statements: [Statement; 4],
    channel: String,
    waiters: Waiters,
    ttl: i64,
    contends: bool,
}

/// One lock over it.
pub(super) struct BareLock {
    bare: Arc<Bare>,
    name: String,
}

/// Clones of this are the client.
pub(super) struct Shared(Arc<Bare>);

impl Bare {
    pub(super) async fn connect(plan: &Plan) -> Result<Shared> {
        let (client, mut connection) = tokio_postgres::connect(plan.server()?, NoTls).await?;
        let waiters = Waiters::default();
        let told = Arc::clone(&waiters);
        tokio::spawn(async move {
            let mut messages = poll_fn(move |context| connection.poll_message(context));
            while let Some(Ok(message)) = messages.next().await {
                if let AsyncMessage::Notification(notification) = message {
                    wake(&told, notification.payload());
                }
            }
        });
        // Other processes make the tables as well. Each of these is a transaction of its own.
        for step in ["SELECT pg_advisory_lock(1)", SCRIPT, "SELECT pg_advisory_unlock(1)"] {
            client.batch_execute(step).await?;
        }
        let channel = format!("bare_{:016x}", fastrand::u64(..));
        client.batch_execute(&format!("LISTEN {channel}")).await?;
        let statements = [
            client.prepare(ACQUIRE).await?,
            client.prepare(RELEASE).await?,
            client.prepare("SELECT bare.acquire($1, ($2::text)::uuid, $3, $4)").await?,
            client.prepare("SELECT bare.release($1, ($2::text)::uuid, $3)").await?,
        ];
        let (ttl, contends) = (micros(plan.ttl), matches!(plan.work, Work::Contend { .. }));
        Ok(Shared(Arc::new(Self { client: Arc::new(client), statements, channel, waiters, ttl, contends })))
    }
}

fn wake(waiters: &Waiters, owner: &str) {
    lock(waiters).remove(owner).map(|waiter| waiter.send(()).ok());
}

fn lock(waiters: &Waiters) -> MutexGuard<'_, HashMap<String, oneshot::Sender<()>>> {
    waiters.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Client for Shared {
    type Lock = BareLock;

    fn lock(&self, name: &str) -> Result<BareLock> {
        Ok(BareLock { bare: Arc::clone(&self.0), name: name.to_owned() })
    }
}

impl Lock for BareLock {
    type Held = String;
    const RENEWS_BY_ITSELF: bool = false;

    async fn acquire(&self) -> Result<String> {
        let Bare { client, statements: [acquire, _, queue, _], channel, waiters, ttl, contends } = &*self.bare;
        let owner = lock_host::new_owner()?.to_wire();
        let (tell, told) = oneshot::channel();
        lock(waiters).insert(owner.clone(), tell);
        if *contends {
            if !client.query_one(queue, &[&self.name, &owner, ttl, channel]).await?.get::<_, bool>(0) {
                told.await.context("the waiter was forgotten")?;
            }
        } else if client.query(acquire, &[&self.name, &owner, ttl]).await?.is_empty() {
            client.execute(MAKE, &[&self.name]).await?;
            ensure!(client.query(acquire, &[&self.name, &owner, ttl]).await?.len() == 1, "the lock is held");
        }
        lock(waiters).remove(&owner);
        Ok(owner)
    }

    async fn release(&self, owner: String) -> Result<()> {
        let Bare { client, statements: [_, release, _, pass], ttl, contends, .. } = &*self.bare;
        let released = if *contends {
            client.query_one(pass, &[&self.name, &owner, ttl]).await?.get(0)
        } else {
            client.query(release, &[&self.name, &owner]).await?.len() == 1
        };
        ensure!(released, "the lock was lost");
        Ok(())
    }
}
