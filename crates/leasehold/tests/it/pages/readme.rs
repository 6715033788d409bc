//! The code in the README and in the first pages of the book compiles: it is here, word for word.
#![allow(unused_variables, dead_code, clippy::unused_async, reason = "this code is compiled, not run")]

use std::error::Error;
use std::io;
use std::thread;
use std::time::Duration;

use leasehold::{AcquireError, FencingToken, Lost, WriteToken};

/// What the snippets call and work on.
struct Row;

async fn raise(_: WriteToken) -> Result<(), io::Error> {
    Ok(())
}

fn raise_fence(_: WriteToken) -> Result<(), io::Error> {
    Ok(())
}

async fn read() -> Result<Row, io::Error> {
    Ok(Row)
}

async fn write(_: FencingToken, _: Row) -> Result<(), io::Error> {
    Ok(())
}

async fn work() -> Result<(), io::Error> {
    Ok(())
}

fn stop(_: Lost) {}

fn next() -> Option<u8> {
    None
}

fn load(_: u8, _: FencingToken) -> Result<(), io::Error> {
    Ok(())
}

async fn with_tokio() -> Result<(), Box<dyn Error>> {
    let locks = leasehold::connect("redis://127.0.0.1").await?;
    let lock = locks.mutex("invoice:42").ttl(Duration::from_secs(30)).wait(Duration::from_secs(5));
    let guard = lock.acquire().await?;

    raise(guard.write_token()).await?;
    let row = read().await?;
    write(guard.fencing_token(), row).await?;
    tokio::select! {
        done = work() => done?,
        lost = guard.lost() => return Err(lost.into()),
    }
    guard.release().await?;
    Ok(())
}

enum SyncError {
    Lock(leasehold::Error),
    Write(io::Error),
}

impl From<leasehold::Error> for SyncError {
    fn from(error: leasehold::Error) -> Self {
        Self::Lock(error)
    }
}

impl From<io::Error> for SyncError {
    fn from(error: io::Error) -> Self {
        Self::Write(error)
    }
}

struct Tenants {
    locks: leasehold::Client,
}

impl Tenants {
    #[leasehold::locked(client = self.locks, name = "sync:{tenant}", ttl = "30s", wait = "5s", guard = guard)]
    async fn sync(&self, tenant: &str, row: Row) -> Result<(), SyncError> {
        raise(guard.write_token()).await?;
        write(guard.fencing_token(), row).await?;
        Ok(())
    }
}

fn with_threads() -> Result<(), Box<dyn Error>> {
    let locks = leasehold::blocking::connect("sqlite:locks.db")?;
    let Some(guard) = locks.mutex("import").try_acquire()? else { return Ok(()) };
    let watch = guard.watch();
    thread::spawn(move || watch.lost().map(stop));
    raise_fence(guard.write_token())?;
    while let Some(batch) = next() {
        guard.check()?;
        load(batch, guard.fencing_token())?;
    }
    guard.release()?;
    Ok(())
}

fn cancelled(locks: &leasehold::blocking::Client) -> Result<(), Box<dyn Error>> {
    let cancel = leasehold::CancelToken::new();
    let on_signal = cancel.clone();
    match locks.mutex("import").cancelled_by(&cancel).acquire() {
        Err(AcquireError::Cancelled) => return Ok(()),
        acquired => acquired?.release()?,
    }
    Ok(())
}

fn send_report(_: FencingToken) {}

fn first() -> Result<(), Box<dyn Error>> {
    let locks = leasehold::blocking::connect("sqlite:locks.db")?;
    let guard = locks.mutex("nightly-report").acquire()?;
    send_report(guard.fencing_token());
    guard.release()?;
    Ok(())
}

async fn with_a_pool(pool: leasehold::redis::nonblocking::Pool) -> Result<(), Box<dyn Error>> {
    use leasehold::FromRedis;

    let locks = leasehold::Client::from_redis(redis::Client::open("redis://127.0.0.1")?)?;
    let locks = leasehold::Client::from_pool(pool).push("redis://127.0.0.1").connect().await?;
    Ok(())
}
