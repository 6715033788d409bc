//! Plain functions.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU32, Ordering};

use leasehold::blocking::Client;
use leasehold::{AcquireError, Error};

use crate::support::{Bench, Failed, SECOND, in_time};

/// Tells when it is dropped whether the lock is free.
struct Looks<'a>(&'a Client, &'a AtomicU32);

impl Drop for Looks<'_> {
    fn drop(&mut self) {
        if self.0.mutex("looks").try_acquire().unwrap().is_some() {
            self.1.fetch_add(1, Ordering::Relaxed);
        }
    }
}

#[leasehold::locked(client = locks, name = "looks")]
fn unnamed(locks: &Client, _: Looks<'_>, _unused: Looks<'_>) -> Result<(), Failed> {
    Ok(())
}

struct Order<'a> {
    number: u32,
    looks: Looks<'a>,
}

#[leasehold::locked(client = locks, name = "looks")]
fn in_part(
    locks: &Client,
    Order { number, .. }: Order<'_>,
    (first, _): (u32, Looks<'_>),
    ref _shown @ Order { ref looks, .. }: Order<'_>,
) -> Result<u32, Failed> {
    assert!(looks.0.mutex("looks").try_acquire().unwrap().is_none());
    Ok(number + first)
}

/// The name of the lock is made before the work begins, of what the patterns bind.
#[leasehold::locked(client = locks, name = "looks:{first}")]
fn of_patterns(
    Order { number, .. }: Order<'_>,
    (locks, _): (&Client, u32),
    (first, second): (u32, u32),
) -> Result<u32, Failed> {
    Ok(number + first + second)
}

#[leasehold::locked(client = locks, name = format!("looks:{first}"))]
fn formatted(locks: &Client, (first, second): (u32, u32)) -> Result<u32, Failed> {
    Ok(first + second)
}

#[leasehold::locked(client = locks, name = "looks")]
async fn unnamed_in_a_task(locks: &leasehold::Client, _: Looks<'_>) -> Result<(), Failed> {
    tokio::task::yield_now().await;
    Ok(())
}

struct Importer {
    locks: Client,
    other: Client,
    done: AtomicU32,
}

impl Importer {
    fn new(bench: &Bench) -> Self {
        Self { locks: bench.blocking(), other: bench.blocking(), done: AtomicU32::new(0) }
    }

    fn is_free(&self, name: &str) -> bool {
        self.other.mutex(name).try_acquire().unwrap().is_some()
    }

    #[leasehold::locked(client = self.locks, name = "import:{tenant}", guard = guard)]
    fn import(&self, tenant: &str) -> Result<u64, Failed> {
        assert_eq!(guard.name().as_str(), format!("import:{tenant}"));
        assert!(!self.is_free(&format!("import:{tenant}")));
        match tenant {
            "bad" => Err(Failed::Work("no such tenant"))?,
            "none" => return Ok(0),
            "panics" => panic!("no such tenant"),
            _ => {}
        }
        Ok(guard.fencing_token().get())
    }

    #[leasehold::locked(client = self.locks, name = "import", on_busy = "skip")]
    fn unless_busy(&self) -> Result<Option<u32>, Failed> {
        Ok(Some(7))
    }

    #[leasehold::locked(client = self.locks, name = "import", on_busy = "error")]
    fn at_once(&self) -> Result<u32, Failed> {
        Ok(7)
    }

    #[leasehold::locked(client = self.locks, name = "import", max_hold = "1s")]
    fn too_long(&self, bench: &Bench) -> Result<u32, Failed> {
        bench.clock.advance(SECOND);
        Ok(self.done.fetch_add(1, Ordering::Relaxed) + 1)
    }

    #[leasehold::locked(client = self.locks, name = "import", max_hold = "1s", guard = guard)]
    fn careful(&self, bench: &Bench) -> Result<u32, Box<dyn std::error::Error>> {
        bench.clock.advance(SECOND);
        guard.check()?;
        Ok(self.done.fetch_add(1, Ordering::Relaxed) + 1)
    }
}

#[test]
fn the_body_runs_under_the_lock_of_its_arguments() {
    let importer = Importer::new(&Bench::new());
    let token = importer.import("acme").unwrap();
    assert!(importer.import("acme").unwrap() > token);
    assert!(importer.is_free("import:acme"), "it is released");
}

#[test]
fn the_lock_is_released_however_the_body_ends() {
    let importer = Importer::new(&Bench::new());
    assert_eq!(importer.import("bad"), Err(Failed::Work("no such tenant")));
    assert_eq!(importer.import("none"), Ok(0));
    assert!(catch_unwind(AssertUnwindSafe(|| importer.import("panics"))).is_err());
    assert!(["bad", "none", "panics"].iter().all(|tenant| importer.is_free(&format!("import:{tenant}"))));
}

#[test]
fn a_busy_lock_is_skipped_or_an_error() {
    let importer = Importer::new(&Bench::new());
    let held = importer.other.mutex("import").acquire().unwrap();
    let (importer, skipped, refused) = in_time("calls that do not wait", || {
        let (skipped, refused) = (importer.unless_busy(), importer.at_once());
        (importer, skipped, refused)
    });
    assert_eq!(skipped, Ok(None));
    assert!(refused.unwrap_err().is_busy());
    held.release().unwrap();
    assert_eq!((importer.unless_busy(), importer.at_once()), (Ok(Some(7)), Ok(7)));
}

#[leasehold::locked(client = locks, name = name, max_hold = "1s", on_busy = "skip")]
fn named(locks: &Client, name: &str, work: impl FnOnce()) -> Result<Option<()>, Failed> {
    work();
    Ok(Some(()))
}

#[test]
fn only_a_busy_lock_is_skipped() {
    let bench = Bench::new();
    let locks = bench.blocking();
    assert_eq!(named(&locks, "import", || ()), Ok(Some(())));
    assert!(named(&locks, "import", || bench.clock.advance(SECOND)).unwrap_err().is_lost());
    assert!(matches!(named(&locks, "", || ()), Err(Failed::Lock(Error::Acquire(AcquireError::Invalid(_))))));
    locks.close();
    assert_eq!(named(&locks, "import", || ()), Err(Failed::Lock(AcquireError::Closed.into())));
}

#[test]
fn a_loss_is_found_at_the_end_of_the_body() {
    let bench = Bench::new();
    let importer = Importer::new(&bench);
    assert!(importer.too_long(&bench).unwrap_err().is_lost());
    assert_eq!(importer.done.load(Ordering::Relaxed), 1, "the body ran to its end");
    assert!(importer.careful(&bench).is_err());
    assert_eq!(importer.done.load(Ordering::Relaxed), 1, "a check stops it");
}

/// Says at its end whether the lock is still held.
struct Probe<'a> {
    importer: &'a Importer,
    held: &'a AtomicU32,
}

