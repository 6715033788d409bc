//! A lock that others of the process read already: this library's beside tokio's, which no other process respects.

use std::sync::Arc;

use anyhow::Result;
use bench_measure::{Client, Lock, Plan};
use leasehold::{ReadGuard, ReadLock};
use tokio::sync::{OwnedRwLockReadGuard, RwLock};

use crate::runs::IN_PROCESS;

/// How many reads are one pair. One alone takes little longer than to measure it.
const READS: u32 = 1000;

/// Whether the plan is for this.
pub(super) fn is_wanted_by(plan: &Plan) -> bool {
    plan.server().is_ok_and(|server| server == IN_PROCESS)
}

/// The lock of tokio, and the guard of the reader that stays.
#[derive(Clone)]
pub(super) struct Tokios {
    lock: Arc<RwLock<()>>,
    _stays: Arc<OwnedRwLockReadGuard<()>>,
}

/// The same of this library.
#[derive(Clone)]
pub(super) struct Ours {
    lock: ReadLock,
    _stays: Arc<ReadGuard>,
}

impl Tokios {
    pub(super) async fn connect() -> Result<Self> {
        let lock = Arc::new(RwLock::new(()));
        let stays = Arc::new(Arc::clone(&lock).read_owned().await);
        Ok(Self { lock, _stays: stays })
    }
}

impl Ours {
    pub(super) async fn connect() -> Result<Self> {
        let lock = leasehold::connect(IN_PROCESS).await?.rw_lock("bench").read();
        let stays = Arc::new(lock.acquire().await?);
        Ok(Self { lock, _stays: stays })
    }
}

impl Client for Tokios {
    type Lock = Self;

    fn lock(&self, _: &str) -> Result<Self> {
        Ok(self.clone())
    }
}

impl Client for Ours {
    type Lock = Self;

    fn lock(&self, _: &str) -> Result<Self> {
        Ok(self.clone())
    }
}

impl Lock for Tokios {
    type Held = ();
    const RENEWS_BY_ITSELF: bool = true;

    async fn acquire(&self) -> Result<()> {
        for _ in 0..READS {
            drop(self.lock.read().await);
        }
        Ok(())
    }

    async fn release(&self, (): ()) -> Result<()> {
        Ok(())
    }
}

impl Lock for Ours {
    type Held = ();
    const RENEWS_BY_ITSELF: bool = true;

    async fn acquire(&self) -> Result<()> {
        for _ in 0..READS {
            drop(self.lock.acquire().await?);
        }
        Ok(())
    }

    async fn release(&self, (): ()) -> Result<()> {
        Ok(())
    }
}
