//! The code of the page about testing runs.

use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use leasehold::clock::ManualClock;
use leasehold::error::Operation;
use leasehold::memory::MemoryStore;
use leasehold::memory::faults::{Fault, Faults, Faulty};
use leasehold::{AcquireError, ErrorKind, HoldError};
use tokio::sync::Notify;

#[tokio::test]
async fn a_later_holder_has_a_higher_token() -> Result<(), Box<dyn Error>> {
    let clock = ManualClock::new();
    let store = MemoryStore::new(Arc::new(clock.clone()));
    let client = || leasehold::Client::builder(Arc::new(store.nonblocking())).clock(Arc::new(clock.clone())).build();
    let (paused, other) = (client()?, client()?);

    let guard = paused.mutex("invoice:42").max_hold(Duration::from_secs(10)).acquire().await?;
    clock.advance(Duration::from_secs(10));
    assert!(guard.check().is_err());
    let later = other.mutex("invoice:42").acquire().await?;
    assert!(later.fencing_token() > guard.fencing_token());
    Ok(())
}

#[tokio::test]
async fn a_loss_stops_the_work() -> Result<(), Box<dyn Error>> {
    let (clock, faults) = (ManualClock::new(), Faults::new());
    let store = Faulty::new(MemoryStore::new(Arc::new(clock.clone())).nonblocking(), &faults);
    let locks = leasehold::Client::builder(Arc::new(store)).clock(Arc::new(clock.clone())).build()?;

    let (lock, began) = (locks.mutex("import"), Arc::new(Notify::new()));
    let started = began.clone();
    let work = tokio::spawn(async move {
        lock.run_while_held(async |_guard| {
            started.notify_one();
            std::future::pending::<()>().await
        })
        .await
    });
    began.notified().await;
    faults.fail_everything(Fault::Refused(ErrorKind::Unreachable));
    clock.advance(leasehold::Ttl::DEFAULT.get());
    assert!(matches!(work.await?, Err(leasehold::Error::Lost(_))));
    Ok(())
}

#[tokio::test]
async fn a_store_fails_on_command() -> Result<(), Box<dyn Error>> {
    let (clock, faults) = (ManualClock::new(), Faults::new());
    let store = Faulty::new(MemoryStore::new(Arc::new(clock.clone())).nonblocking(), &faults);
    let locks = leasehold::Client::builder(Arc::new(store)).clock(Arc::new(clock.clone())).build()?;

    faults.fail_everything(Fault::Refused(ErrorKind::Unreachable));
    let error = locks.mutex("invoice:42").try_acquire().await.unwrap_err();
    assert!(matches!(error, AcquireError::Backend(error) if error.kind().is_transient()));

    faults.heal_everything();
    faults.fail_next(Operation::Release, Fault::LostReply);
    let guard = locks.mutex("invoice:42").acquire().await?;
    assert!(matches!(guard.release().await, Ok(()) | Err(HoldError::Backend(_))));
    Ok(())
}
