//! The code of docs/book/src/kinds, for async code.
#![allow(clippy::print_stdout, reason = "the pages print")]

use std::error::Error;
use std::time::{Duration, UNIX_EPOCH};

use leasehold::kit::{JobOutcome, Slot};
use leasehold::{BackendConfig, Client, FencingToken, Kit, Ticket};

async fn mutexes(locks: &Client) -> Result<(), Box<dyn Error>> {
    let lock = locks.mutex("invoice:42").ttl(Duration::from_secs(30)).wait(Duration::from_secs(5));
    let guard = lock.acquire().await?;
    println!("raise the fence to {} before you read", guard.write_token());
    println!("send token {} with each write", guard.fencing_token());
    guard.check()?;
    guard.release().await?;
    Ok(())
}

/// Guards can be moved to other tasks and threads, and stored.
const fn movable<T: Send + 'static>() {}

const _: () = {
    movable::<leasehold::Guard>();
    movable::<leasehold::ReadGuard>();
    movable::<leasehold::PermitGuard>();
    movable::<leasehold::blocking::Guard>();
};

async fn without_local_hand_over(url: &str) -> Result<(), Box<dyn Error>> {
    let config = BackendConfig::from_url(url)?;
    let locks = leasehold::builder(&config).await?.chain(0).build()?;
    mutexes(&locks).await
}

async fn readers(locks: &Client) -> Result<(), Box<dyn Error>> {
    let catalog = locks.rw_lock("catalog");
    let reader = catalog.read().wait(Duration::from_secs(5)).acquire().await?;
    let reader = match reader.try_upgrade().await {
        Ok(writer) => {
            println!("raise the fence to {}, then read again", writer.write_token());
            println!("write with token {}", writer.fencing_token());
            writer.downgrade().await?
        }
        Err(unchanged) => unchanged.into_guard(),
    };
    reader.release().await?;
    Ok(())
}

async fn permits(locks: &Client) -> Result<(), Box<dyn Error>> {
    let gpus = locks.semaphore("gpu", 4);
    let guard = gpus.acquire_many(2).await?;
    for (slot, token) in guard.write_tokens() {
        println!("raise the fence of GPU {slot} to {token}, then use it");
    }
    let guard = guard.give_back(1).await?;
    println!("still on GPU {}", guard.slot());
    guard.release().await?;
    Ok(())
}

async fn another_limit(locks: &Client) -> Result<(), Box<dyn Error>> {
    let gpus = locks.semaphore("gpu", 8);
    gpus.set_limit(8).await?;
    println!("{} are free now", gpus.available_permits().await?);
    Ok(())
}

async fn sets(locks: &Client) -> Result<(), Box<dyn Error>> {
    let guard = locks.all(["account:7", "account:3"]).acquire().await?;
    for (name, token) in guard.write_tokens() {
        println!("raise the fence of {name} to {token}");
    }
    for (name, token) in guard.tokens() {
        println!("write to {name} with token {token}");
    }
    guard.release().await?;
    Ok(())
}

async fn again(locks: &Client) -> Result<(), Box<dyn Error>> {
    let outer = locks.mutex("order:7").acquire().await?.share();
    let inner = outer.again()?;
    inner.release().await?;
    outer.release().await?;
    Ok(())
}

async fn latches(locks: &Client) -> Result<(), Box<dyn Error>> {
    let loaded = locks.latch("load:2026-11-22");
    loaded.expect(2).await?;
    loaded.arrive_as("shard-1").await?;
    loaded.arrive_as("shard-2").await?;
    loaded.wait_for(Duration::from_secs(600)).await?;
    Ok(())
}

async fn degrading(locks: &Client) -> Result<(), Box<dyn Error>> {
    let guard = locks.degrading("refill:42").wait(Duration::from_secs(5)).acquire().await?;
    match guard.fencing_token() {
        Some(token) => println!("the only one anywhere, with token {token}"),
        None => println!("the only one in this process: {:?}", guard.error()),
    }
    guard.release().await?;
    Ok(())
}

fn send_report(token: FencingToken) -> String {
    format!("the report, under token {token}")
}

async fn jobs(locks: &Client) -> Result<(), Box<dyn Error>> {
    let (day, now) = (Duration::from_secs(24 * 3600), UNIX_EPOCH.elapsed()?.as_secs());
    let slot = Slot::at(UNIX_EPOCH + Duration::from_secs(now - (now - 3 * 3600) % day.as_secs()))?;
    let job = locks.job("nightly").slot(slot).every(day).max_hold(Duration::from_secs(3600));
    match job.run(async |guard| send_report(guard.fencing_token())).await? {
        JobOutcome::Ran(run) => println!("sent {}; missed: {:?}", run.value, run.missed),
        JobOutcome::Skipped(skipped) => println!("{skipped}"),
    }
    let age = now - slot.time().duration_since(UNIX_EPOCH)?.as_secs();
    assert!(slot.to_string().ends_with("T03:00:00Z") && age < day.as_secs(), "{slot}");
    Ok(())
}

async fn tickets(locks: &Client) -> Result<(), Box<dyn Error>> {
    let guard = locks.mutex("upload:7").acquire().await?;
    let text = guard.detach().await?.expose();

    let ticket: Ticket = text.parse()?;
    let guard = locks.mutex("upload:7").adopt(&ticket).await?;
    guard.release().await?;
    Ok(())
}

#[tokio::test]
async fn the_examples_of_all_kinds_run() -> Result<(), Box<dyn Error>> {
    let locks = leasehold::connect("memory:").await?;
    mutexes(&locks).await?;
    without_local_hand_over("memory:").await?;
    readers(&locks).await?;
    permits(&locks).await?;
    another_limit(&locks).await?;
    sets(&locks).await?;
    again(&locks).await?;
    degrading(&locks).await?;
    jobs(&locks).await?;
    tickets(&locks).await?;
    latches(&locks).await
}
