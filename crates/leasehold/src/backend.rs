//! The API for authors of backends: the traits, the verbs with their answers, and the capabilities of a store.
//!
//! A backend implements [`Backend`], whose documentation is the contract, and [`AsyncBackend`] (with the `async-trait`
//! crate), [`BlockingBackend`] or both. Pass it to a client: `Client::new(Arc::new(backend))`.
//!
//! - A [`Claim`] gets an [`Answer`]; a [`Lease`] is renewed, fenced and ended by a [`ReleaseRequest`].
//! - [`Capabilities`] say what the store can do. The client relies on no more than that.
//! - [`StoreEvent`]s are what the store sends by itself, such as a grant to a waiter in its queue. [`Listeners`] passes them
//!   on.
//! - Latches, limits and inspection are optional methods of the same traits. A store that has them says so by an [`Ability`].
//! - [`node`] is for a store that can be one of the nodes of a quorum.
//! - [`Immediate`] is the async form of a store that never waits.
//!
//! The crate `lock-rules` decides for a store that keeps leases and places as rows, and `lock-conformance` has a suite of tests for
//! every backend. `examples/backend` in the repository is a store that uses the first and passes the second, and the page *Write a
//! backend* of the book explains it.
//!
//! # A backend around another one
//!
//! A [`Layer`] passes every call on to the backend that it wraps, and overrides what it changes: it has the latches, limits and
//! listings of that backend, and the keeper renews through it as well.
//!
//! ```
//! # #[cfg(all(feature = "blocking", feature = "memory"))]
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! use std::sync::Arc;
//! use std::sync::atomic::{AtomicU64, Ordering};
//! use std::time::Duration;
//!
//! use leasehold::backend::{Answer, BackendError, BlockingBackend, BlockingLayer, Claim, Layer};
//! use leasehold::inspect::Query;
//! use leasehold::memory::blocking::Memory;
//!
//! /// Counts requests for locks.
//! #[derive(Debug)]
//! struct Counted {
//!     store: Arc<dyn BlockingBackend>,
//!     claims: Arc<AtomicU64>,
//! }
//!
//! impl Layer for Counted {
//!     type Inner = dyn BlockingBackend;
//!
//!     fn inner(&self) -> &Arc<dyn BlockingBackend> {
//!         &self.store
//!     }
//! }
//!
//! impl BlockingLayer for Counted {
//!     fn over(&self, store: Arc<dyn BlockingBackend>) -> Arc<dyn BlockingBackend> {
//!         Arc::new(Self { store, claims: Arc::clone(&self.claims) })
//!     }
//!
//!     fn acquire(&self, claim: &Claim, within: Duration) -> Result<Answer, BackendError> {
//!         self.claims.fetch_add(1, Ordering::Relaxed);
//!         self.store.acquire(claim, within)
//!     }
//! }
//!
//! let claims = Arc::new(AtomicU64::new(0));
//! let backend = Counted { store: Arc::new(Memory::new()), claims: Arc::clone(&claims) };
//! let locks = leasehold::blocking::Client::new(Arc::new(backend))?;
//! let guard = locks.mutex("job").acquire()?;
//! assert_eq!(claims.load(Ordering::Relaxed), 1);
//!
//! let inspect = locks.inspect().ok_or("the store cannot list its locks")?;
//! assert_eq!(inspect.list(&Query::all(), Duration::from_secs(1))?.entries.len(), 1);
//! guard.release()?;
//!
//! let ready = locks.latch("ready");
//! ready.expect(1)?;
//! ready.arrive()?;
//! ready.wait()?;
//!
//! let workers = locks.semaphore("workers", 2);
//! workers.set_limit(3)?;
//! assert_eq!(workers.available_permits()?, 3);
//! # Ok(())
//! # }
//! # #[cfg(not(all(feature = "blocking", feature = "memory")))]
//! # fn main() {}
//! ```

pub use lock_core::{
    Ability, Answer, AsyncBackend, AsyncLayer, Backend, BackendError, BlockingBackend, BlockingLayer, Capabilities,
    Certainty, Claim, Counter, Delivery, Durability, Effect, EntriesEnd, ErrorKind, EventSink, Fenced, FencingToken,
    Holder, Immediate, Isolation, Layer, Lease, Limit, Listener, Listeners, Location, LockName, Mode, ModeKind, Moment,
    NameKind, Note, Operation, Owner, Prefix, Queueing, Reach, ReleaseRequest, Released, Renewed, RequestOrder, Slots,
    Stamped, StoreEvent, Terms, TokenRange, Ttl, Waiting, Width, inspect, latch, limit, node,
};
