//! Fences, renewals, latches and limits reach the store as carefully as the requests of a station.

use std::sync::Arc;
use std::sync::mpsc::channel;
use std::time::Duration;

use async_trait::async_trait;
use lock_async::Client;
use lock_core::latch::{self, LatchError, Seen};
use lock_core::limit::{self, LimitError, Usage};
use lock_core::{AsyncBackend, AsyncLayer, BackendError, Effect, ErrorKind, Fenced, Layer, Lease, Renewed};
use lock_host::HoldError;

use crate::support::{Bench, Names, PATIENCE};

/// A store that panics in all requests that no station asks for.
#[derive(Debug)]
struct Careless(Arc<dyn AsyncBackend>);

impl Layer for Careless {
    type Inner = dyn AsyncBackend;

    fn inner(&self) -> &Arc<dyn AsyncBackend> {
        &self.0
    }
}

#[async_trait]
impl AsyncLayer for Careless {
    fn over(&self, inner: Arc<dyn AsyncBackend>) -> Arc<dyn AsyncBackend> {
        inner
    }

    async fn fence(&self, _: &Lease, _: Duration) -> Result<Fenced, BackendError> {
        panic!("on purpose")
    }

    async fn renew(&self, _: &[Lease], _: Duration) -> Result<Vec<Renewed>, BackendError> {
        panic!("on purpose")
    }

    async fn latch(&self, _: &latch::Request, _: Duration) -> Result<Seen, BackendError> {
        panic!("on purpose")
    }

    async fn limit(&self, _: &limit::Request, _: Duration) -> Result<Usage, BackendError> {
        panic!("on purpose")
    }
}

fn is_unknown(error: &BackendError) -> bool {
    (error.kind(), error.effect()) == (ErrorKind::Protocol, Effect::Unknown)
}

#[tokio::test]
async fn a_panic_of_the_backend_is_an_unknown_answer_that_observers_hear_of() {
    let (bench, (sender, told)) = (Bench::new(), channel());
    let client = Client::builder(Arc::new(Careless(Arc::new(bench.store.nonblocking()))))
        .clock(Arc::new(bench.clock.clone()))
        .observer(Arc::new(Names(sender)))
        .build()
        .unwrap();
    let guard = client.mutex("a").acquire().await.unwrap();
    assert!(matches!(guard.verify().await, Err(HoldError::Backend(error)) if is_unknown(&error)));
    assert!(matches!(guard.renew().await, Err(HoldError::Backend(error)) if is_unknown(&error)));
    let limit = client.semaphore("b", 4).limit().await;
    assert!(matches!(limit, Err(LimitError::Backend(error)) if is_unknown(&error)));
    let latch = client.latch("c").state().await;
    assert!(matches!(latch, Err(LatchError::Backend(error)) if is_unknown(&error)));
    assert_eq!(told.try_iter().filter(|name| *name == "request failed").count(), 4);
    guard.check().unwrap();
}

/// A store whose fence needs a timer of the runtime.
#[derive(Debug)]
struct Timed(Arc<dyn AsyncBackend>);

impl Layer for Timed {
    type Inner = dyn AsyncBackend;

    fn inner(&self) -> &Arc<dyn AsyncBackend> {
        &self.0
    }
}

#[async_trait]
impl AsyncLayer for Timed {
    fn over(&self, inner: Arc<dyn AsyncBackend>) -> Arc<dyn AsyncBackend> {
        Arc::new(Self(inner))
    }

    async fn fence(&self, lease: &Lease, within: Duration) -> Result<Fenced, BackendError> {
        tokio::time::sleep(Duration::from_millis(1)).await;
        self.0.fence(lease, within).await
    }
}

/// A guard may be verified on another runtime.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_fence_uses_the_runtime_of_the_client_wherever_it_is_polled() {
    let bench = Bench::new();
    let client = bench.client_of(Timed(Arc::new(bench.store.nonblocking())));
    let guard = client.mutex("a").acquire().await.unwrap();
    let (sender, verified) = channel();
    // That one has no timers.
    let other = tokio::runtime::Builder::new_current_thread().build().unwrap();
    std::thread::spawn(move || sender.send(other.block_on(guard.verify()).is_ok()));
    assert!(verified.recv_timeout(PATIENCE).unwrap());
}
