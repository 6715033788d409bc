//! The code in the README compiles, and that in the page about the kinds of locks runs: it is here, word for word.
#![cfg(feature = "full")]
#![allow(
    unused_variables,
    dead_code,
    clippy::unused_async,
    clippy::print_stdout,
    reason = "the code of the README is compiled, not run"
)]

use std::error::Error;
use std::io;
use std::thread;
use std::time::Duration;

use leasehold::{FencingToken, Kit, Lost};

/// What the snippets call and work on.
struct Row;

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

async fn with_tokio(row: Row) -> Result<(), Box<dyn Error>> {
    let locks = leasehold::connect("redis://127.0.0.1").await?;
    let lock = locks.mutex("invoice:42").ttl(Duration::from_secs(30)).wait(Duration::from_secs(5));
    let guard = lock.acquire().await?;

    write(guard.fencing_token(), row).await?;
    tokio::select! {
        done = work() => done?,
        lost = guard.lost() => return Err(lost.into()),
    }
    guard.release().await?;
    Ok(())
}

fn with_threads() -> Result<(), Box<dyn Error>> {
    let locks = leasehold::blocking::connect("sqlite:locks.db")?;
    let Some(guard) = locks.mutex("import").try_acquire()? else { return Ok(()) };
    let watch = guard.watch();
    thread::spawn(move || watch.lost().map(stop));
    while let Some(batch) = next() {
        guard.check()?;
        load(batch, guard.fencing_token())?;
    }
    guard.release()?;
    Ok(())
}

async fn with_a_pool(pool: leasehold::redis::nonblocking::Pool) -> Result<(), Box<dyn Error>> {
    use leasehold::FromRedis;

    let locks = leasehold::Client::from_redis(redis::Client::open("redis://127.0.0.1")?)?;
    let locks = leasehold::Client::from_pool(pool).push("redis://127.0.0.1").connect().await?;
    Ok(())
}

async fn readers(locks: &leasehold::Client) -> Result<(), Box<dyn Error>> {
    let catalog = locks.rw_lock("catalog");
    let reader = catalog.read().wait(Duration::from_secs(5)).acquire().await?;
    let reader = match reader.try_upgrade().await {
        Ok(writer) => writer.downgrade().await?,
        Err(unchanged) => unchanged.into_guard(),
    };
    reader.release().await?;
    Ok(())
}

async fn permits(locks: &leasehold::Client) -> Result<(), Box<dyn Error>> {
    let gpus = locks.semaphore("gpu", 4);
    let guard = gpus.acquire_many(2).await?;
    for (slot, token) in guard.tokens() {
        println!("use GPU {slot}, which can refuse tokens below {token}");
    }
    let guard = guard.give_back(1).await?;
    println!("still on GPU {}", guard.slot());
    guard.release().await?;
    Ok(())
}

async fn sets(locks: &leasehold::Client) -> Result<(), Box<dyn Error>> {
    let guard = locks.all(["account:7", "account:3"]).acquire().await?;
    for (name, token) in guard.tokens() {
        println!("{name} has token {token}");
    }
    guard.release().await?;
    Ok(())
}

async fn again(locks: &leasehold::Client) -> Result<(), Box<dyn Error>> {
    let outer = locks.reentrant("order:7").acquire().await?;
    let inner = locks.reentrant("order:7").acquire_under(Some(&outer)).await?;
    inner.release().await?;
    outer.release().await?;
    Ok(())
}

async fn latches(locks: &leasehold::Client) -> Result<(), Box<dyn Error>> {
    let loaded = locks.latch("load:2026-11-22");
    loaded.expect(2).await?;
    loaded.arrive_as("shard-1").await?;
    loaded.arrive_as("shard-2").await?;
    loaded.wait_for(Duration::from_secs(600)).await?;
    Ok(())
}

/// Code without its comments and layout.
fn bare(code: &str) -> String {
    let lines = code.lines().map(|line| line.split(" // ").next().unwrap_or(line));
    lines.flat_map(str::split_whitespace).collect()
}

/// The code of a page, block by block.
fn snippets(page: &str) -> Vec<&str> {
    page.split("```rust\n").skip(1).filter_map(|rest| rest.split("```").next()).collect()
}

#[test]
fn the_code_in_the_pages_is_the_code_here() {
    let here = bare(include_str!("readme.rs"));
    let pages = [(include_str!("../../../README.md"), 3), (include_str!("../../../docs/kinds.md"), 5)];
    for (page, count) in pages {
        let snippets = snippets(page);
        assert_eq!(snippets.len(), count);
        for snippet in snippets {
            assert!(here.contains(&bare(snippet)), "not compiled here: {snippet}");
        }
    }
}

#[tokio::test]
async fn the_examples_of_all_kinds_run() -> Result<(), Box<dyn Error>> {
    let locks = leasehold::connect("memory:").await?;
    readers(&locks).await?;
    permits(&locks).await?;
    sets(&locks).await?;
    again(&locks).await?;
    latches(&locks).await
}
