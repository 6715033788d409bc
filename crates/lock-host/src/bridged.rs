//! The blocking form of an async store.

use std::sync::Arc;
use std::time::Duration;

use lock_core::inspect::{Entry, Page, Query, Revoked};
use lock_core::latch::{self, Seen};
use lock_core::limit::{self, Usage};
use lock_core::{
    Answer, AsyncBackend, Backend, BackendError, BlockingBackend, Capabilities, Claim, EventSink, Fenced, FencingToken,
    Lease, Location, LockName, Note, ReleaseRequest, Released, Renewed,
};

use crate::bridge::Bridge;

/// The blocking form of an async backend, or of an async node of a quorum. Each call runs the call of the inner one by
/// [`Bridge::block_on`]: from any thread except the bridge's, and a panic reaches the caller.
///
/// A backend keeps its time limits itself, by the bridge's timers. A node need not: its request is dropped shortly after its time limit,
/// and the error is a `Timeout`.
#[derive(Debug)]
pub struct Bridged<B: ?Sized> {
    inner: Arc<B>,
    bridge: Bridge,
}

impl<B: ?Sized> Bridged<B> {
    /// The blocking form of `inner`, whose connections should belong to the same bridge.
    pub const fn new(inner: Arc<B>, bridge: Bridge) -> Self {
        Self { inner, bridge }
    }

    /// The async form.
    pub const fn inner(&self) -> &Arc<B> {
        &self.inner
    }

    /// The runtime of its tasks.
    pub const fn bridge(&self) -> &Bridge {
        &self.bridge
    }
}

impl<B: AsyncBackend + ?Sized> Backend for Bridged<B> {
    fn capabilities(&self) -> Capabilities {
        self.inner.capabilities()
    }

    fn listen(&self, sink: EventSink) {
        let _entered = self.bridge.handle().enter();
        self.inner.listen(sink);
    }

    fn locate(&self, name: &LockName) -> Option<Location> {
        self.inner.locate(name)
    }

    fn holds(&self, lease: &Lease) {
        let _entered = self.bridge.handle().enter();
        self.inner.holds(lease);
    }

    fn end_session(&self) {
        let _entered = self.bridge.handle().enter();
        self.inner.end_session();
    }

    fn warnings(&self) -> Vec<String> {
        self.inner.warnings()
    }
}

impl<B: AsyncBackend + ?Sized> BlockingBackend for Bridged<B> {
    /// The inner backend's for the keeper, on the same bridge.
    fn for_keeper(self: Arc<Self>) -> Arc<dyn BlockingBackend> {
        let _entered = self.bridge.handle().enter();
        Arc::new(Bridged::new(Arc::clone(&self.inner).for_keeper(), self.bridge.clone()))
    }

    fn acquire(&self, claim: &Claim, within: Duration) -> Result<Answer, BackendError> {
        self.bridge.block_on(self.inner.acquire(claim, within))
    }

    fn renew(&self, leases: &[Lease], within: Duration) -> Result<Vec<Renewed>, BackendError> {
        self.bridge.block_on(self.inner.renew(leases, within))
    }

    fn release(&self, request: &ReleaseRequest, within: Duration) -> Result<Released, BackendError> {
        self.bridge.block_on(self.inner.release(request, within))
    }

    fn fence(&self, lease: &Lease, within: Duration) -> Result<Fenced, BackendError> {
        self.bridge.block_on(self.inner.fence(lease, within))
    }

    fn flush(&self, within: Duration) {
        self.bridge.block_on(self.inner.flush(within));
    }

    fn latch(&self, request: &latch::Request, within: Duration) -> Result<Seen, BackendError> {
        self.bridge.block_on(self.inner.latch(request, within))
    }

    fn limit(&self, request: &limit::Request, within: Duration) -> Result<Usage, BackendError> {
        self.bridge.block_on(self.inner.limit(request, within))
    }

    fn holder(&self, name: &LockName, within: Duration) -> Result<Option<Entry>, BackendError> {
        self.bridge.block_on(self.inner.holder(name, within))
    }

    fn list(&self, query: &Query, within: Duration) -> Result<Page, BackendError> {
        self.bridge.block_on(self.inner.list(query, within))
    }

    fn revoke(
        &self,
        name: &LockName,
        token: FencingToken,
        by: &Note,
        within: Duration,
    ) -> Result<Revoked, BackendError> {
        self.bridge.block_on(self.inner.revoke(name, token, by, within))
    }

    fn revoked_by(
        &self,
        name: &LockName,
        highest: FencingToken,
        within: Duration,
    ) -> Result<Option<Note>, BackendError> {
        self.bridge.block_on(self.inner.revoked_by(name, highest, within))
    }
}

