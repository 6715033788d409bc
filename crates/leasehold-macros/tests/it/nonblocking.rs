//! Async functions.

use std::sync::atomic::{AtomicU32, Ordering};

use leasehold::{Client, Error, LossReason};

use crate::support::{Bench, Failed, SECOND, soon};

struct Importer {
    locks: Client,
    other: Client,
    begun: AtomicU32,
}

impl Importer {
    fn new(bench: &Bench) -> Self {
        Self { locks: bench.client(), other: bench.client(), begun: AtomicU32::new(0) }
    }

    async fn is_free(&self, name: &str) -> bool {
        self.other.mutex(name).try_acquire().await.unwrap().is_some()
    }

    #[leasehold::locked(client = self.locks, name = "import:{tenant}", ttl = "10s", guard = guard)]
    async fn import(&self, tenant: &str) -> Result<u64, Failed> {
        assert_eq!(guard.name().as_str(), format!("import:{tenant}"));
        assert!(guard.remaining() > 9 * SECOND && guard.remaining() < 10 * SECOND, "the ttl, minus drift");
        assert!(!self.is_free(&format!("import:{tenant}")).await);
        assert!(self.is_free("import:another").await);
        match tenant {
            "bad" => Err(Failed::Work("no such tenant"))?,
            "none" => return Ok(0),
            _ => {}
        }
        Ok(guard.fencing_token().get())
    }

    #[leasehold::locked(client = self.locks, name = "import", on_busy = "skip")]
    async fn unless_busy(&self) -> Result<Option<u32>, Failed> {
        Ok(Some(self.begun.fetch_add(1, Ordering::Relaxed) + 1))
    }

    #[leasehold::locked(client = self.locks, name = "import", on_busy = "error")]
    async fn at_once(&self) -> Result<u32, Failed> {
        Ok(self.begun.fetch_add(1, Ordering::Relaxed) + 1)
    }

    #[leasehold::locked(client = self.locks, name = "import", wait = "5s")]
    async fn waiting(&self) -> Result<u32, Failed> {
        Ok(self.begun.fetch_add(1, Ordering::Relaxed) + 1)
    }

    #[leasehold::locked(client = self.locks, name = "import", wait = "5s", on_busy = "skip")]
    async fn waiting_or_not(&self) -> Result<Option<u32>, Failed> {
        Ok(Some(self.begun.fetch_add(1, Ordering::Relaxed) + 1))
    }

    #[leasehold::locked(client = self.locks, name = "import", max_hold = "1s", why = "test")]
    async fn endless(&self, bench: &Bench) -> Result<u32, Failed> {
        let busy = self.other.mutex("import").try_acquire_or_holder().await.unwrap_err();
        assert!(busy.to_string().contains("test"), "{busy}");
        bench.clock.advance(SECOND);
        std::future::pending().await
    }

    #[leasehold::locked(client = self.locks, name = "{tenant}")]
    async fn named_badly(&self, tenant: &str) -> Result<(), Failed> {
        Ok(())
    }
}

#[tokio::test]
async fn the_body_runs_under_the_lock_of_its_arguments() {
    let importer = Importer::new(&Bench::new());
    let token = importer.import("acme").await.unwrap();
    assert!(importer.import("acme").await.unwrap() > token);
    assert!(importer.is_free("import:acme").await, "it is released");
}

#[tokio::test]
async fn the_lock_is_released_however_the_body_ends() {
    let importer = Importer::new(&Bench::new());
    assert_eq!(importer.import("bad").await, Err(Failed::Work("no such tenant")));
    assert!(importer.is_free("import:bad").await);
    assert_eq!(importer.import("none").await, Ok(0));
    assert!(importer.is_free("import:none").await);
}

#[tokio::test]
async fn a_busy_lock_is_skipped_or_an_error() {
    let importer = Importer::new(&Bench::new());
    let held = importer.other.mutex("import").acquire().await.unwrap();
    assert_eq!(soon("a skipped call", importer.unless_busy()).await, Ok(None));
    assert!(soon("a refused call", importer.at_once()).await.unwrap_err().is_busy());
    assert_eq!(importer.begun.load(Ordering::Relaxed), 0);
    held.release().await.unwrap();
    assert_eq!(importer.unless_busy().await, Ok(Some(1)));
    assert_eq!(importer.at_once().await, Ok(2));
}

#[tokio::test]
async fn a_wait_ends() {
    let bench = Bench::new();
    let importer = Importer::new(&bench);
    let held = importer.other.mutex("import").acquire().await.unwrap();
    let waits = async {
        tokio::join!(importer.waiting(), importer.waiting_or_not(), async {
            tokio::task::yield_now().await;
            bench.clock.advance(5 * SECOND);
        })
    };
    let (waited, skipped, ()) = soon("the end of the waits", waits).await;
    assert!(waited.unwrap_err().is_busy());
    assert_eq!(skipped, Ok(None));
    let waits = async { tokio::join!(importer.waiting(), held.release()) };
    assert_eq!(soon("a lock that is released", waits).await, (Ok(1), Ok(())));
}

#[tokio::test]
async fn a_loss_stops_the_body() {
    let bench = Bench::new();
    let importer = Importer::new(&bench);
    let outcome = soon("a loss", importer.endless(&bench)).await;
    let Err(Failed::Lock(Error::Lost(lost))) = outcome else { panic!("{outcome:?}") };
    assert_eq!(lost.reason, LossReason::MaxHold);
}

#[tokio::test]
async fn what_only_an_argument_shows_is_an_error_of_the_acquire() {
    let importer = Importer::new(&Bench::new());
    let refused = importer.named_badly("leasehold:x").await.unwrap_err();
    assert!(matches!(refused, Failed::Lock(Error::Acquire(leasehold::AcquireError::Invalid(_)))));
    importer.named_badly("acme").await.unwrap();
}

#[tokio::test]
async fn a_dropped_call_releases_the_lock() {
    let importer = Importer::new(&Bench::new());
    #[leasehold::locked(client = locks, name = "import")]
    async fn work(locks: &Client, begun: tokio::sync::oneshot::Sender<()>) -> Result<(), Failed> {
        begun.send(()).unwrap();
        std::future::pending().await
    }
    let (begun, begins) = tokio::sync::oneshot::channel();
    let locks = importer.locks.clone();
    let call = tokio::spawn(async move { work(&locks, begun).await });
    soon("the body", begins).await.unwrap();
    assert!(!importer.is_free("import").await);
    call.abort();
    let lock = importer.other.mutex("import");
    let guard = soon("the release", lock.acquire()).await.unwrap();
    guard.release().await.unwrap();
}
