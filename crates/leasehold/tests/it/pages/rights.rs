//! The rights that the book lists are enough, for every kind of lock.

use std::error::Error;
use std::time::Duration;

use leasehold::blocking::{Client, Kit};
use leasehold::kit::JobOutcome;
use test_support::RedisServer;
use test_support::pages::blocks_in;

const WITHIN: Duration = Duration::from_secs(20);

fn uses_all_kinds(locks: &Client) -> Result<(), Box<dyn Error>> {
    locks.mutex("a").wait(WITHIN).acquire()?.release()?;
    locks.rw_lock("b").read().acquire()?.release()?;
    locks.semaphore("c", 4).acquire_many(2)?.release()?;
    locks.semaphore("c", 8).set_limit(8)?;
    let loaded = locks.latch("d");
    loaded.expect(1)?;
    loaded.arrive_as("shard-1")?;
    loaded.wait_for(WITHIN)?;
    locks.all(["e", "f"]).acquire()?.release()?;
    let job = locks.job("g").slot("2099-11-21T03:00".parse()?);
    assert!(matches!(job.run(|_| ())?, JobOutcome::Ran(_)));
    locks.mutex("h").adopt(&locks.mutex("h").acquire()?.detach()?)?.release()?;
    assert!(locks.inspect().is_some());
    locks.close();
    Ok(())
}

#[test]
fn the_rights_of_the_book_are_enough() -> Result<(), Box<dyn Error>> {
    let blocks = blocks_in("redis");
    let [block] = &blocks[..] else { return Err("one page has the rights".into()) };
    let server = RedisServer::start();
    server.command::<()>(&block.code.split_whitespace().collect::<Vec<_>>());
    let url = |login: &str| server.url().replace("redis://", &format!("redis://{login}@"));
    uses_all_kinds(&leasehold::blocking::connect(&format!("{}?prefix=shop", url("shop:sesame")))?)?;

    let other = leasehold::blocking::connect(&format!("{}?prefix=other", url("shop:sesame")))?;
    let refused = other.mutex("a").try_acquire().map(drop).map_err(|error| error.to_string());
    assert!(refused.is_err_and(|error| error.contains("Operations")), "keys of another application are not among them");
    Ok(())
}