#[cfg(test)]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};
    use std::sync::mpsc::{Receiver, channel};
    use std::time::Instant;

    use async_trait::async_trait;
    use lock_core::{
        Certainty, Durability, Effect, ErrorKind, Fairness, Listeners, NameKind, Operation, Queueing, StoreEvent,
        Terms, TokenRange, Ttl, Waiting, Width,
    };
    use tokio::time::{sleep, timeout};

    use super::*;

    /// How long something may take that must happen.
    const PATIENCE: Duration = Duration::from_secs(20);

    /// A store that works by tasks and timers, and tells its listeners of each claim.
    #[derive(Debug, Default)]
    struct Store {
        is_keeper: bool,
        listeners: Arc<Listeners>,
    }

    impl Backend for Store {
        fn capabilities(&self) -> Capabilities {
            Capabilities::new("store", Waiting::Queue, Durability::Process)
        }

        fn listen(&self, sink: EventSink) {
            let listeners = Arc::clone(&self.listeners);
            tokio::spawn(async move { listeners.add(sink) });
        }

        fn holds(&self, lease: &Lease) {
            let (listeners, name) = (Arc::clone(&self.listeners), lease.name.clone());
            tokio::spawn(async move { listeners.deliver(&StoreEvent::Revoked { name }) });
        }

        fn warnings(&self) -> Vec<String> {
            if self.is_keeper { vec!["the keeper's".into()] } else { Vec::new() }
        }
    }

    #[async_trait]
    impl AsyncBackend for Store {
        fn for_keeper(self: Arc<Self>) -> Arc<dyn AsyncBackend> {
            let listeners = Arc::clone(&self.listeners);
            tokio::spawn(async move { listeners.deliver(&StoreEvent::RecheckHolds) });
            Arc::new(Self { is_keeper: true, ..Self::default() })
        }

        async fn acquire(&self, claim: &Claim, _within: Duration) -> Result<Answer, BackendError> {
            assert_ne!(claim.name.as_str(), "broken", "it breaks");
            sleep(Duration::from_millis(1)).await;
            let (listeners, name) = (Arc::clone(&self.listeners), claim.name.clone());
            tokio::spawn(async move { listeners.deliver(&StoreEvent::Wanted { name }) }).await.unwrap();
            let (lease, valid_for, wanted) = (lease_of(claim), Duration::from_secs(1), false);
            Ok(Answer::Granted { lease, valid_for, wanted })
        }

        async fn renew(&self, _leases: &[Lease], within: Duration) -> Result<Vec<Renewed>, BackendError> {
            let no_answer = timeout(within, std::future::pending()).await;
            no_answer.map_err(|_| self.error(Operation::Renew, ErrorKind::Timeout))
        }

        async fn release(&self, _request: &ReleaseRequest, _within: Duration) -> Result<Released, BackendError> {
            Err(self.error(Operation::Release, ErrorKind::Unreachable))
        }

        async fn fence(&self, _lease: &Lease, _within: Duration) -> Result<Fenced, BackendError> {
            Ok(Fenced::Acknowledged)
        }
    }

    impl Store {
        fn error(&self, operation: Operation, kind: ErrorKind) -> BackendError {
            BackendError::new("store", operation, kind, Effect::None, format!("{:?}", self.warnings()))
        }
    }

    fn claim(name: &str) -> Claim {
        Claim {
            name: name.parse().unwrap(),
            owner: crate::new_owner().unwrap(),
            terms: Terms::exclusive(Ttl::DEFAULT),
            width: Width::ONE,
            floor: None,
            note: crate::note("testing").unwrap(),
            queueing: Queueing::Unwanted,
            replaces: None,
            fairness: Fairness::Fair,
            kind: NameKind::Lock,
        }
    }

    fn lease_of(claim: &Claim) -> Lease {
        claim.lease(TokenRange::above(7, Width::ONE).unwrap())
    }

    fn store() -> Arc<Bridged<Store>> {
        Arc::new(Bridged::new(Arc::default(), Bridge::start().unwrap()))
    }

    fn events(store: &Bridged<Store>) -> Receiver<StoreEvent> {
        let (told, events) = channel();
        store.listen(EventSink::new(move |event| _ = told.send(event)));
        // What follows may be in flight before the listener is added.
        let added = store.bridge().handle().spawn(async {});
        store.bridge().block_on(added).unwrap();
        events
    }

    #[test]
    fn calls_are_answered_and_events_arrive() {
        let store = store();
        let (events, claim) = (events(&store), claim("a"));
        let Ok(Answer::Granted { lease, .. }) = store.acquire(&claim, PATIENCE) else { panic!("not granted") };
        assert_eq!(lease, lease_of(&claim));
        assert_eq!(events.recv_timeout(PATIENCE), Ok(StoreEvent::Wanted { name: lease.name.clone() }));
        store.holds(&lease);
        assert_eq!(events.recv_timeout(PATIENCE), Ok(StoreEvent::Revoked { name: lease.name.clone() }));
        assert_eq!(store.fence(&lease, PATIENCE), Ok(Fenced::Acknowledged));
    }

    #[test]
    fn the_keeper_has_the_inner_keeper_on_the_same_bridge() {
        let store = store();
        let (events, claim) = (events(&store), claim("a"));
        let keeper = Arc::clone(&store).for_keeper();
        assert_eq!(events.recv_timeout(PATIENCE), Ok(StoreEvent::RecheckHolds));
        drop(store);
        let error = keeper.release(&claim.release(Certainty::Answered), PATIENCE).unwrap_err();
        assert!(error.to_string().contains("the keeper's"), "{error}");
    }

    #[test]
    fn a_store_that_never_answers_keeps_the_time_by_the_timers_of_the_bridge() {
        let (store, begun) = (store(), Instant::now());
        let (within, lease) = (Duration::from_millis(50), lease_of(&claim("a")));
        let error = store.renew(&[lease], within).unwrap_err();
        assert_eq!((error.kind(), error.effect()), (ErrorKind::Timeout, Effect::Unknown));
        assert!((within..PATIENCE).contains(&begun.elapsed()), "{:?}", begun.elapsed());
    }

    #[test]
    fn a_panic_of_the_store_reaches_the_caller() {
        let store = store();
        let panic = catch_unwind(AssertUnwindSafe(|| store.acquire(&claim("broken"), PATIENCE))).unwrap_err();
        assert!(panic.downcast_ref::<String>().is_some_and(|told| told.contains("it breaks")));
        assert!(store.acquire(&claim("a"), PATIENCE).is_ok(), "the next call is not affected");
    }
}
