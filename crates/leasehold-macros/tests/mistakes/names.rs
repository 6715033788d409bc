//! Names that no argument can make valid.

use leasehold::{Client, Error};

#[leasehold::locked(client = locks, name = "leasehold:{tenant}")]
async fn reserved(locks: &Client, tenant: &str) -> Result<(), Error> {
    Ok(())
}

#[leasehold::locked(client = locks, name = "")]
async fn empty(locks: &Client) -> Result<(), Error> {
    Ok(())
}

#[leasehold::locked(client = locks, name = 7)]
async fn number(locks: &Client) -> Result<(), Error> {
    Ok(())
}

fn main() {}
