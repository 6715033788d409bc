//! Functions that cannot be locked.

use leasehold::{Client, Error};

struct Importer {
    locks: Client,
}

#[leasehold::locked(client = self.locks, name = "a")]
async fn free() -> Result<(), Error> {
    Ok(())
}

#[leasehold::locked(client = locks, name = "a", guard = rows)]
async fn guard_is_taken(locks: &Client, rows: &[u8]) -> Result<(), Error> {
    Ok(())
}

#[leasehold::locked(client = locks, name = "a")]
async fn returns_nothing(locks: &Client) {}

#[leasehold::locked(client = locks, name = "a")]
fn returns_a_future(locks: &Client) -> impl Future<Output = Result<(), Error>> {
    async { Ok(()) }
}

#[leasehold::locked(client = locks, name = "a")]
const fn constant(locks: &leasehold::blocking::Client) -> Result<(), Error> {
    Ok(())
}

#[leasehold::locked(client = self.locks, name = "a")]
struct NotAFunction;

trait Work {
    #[leasehold::locked(client = self.locks, name = "a")]
    async fn without_a_body(&self) -> Result<(), Error>;
}

fn main() {}
