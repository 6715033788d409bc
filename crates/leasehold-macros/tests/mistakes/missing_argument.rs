//! A name without its argument.

use leasehold::{Client, Error};

#[leasehold::locked(client = locks, name = "sync:{tenant}")]
async fn sync(locks: &Client, tenants: &[String]) -> Result<(), Error> {
    Ok(())
}

fn main() {}
