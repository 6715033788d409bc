//! Stores that do not answer.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use lock_async::Client;
use lock_core::{BackendError, Effect, ErrorKind, Operation, ReleaseRequest};
use tokio::sync::Semaphore;

use crate::support::{Bench, Hook, Hooked, PATIENCE, until};

const SECOND: Duration = Duration::from_secs(1);

/// CloseSignal waits for the requests that are in flight when it begins. It does not wait for a release that is repeated meanwhile
/// and not answered either.
#[tokio::test]
async fn closing_waits_only_for_requests_in_flight() {
    let bench = Bench::new();
    let (answers, repeats, asked) =
        (Arc::new(Semaphore::new(0)), Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
    let (gate, tries, count) = (Arc::clone(&answers), Arc::clone(&repeats), Arc::clone(&asked));
    let backend = Hooked::new(bench.store.nonblocking(), move |request: &ReleaseRequest| -> Hook {
        if request.name.as_str() == "slow" {
            count.fetch_add(1, Ordering::SeqCst);
            let gate = Arc::clone(&gate);
            return Box::pin(async move { gate.acquire().await.map(drop).map_err(|_| unreachable()) });
        }
        if tries.fetch_add(1, Ordering::SeqCst) == 0 {
            Box::pin(async { Err(unreachable()) })
        } else {
            Box::pin(std::future::pending())
        }
    });
    let client = Client::builder(Arc::new(backend)).clock(Arc::new(bench.clock.clone())).build().unwrap();
    let _held = client.mutex("slow").acquire().await.unwrap();
    assert!(client.mutex("sick").acquire().await.unwrap().release().await.is_err());
    let closing = tokio::spawn(async move { client.close().await });
    until(|| asked.load(Ordering::SeqCst) == 1).await;
    // If the machine repeats it, it is in flight from here on.
    for _ in 0..20 {
        bench.clock.advance(SECOND / 10);
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    assert!(!closing.is_finished(), "its own release is not answered yet");
    answers.add_permits(1);
    tokio::time::timeout(PATIENCE, closing).await.expect("it waits for the repeated release").unwrap();
}

fn unreachable() -> BackendError {
    BackendError::new("test", Operation::Release, ErrorKind::Unreachable, Effect::None, "on purpose")
}
