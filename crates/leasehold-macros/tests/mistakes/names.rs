//! Names that no argument can make valid.

use leasehold::{Client, WhileHeldError};

#[leasehold::locked(client = locks, name = "leasehold:{tenant}")]
async fn reserved(locks: &Client, tenant: &str) -> Result<(), WhileHeldError> {
    Ok(())
}

#[leasehold::locked(client = locks, name = "")]
async fn empty(locks: &Client) -> Result<(), WhileHeldError> {
    Ok(())
}

#[leasehold::locked(client = locks, name = 7)]
async fn number(locks: &Client) -> Result<(), WhileHeldError> {
    Ok(())
}

fn main() {}
