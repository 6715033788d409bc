//! A layer that overrides nothing has all that the backend has which it wraps.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use lock_core::inspect::{Query, Revoked};
use lock_core::{
    AsyncBackend, AsyncLayer, Backend, BlockingBackend, BlockingLayer, Claim, Fenced, Layer, Lease, Limit, Mode, Note,
    Terms, Ttl, latch, limit,
};
use lock_memory::MemoryStore;

use crate::support::{TTL, claim, granted, name};

/// Passes everything on.
#[derive(Debug)]
struct Bare<B: ?Sized>(Arc<B>);

impl<B: Backend + ?Sized> Layer for Bare<B> {
    type Inner = B;

    fn inner(&self) -> &Arc<B> {
        &self.0
    }
}

impl<B: AsyncBackend + ?Sized> AsyncLayer for Bare<B> {
    fn over(&self, inner: Arc<dyn AsyncBackend>) -> Arc<dyn AsyncBackend> {
        Arc::new(Bare(inner))
    }
}

impl<B: BlockingBackend + ?Sized> BlockingLayer for Bare<B> {
    fn over(&self, inner: Arc<dyn BlockingBackend>) -> Arc<dyn BlockingBackend> {
        Arc::new(Bare(inner))
    }
}

/// Warns, and counts the calls that have no answer: flushes, and leases that last.
#[derive(Debug)]
struct Counted<B: ?Sized> {
    calls: Arc<AtomicU32>,
    store: Arc<B>,
}

impl<B: Backend + ?Sized> Layer for Counted<B> {
    type Inner = B;

    fn inner(&self) -> &Arc<B> {
        &self.store
    }

    fn holds(&self, _lease: &Lease) {
        self.calls.fetch_add(1, Ordering::SeqCst);
    }

    fn warnings(&self) -> Vec<String> {
        vec!["it counts".to_owned()]
    }
}

#[async_trait]
impl<B: AsyncBackend + ?Sized> AsyncLayer for Counted<B> {
    fn over(&self, store: Arc<dyn AsyncBackend>) -> Arc<dyn AsyncBackend> {
        Arc::new(Counted { calls: Arc::clone(&self.calls), store })
    }

    async fn flush(&self, _within: Duration) {
        self.calls.fetch_add(1, Ordering::SeqCst);
    }
}

impl<B: BlockingBackend + ?Sized> BlockingLayer for Counted<B> {
    fn over(&self, store: Arc<dyn BlockingBackend>) -> Arc<dyn BlockingBackend> {
        Arc::new(Counted { calls: Arc::clone(&self.calls), store })
    }

    fn flush(&self, _within: Duration) {
        self.calls.fetch_add(1, Ordering::SeqCst);
    }
}

fn layered<B: Backend>(store: B) -> (Arc<Bare<Counted<B>>>, Arc<AtomicU32>) {
    let calls = Arc::new(AtomicU32::new(0));
    let counted = Counted { calls: Arc::clone(&calls), store: Arc::new(store) };
    (Arc::new(Bare(Arc::new(counted))), calls)
}

fn permits() -> Claim {
    let mode = Mode::permits(1, 2).unwrap();
    Claim { name: name("semaphore"), terms: Terms { mode, ..claim(9).terms }, ..claim(9) }
}

fn look() -> limit::Request {
    limit::Request { name: name("semaphore"), known: Limit::new(2).unwrap(), act: limit::Act::Look }
}

fn arrival() -> latch::Request {
    let act = latch::Act::Arrive { id: "one".parse().unwrap(), call: 1, ttl: Ttl::new(TTL).unwrap() };
    latch::Request { name: name("latch"), act }
}

/// What a store says of itself, also through layers.
fn says_the_same(layered: &impl Backend, store: &impl Backend) {
    assert_eq!(layered.capabilities(), store.capabilities());
    assert_eq!(layered.locate(&name("a")), store.locate(&name("a")));
    assert!(store.locate(&name("a")).is_some());
    assert_eq!(layered.warnings(), ["it counts"]);
}

/// What a client does at a store, with `.await` for tokio.
macro_rules! finds_all {
    ($layered:ident $($await:tt)*) => {
        let (lease, _) = granted($layered.acquire(&claim(1), TTL)$($await)*.unwrap());
        assert_eq!($layered.renew(std::slice::from_ref(&lease), TTL)$($await)*.unwrap().len(), 1);
        $layered.holds(&lease);
        assert_eq!($layered.fence(&lease, TTL)$($await)*.unwrap(), Fenced::Acknowledged);
        assert_eq!($layered.latch(&arrival(), TTL)$($await)*.unwrap().state.unwrap().arrived, 1);
        granted($layered.acquire(&permits(), TTL)$($await)*.unwrap());
        assert_eq!($layered.limit(&look(), TTL)$($await)*.unwrap().used, 1);
        assert_eq!($layered.list(&Query::all(), TTL)$($await)*.unwrap().entries.len(), 2);
        assert!($layered.holder(&lease.name, TTL)$($await)*.unwrap().is_some());
        let (token, by) = (lease.tokens.high(), Note::new("console", 1, "it hangs").unwrap());
        assert_eq!($layered.revoke(&lease.name, token, &by, TTL)$($await)*.unwrap(), Revoked::Revoked);
        assert_eq!($layered.revoked_by(&lease.name, token, TTL)$($await)*.unwrap(), Some(by));
        let keeper = $layered.for_keeper();
        assert_eq!(keeper.warnings(), ["it counts"]);
        keeper.flush(TTL)$($await)*;
    };
}

#[tokio::test]
async fn an_async_layer_loses_nothing() {
    let store = MemoryStore::default();
    let (layered, calls) = layered(store.nonblocking());
    says_the_same(&*layered, &store.nonblocking());
    let layered: Arc<dyn AsyncBackend> = layered;
    finds_all!(layered.await);
    assert_eq!(calls.load(Ordering::SeqCst), 2);
}

#[test]
fn a_blocking_layer_loses_nothing() {
    let store = MemoryStore::default();
    let (layered, calls) = layered(store.blocking());
    says_the_same(&*layered, &store.blocking());
    let layered: Arc<dyn BlockingBackend> = layered;
    finds_all!(layered);
    assert_eq!(calls.load(Ordering::SeqCst), 2);
}
