//! The scenes with sqlx's advisory lock.

use std::future::pending;
use std::mem::forget;

use anyhow::Result;
use sqlx::postgres::{PgAdvisoryLock, PgConnection};
use sqlx::{Connection, Either, query};
use test_support::{Fault, PostgresServer, Proxy};

use super::{Freed, Late, Outcome, application, bury, connections, freed, kill_sessions, pool, watch};

/// The guard has nothing that tells of a loss, and nothing to ask for one: its holder could only send statements.
async fn never_told() {
    pending().await
}

async fn session(server: &PostgresServer) -> Result<PgConnection> {
    Ok(PgConnection::connect(&server.url()).await?)
}

/// Whether somebody else gets the lock.
async fn gets(lock: &PgAdvisoryLock, other: &mut PgConnection) -> Result<bool> {
    Ok(matches!(lock.try_acquire(other).await?, Either::Left(_)))
}

/// The server ends all sessions while the lock is held; and afterwards, the holder sends a statement.
pub async fn session_killed(server: &PostgresServer) -> Result<(Outcome, Late)> {
    let lock = PgAdvisoryLock::new("session-killed");
    let mut guard = lock.acquire(session(server).await?).await?;
    kill_sessions(server);
    let mut other = session(server).await?;
    let outcome = watch(never_told(), async || gets(&lock, &mut other).await).await?;
    let statement = query("SELECT 1").execute(guard.as_mut()).await;
    Ok((outcome, Late::of(statement)))
}

/// The server crashes and comes back while the lock is held.
pub async fn server_killed(server: &mut PostgresServer) -> Result<Outcome> {
    let lock = PgAdvisoryLock::new("server-killed");
    let _guard = lock.acquire(session(server).await?).await?;
    server.restart_with_data();
    let mut other = session(server).await?;
    watch(never_told(), async || gets(&lock, &mut other).await).await
}

/// The network of the holder fails silently.
pub async fn cut_off(server: &PostgresServer) -> Result<Outcome> {
    let (lock, proxy) = (PgAdvisoryLock::new("cut-off"), Proxy::start(server.port()));
    let _guard = lock.acquire(PgConnection::connect(&server.url_at(proxy.port())).await?).await?;
    let mut other = session(server).await?;
    proxy.set(Fault::Hold);
    watch(never_told(), async || gets(&lock, &mut other).await).await
}

/// The program of the holder dies.
pub async fn died(server: &PostgresServer) -> Result<Freed> {
    let (lock, proxy) = (PgAdvisoryLock::new("died"), Proxy::start(server.port()));
    let _guard = lock.acquire(PgConnection::connect(&server.url_at(proxy.port())).await?).await?;
    let mut other = session(server).await?;
    bury(&proxy);
    freed(async || gets(&lock, &mut other).await).await
}

/// The program forgets the guard, and runs on.
pub async fn forgotten(server: &PostgresServer) -> Result<Freed> {
    let (lock, pool) = (PgAdvisoryLock::new("forgotten"), pool(server).await?);
    forget(lock.acquire(pool.acquire().await?).await?);
    let mut other = session(server).await?;
    freed(async || gets(&lock, &mut other).await).await
}

/// The guard gives its connection back to the pool with the lock, and another task gets that connection.
pub async fn leaked_into_the_pool(server: &PostgresServer) -> Result<Outcome> {
    let (lock, pool) = (PgAdvisoryLock::new("leaked-into-the-pool"), pool(server).await?);
    drop(lock.acquire(pool.acquire().await?).await?.leak());
    watch(never_told(), async || gets(&lock, &mut *pool.acquire().await?).await).await
}

/// The guard of a connection from a pool is dropped.
pub async fn dropped_into_the_pool(server: &PostgresServer) -> Result<Freed> {
    let (lock, pool) = (PgAdvisoryLock::new("dropped-into-the-pool"), pool(server).await?);
    let mut other = session(server).await?;
    drop(lock.acquire(pool.acquire().await?).await?);
    freed(async || gets(&lock, &mut other).await).await
}

/// The guard of a connection that the program keeps, and does not use, is dropped.
pub async fn dropped_by_itself(server: &PostgresServer) -> Result<Freed> {
    let lock = PgAdvisoryLock::new("dropped-by-itself");
    let (mut own, mut other) = (session(server).await?, session(server).await?);
    drop(lock.acquire(&mut own).await?);
    freed(async || gets(&lock, &mut other).await).await
}

/// The holder has lost the lock, somebody else has it, and then the first one writes, over another connection than that of the lock.
pub async fn late_write(server: &PostgresServer) -> Result<Late> {
    let lock = PgAdvisoryLock::new("late-write");
    let _first = lock.acquire(session(server).await?).await?;
    kill_sessions(server);
    let _second = lock.acquire(session(server).await?).await?;
    let mut db = application(server).await?;
    Ok(Late::of(query("UPDATE account SET balance = 10 WHERE id = 1").execute(&mut db).await))
}

/// How many connections a program has that holds eight locks.
pub async fn eight_held(server: &PostgresServer) -> Result<u32> {
    let mut guards = Vec::new();
    for number in 0..8 {
        guards.push(PgAdvisoryLock::new(format!("eight:{number}")).acquire(session(server).await?).await?);
    }
    connections(server)
}
