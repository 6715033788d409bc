//! Settings that do not exist, or not like that. All mistakes are reported.

use leasehold::{Client, Error};

#[leasehold::locked(client = locks, name = "a", tll = "30s", on_busy = "retry", wait = "5", wait = "5s", why = "a\nb")]
async fn many(locks: &Client) -> Result<(), Error> {
    Ok(())
}

#[leasehold::locked(client = locks, name = "a", on_busy = skip, guard = self.guard)]
async fn values(locks: &Client) -> Result<(), Error> {
    Ok(())
}

#[leasehold::locked(locks, name = "a")]
async fn nameless(locks: &Client) -> Result<(), Error> {
    Ok(())
}

fn main() {}
