//! The process of the bench that measures rslock; see `bench/` at the root.

use std::time::Duration;

use anyhow::Result;
use bench_measure::{Client, Plan, Subject, run};
use rslock::LockManager;

/// Tries while somebody else holds the lock are drawn between 0 and this, where the default is not wanted.
const EAGER: Duration = Duration::from_millis(10);
/// The default number of tries; waiters begin anew after them.
const TRIES: u32 = 3;

fn main() -> Result<()> {
    let plan = Plan::from_argument(std::env::args().nth(1))?;
    run(&plan, connect(&plan))
}

async fn connect(plan: &Plan) -> Result<Rslock> {
    let mut manager = LockManager::new(plan.servers.clone());
    if plan.subject == Subject::RslockEager {
        manager.set_retry(TRIES, EAGER);
    }
    Ok(Rslock { manager, ttl: plan.ttl })
}

struct Rslock {
    manager: LockManager,
    ttl: Duration,
}

struct Lock {
    manager: LockManager,
    name: String,
    ttl: Duration,
}

impl Client for Rslock {
    type Lock = Lock;

    fn lock(&self, name: &str) -> Result<Lock> {
        Ok(Lock { manager: self.manager.clone(), name: name.to_owned(), ttl: self.ttl })
    }
}

impl bench_measure::Lock for Lock {
    type Held = rslock::Lock;
    const RENEWS_BY_ITSELF: bool = false;

    async fn acquire(&self) -> Result<rslock::Lock> {
        Ok(self.manager.acquire_no_guard(self.name.as_bytes(), self.ttl).await?)
    }

    /// Dropping a lock of rslock does not release it, so the bench always releases explicitly.
    async fn release(&self, held: rslock::Lock) -> Result<()> {
        self.manager.unlock(&held).await;
        Ok(())
    }

    async fn keep(&self, held: &rslock::Lock) {
        loop {
            tokio::time::sleep(self.ttl / 3).await;
            if self.manager.extend(held, self.ttl).await.is_err() {
                return;
            }
        }
    }
}
