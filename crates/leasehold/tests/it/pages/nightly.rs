//! The recipe about a nightly report in a service.
#![allow(clippy::print_stdout, reason = "the page prints")]

use std::error::Error;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use leasehold::kit::{JobOutcome, Slot};
use leasehold::{Client, FencingToken, Kit};

static SENT: AtomicU32 = AtomicU32::new(0);

fn send_report(token: FencingToken) {
    assert!(token.get() > 0);
    SENT.fetch_add(1, Ordering::Relaxed);
}

async fn report(locks: &Client) -> Result<(), Box<dyn Error>> {
    let (day, three) = (24 * 3600, 3 * 3600);
    let now = SystemTime::now().duration_since(UNIX_EPOCH)?.as_secs();
    let slot = Slot::at(UNIX_EPOCH + Duration::from_secs((now - three) / day * day + three))?;
    let job = locks.job("report").slot(slot).every(Duration::from_secs(day));
    if let JobOutcome::Skipped(skipped) = job.run(async |guard| send_report(guard.fencing_token())).await? {
        println!("{skipped}");
    }
    Ok(())
}

#[tokio::test]
async fn the_report_is_sent_once() -> Result<(), Box<dyn Error>> {
    for _ in 0..3 {
        report(&leasehold::connect("memory:nightly").await?).await?;
    }
    assert_eq!(SENT.load(Ordering::Relaxed), 1);
    Ok(())
}
