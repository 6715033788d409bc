//! A name without its argument.

use leasehold::{Client, WhileHeldError};

#[leasehold::locked(client = locks, name = "sync:{tenant}")]
async fn sync(locks: &Client, tenants: &[String]) -> Result<(), WhileHeldError> {
    Ok(())
}

fn main() {}
