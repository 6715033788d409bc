//! Work that stops when its lock is lost, from the page "Get started": `cargo run -p leasehold --features sqlite --example losing`.
#![expect(clippy::print_stdout, reason = "an example")]

use std::time::Duration;

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let locks = leasehold::connect("sqlite:locks.db").await?; // once per process: clone it
    let lock = locks.mutex("account:1").wait(Duration::from_secs(60)).why("interest");
    let work = lock.run_while_held(async |guard| {
        println!("working under token {}", guard.fencing_token());
        tokio::time::sleep(Duration::from_secs(300)).await;
        println!("done");
    });
    work.await?; // an error if the lock was lost
    locks.close().await;
    Ok(())
}
