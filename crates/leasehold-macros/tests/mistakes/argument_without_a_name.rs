//! Captures that are not names of arguments.

use leasehold::{Client, Error};

struct Tenant {
    id: u32,
}

#[leasehold::locked(client = locks, name = "sync:{}")]
async fn positional(locks: &Client, tenant: &Tenant) -> Result<(), Error> {
    Ok(())
}

#[leasehold::locked(client = locks, name = "sync:{tenant.id}")]
async fn field(locks: &Client, tenant: &Tenant) -> Result<(), Error> {
    Ok(())
}

fn main() {}
