//! The scenes with leasehold. Each has a lock of its own name, so that one server can serve several.

use std::mem::forget;
use std::time::Duration;

use anyhow::Result;
use leasehold::{Client, Mutex, connect};
use sqlx::{Connection, query};
use test_support::{Fault, PostgresServer, Proxy};

use super::{Freed, Late, Outcome, TTL, application, bury, connections, freed, kill_sessions, watch};

/// How long a hold may last where that is limited.
const LIMIT: Duration = Duration::from_secs(1);

fn lock(client: &Client, name: &str) -> Mutex {
    client.mutex(name).ttl(TTL)
}

/// Whether somebody else gets the lock.
async fn gets(other: &Client, name: &str) -> Result<bool> {
    Ok(lock(other, name).try_acquire().await?.is_some())
}

/// The server ends all sessions while the lock is held.
pub async fn session_killed(server: &PostgresServer) -> Result<Outcome> {
    let client = connect(&server.url()).await?;
    let guard = lock(&client, "session-killed").acquire().await?;
    kill_sessions(server);
    let other = connect(&server.url()).await?;
    watch(guard.lost(), async || gets(&other, "session-killed").await).await
}

/// The server crashes and comes back while the lock is held.
pub async fn server_killed(server: &mut PostgresServer) -> Result<Outcome> {
    let client = connect(&server.url()).await?;
    let guard = lock(&client, "server-killed").acquire().await?;
    server.restart_with_data();
    let other = connect(&server.url()).await?;
    watch(guard.lost(), async || gets(&other, "server-killed").await).await
}

/// The network of the holder fails silently.
pub async fn cut_off(server: &PostgresServer) -> Result<Outcome> {
    let proxy = Proxy::start(server.port());
    let client = connect(&server.url_at(proxy.port())).await?;
    let other = connect(&server.url()).await?;
    let guard = lock(&client, "cut-off").acquire().await?;
    proxy.set(Fault::Hold);
    watch(guard.lost(), async || gets(&other, "cut-off").await).await
}

/// The program of the holder dies.
pub async fn died(server: &PostgresServer) -> Result<Freed> {
    let proxy = Proxy::start(server.port());
    let client = connect(&server.url_at(proxy.port())).await?;
    let other = connect(&server.url()).await?;
    let _guard = lock(&client, "died").acquire().await?;
    bury(&proxy);
    freed(async || gets(&other, "died").await).await
}

/// The program forgets the guard, and runs on.
pub async fn forgotten(server: &PostgresServer) -> Result<Freed> {
    let (client, other) = (connect(&server.url()).await?, connect(&server.url()).await?);
    forget(lock(&client, "forgotten").acquire().await?);
    freed(async || gets(&other, "forgotten").await).await
}

/// The same with a limit to the hold.
pub async fn forgotten_with_a_limit(server: &PostgresServer) -> Result<Outcome> {
    let (client, other) = (connect(&server.url()).await?, connect(&server.url()).await?);
    let guard = lock(&client, "limited").max_hold(LIMIT).acquire().await?;
    let told = guard.watch();
    forget(guard);
    watch(told.lost(), async || gets(&other, "limited").await).await
}

/// Another task of the same program wants the lock.
pub async fn same_program(server: &PostgresServer) -> Result<Outcome> {
    let client = connect(&server.url()).await?;
    let guard = lock(&client, "same-program").acquire().await?;
    watch(guard.lost(), async || gets(&client, "same-program").await).await
}

/// The guard is dropped.
pub async fn dropped(server: &PostgresServer) -> Result<Freed> {
    let (client, other) = (connect(&server.url()).await?, connect(&server.url()).await?);
    drop(lock(&client, "dropped").acquire().await?);
    freed(async || gets(&other, "dropped").await).await
}

/// The holder has lost the lock, somebody else has it, and then the first one writes.
pub async fn late_write(server: &PostgresServer) -> Result<Late> {
    let mut db = application(server).await?;
    let client = connect(&server.url()).await?;
    let first = lock(&client, "late-write").max_hold(LIMIT).acquire().await?;
    first.lost().await;
    let _second = lock(&client, "late-write").acquire().await?;
    let mut transaction = db.begin().await?;
    let fence = query("SELECT leasehold.fence($1, $2)").bind("late-write").bind(i64::from(first.fencing_token()));
    if fence.execute(&mut *transaction).await.is_err() {
        return Ok(Late::Refused);
    }
    query("UPDATE account SET balance = 10 WHERE id = 1").execute(&mut *transaction).await?;
    Ok(Late::of(transaction.commit().await))
}

/// The tokens of two holders, one after the other.
pub async fn tokens(server: &PostgresServer) -> Result<[i64; 2]> {
    let client = connect(&server.url()).await?;
    let first = lock(&client, "tokens").acquire().await?;
    let token = i64::from(first.fencing_token());
    first.release().await?;
    let second = lock(&client, "tokens").acquire().await?;
    Ok([token, i64::from(second.fencing_token())])
}

/// How many connections a program has that holds eight locks, while it renews them.
pub async fn eight_held(server: &PostgresServer) -> Result<u32> {
    let client = connect(&server.url()).await?;
    let mut guards = Vec::new();
    for number in 0..8 {
        guards.push(lock(&client, &format!("eight:{number}")).acquire().await?);
    }
    tokio::time::sleep(TTL / 2).await;
    connections(server)
}
