//! The program of the README: `cargo run -p leasehold --features sqlite --example async`.
#![expect(clippy::print_stdout, reason = "an example")]

use std::time::Duration;

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let locks = leasehold::connect("sqlite:locks.db").await?; // or postgres://app@db1/shop, redis://db1, ...
    let lock = locks.mutex("invoice:42").wait(Duration::from_secs(5)).why("payment run");
    let paid = lock.run_while_held(async |guard| {
        println!("raise the fence to {}, then read", guard.write_token());
        println!("send token {} with each write", guard.fencing_token());
    });
    paid.await?; // a lost lock stops the work, and is an error
    locks.close().await; // at shutdown: leave no lock behind
    Ok(())
}
