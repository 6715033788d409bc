//! A lock in async code: `cargo run -p leasehold --features sqlite --example async`.
#![expect(clippy::print_stdout, reason = "an example")]

use std::time::Duration;

use leasehold::{FencingToken, Lost, WriteToken};

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let folder = std::env::temp_dir().join("leasehold-example.db");
    let locks = leasehold::connect(&format!("sqlite:{}", folder.display())).await?;
    let guard = locks.mutex("invoice:42").wait(Duration::from_secs(5)).why("the example").acquire().await?;
    println!("holding {} with token {} for {:?} at least", guard.name(), guard.fencing_token(), guard.remaining());

    raise(guard.write_token());
    tokio::select! {
        () = pay(guard.fencing_token()) => println!("paid"),
        lost @ Lost { .. } = guard.lost() => return Err(lost.into()),
    }
    guard.release().await?; // an error if a loss was detected
    println!("released");
    Ok(())
}

/// Comes before anything is read: from now on, what the lock protects refuses earlier holders.
fn raise(token: WriteToken) {
    println!("UPDATE invoice SET fence = {token} WHERE id = 42 AND fence <= {token}");
}

/// Something that the lock protects: it remembers the highest token and refuses lower ones.
async fn pay(token: FencingToken) {
    tokio::time::sleep(Duration::from_millis(100)).await;
    println!("UPDATE invoice SET paid = 1, fence = {token} WHERE id = 42 AND fence <= {token}");
}