impl Drop for Probe<'_> {
    fn drop(&mut self) {
        self.held.fetch_add(u32::from(!self.importer.is_free("import")), Ordering::Relaxed);
    }
}

#[leasehold::locked(client = probe.importer.locks, name = "import")]
fn consuming(probe: Probe<'_>, unused: Probe<'_>) -> Result<(), Failed> {
    assert!(!probe.importer.is_free("import"));
    Ok(())
}

#[test]
fn arguments_are_dropped_before_the_lock_is_released() {
    let (importer, held) = (Importer::new(&Bench::new()), AtomicU32::new(0));
    let probe = || Probe { importer: &importer, held: &held };
    consuming(probe(), probe()).unwrap();
    assert_eq!(held.into_inner(), 2);
    assert!(importer.is_free("import"));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_pattern_does_not_bind_is_dropped_before_the_lock_is_released() {
    let (bench, found_free) = (Bench::new(), AtomicU32::new(0));
    let (locks, other, tasks) = (bench.blocking(), bench.blocking(), bench.client());
    let looks = || Looks(&other, &found_free);
    let order = || Order { number: 1, looks: looks() };
    assert!(unnamed(&locks, looks(), looks()).is_ok() && unnamed_in_a_task(&tasks, looks()).await.is_ok());
    assert_eq!(in_part(&locks, order(), (2, looks()), order()).unwrap(), 3);
    assert_eq!(found_free.load(Ordering::Relaxed), 0);
}

#[test]
fn the_lock_is_made_of_what_patterns_bind() {
    let bench = Bench::new();
    let (locks, other, found_free) = (bench.blocking(), bench.blocking(), AtomicU32::new(0));
    let order = Order { number: 1, looks: Looks(&other, &found_free) };
    assert_eq!(of_patterns(order, (&locks, 0), (2, 3)).unwrap(), 6);
    assert_eq!(formatted(&locks, (2, 3)).unwrap(), 5);
}
