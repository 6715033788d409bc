//! The code of docs/book/src/kinds, with threads.
#![allow(clippy::print_stdout, reason = "the pages print")]

use std::error::Error;
use std::time::Duration;

use leasehold::TryAcquireError;
use leasehold::blocking::{Client, Guard, Kit};
use leasehold::kit::{JobOutcome, Scope};

fn mutexes(locks: &Client) -> Result<(), Box<dyn Error>> {
    let lock = locks.mutex("invoice:42").wait(Duration::from_secs(5));
    match lock.try_acquire_or_holder() {
        Ok(guard) => guard.release()?,
        Err(TryAcquireError::Busy(busy)) => println!("{busy}"),
        Err(TryAcquireError::Failed(error)) => return Err(error.into()),
    }
    Ok(())
}

fn readers(locks: &Client) -> Result<(), Box<dyn Error>> {
    let catalog = locks.rw_lock("catalog");
    let writer = catalog.write().acquire()?;
    println!("raise the fence to {} before you read", writer.write_token());
    println!("write with token {}", writer.fencing_token());
    let reader = writer.downgrade()?;
    reader.release()?;
    let health = catalog.read().barging().acquire()?;
    health.release()?;
    Ok(())
}

fn permits(locks: &Client) -> Result<(), Box<dyn Error>> {
    let licences = locks.semaphore("licence", 4).wait(Duration::from_secs(5));
    let guard = licences.acquire()?;
    println!("licence {} of 0 to 3", guard.slot());
    guard.release()?;
    let two = licences.acquire_many(2)?;
    assert_eq!(two.slots().len(), 2);
    two.release()?;
    Ok(())
}

fn again(locks: &Client) -> Result<(), Box<dyn Error>> {
    let outer = locks.reentrant("order:7").acquire()?;
    let inner = locks.reentrant("order:7").acquire()?;
    assert_eq!(inner.fencing_token(), outer.fencing_token());
    inner.release()?;
    outer.release()?;
    Ok(())
}

fn degrading(locks: &Client) -> Result<(), Box<dyn Error>> {
    let guard = locks.degrading("refill:42").acquire()?;
    if guard.scope() == Scope::Process {
        println!("other processes may refill it as well");
    }
    guard.release()?;
    Ok(())
}

fn latches(locks: &Client) -> Result<(), Box<dyn Error>> {
    let loaded = locks.latch("load:2026-11-22");
    loaded.expect(2)?;
    loaded.arrive()?;
    println!("{:?} missing", loaded.remaining()?);
    loaded.arrive()?;
    loaded.wait_for(Duration::from_secs(600))?;
    loaded.reset()?;
    Ok(())
}

fn fetch(guard: &Guard) -> u64 {
    guard.fencing_token().get()
}

fn jobs(locks: &Client) -> Result<(), Box<dyn Error>> {
    let job = locks.job("poll").at_least(Duration::from_secs(50));
    if let JobOutcome::Ran(run) = job.run(fetch)? {
        println!("{} mails", run.value);
    }
    Ok(())
}

#[test]
fn the_examples_of_all_kinds_run() -> Result<(), Box<dyn Error>> {
    let locks = leasehold::blocking::connect("memory:")?;
    mutexes(&locks)?;
    readers(&locks)?;
    permits(&locks)?;
    again(&locks)?;
    degrading(&locks)?;
    jobs(&locks)?;
    latches(&locks)
}
