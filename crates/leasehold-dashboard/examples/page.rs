//! A service with a page of its locks on an admin port: `cargo run -p leasehold-dashboard --example page`, until Ctrl-C.
#![expect(clippy::print_stdout, reason = "it tells where the page is")]

use std::time::Duration;

use leasehold::Client;
use leasehold_dashboard::Dashboard;
use tokio::net::TcpListener;
use tokio::time::sleep;

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let locks = leasehold::connect("memory:").await?;
    for worker in 0..3 {
        tokio::spawn(work(locks.clone(), worker));
    }
    let _nightly = locks.mutex("report:nightly").why("sums of the day").acquire().await?;
    let _gpu = locks.semaphore("gpu", 4).why("training").acquire().await?;

    let admin = TcpListener::bind(std::env::var("ADMIN").unwrap_or_else(|_| "127.0.0.1:7373".to_owned())).await?;
    println!("the page is at http://{}/", admin.local_addr()?);
    let page = Dashboard::new(locks).store("example").every(Duration::from_millis(500));
    Ok(axum::serve(admin, page.router()).await?)
}

/// Pays one invoice after the other, in turns with the other workers.
async fn work(locks: Client, worker: u32) {
    for invoice in 1.. {
        let lock = locks.mutex(format!("invoice:{}", invoice / 3)).why(format!("payment by worker {worker}"));
        let Ok(guard) = lock.acquire().await else { return };
        sleep(Duration::from_secs(2)).await;
        if let Err(error) = guard.release().await {
            println!("{error}");
        }
    }
}
