//! What is not a duration.

use leasehold::{Client, Error};

#[leasehold::locked(client = locks, name = "a", ttl = "soon")]
async fn word(locks: &Client) -> Result<(), Error> {
    Ok(())
}

#[leasehold::locked(client = locks, name = "a", ttl = "30")]
async fn without_unit(locks: &Client) -> Result<(), Error> {
    Ok(())
}

#[leasehold::locked(client = locks, name = "a", ttl = "1ms")]
async fn too_short(locks: &Client) -> Result<(), Error> {
    Ok(())
}

#[leasehold::locked(client = locks, name = "a", wait = 5)]
async fn number(locks: &Client) -> Result<(), Error> {
    Ok(())
}

fn main() {}
