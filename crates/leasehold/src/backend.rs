//! What the author of a backend needs: the traits, the four verbs with their answers, and what a store can say about itself.
//!
//! A backend implements [`Backend`], whose documentation is the contract, and [`AsyncBackend`] (with the `async-trait`
//! crate), [`BlockingBackend`] or both. Pass it to a client: `Client::new(Arc::new(backend))`.
//!
//! - A [`Claim`] gets an [`Answer`]; a [`Lease`] is renewed, fenced and ended by a [`ReleaseRequest`].
//! - [`Capabilities`] say what the store can do. The client relies on no more than that.
//! - [`Event`]s are what the store sends by itself, such as a grant to a waiter in its queue. [`Listeners`] passes them
//!   on.
//! - [`AsyncInspect`] and [`BlockingInspect`] are the optional interface for operators, [`AsyncLatch`] and [`BlockingLatch`] are for
//!   stores with latches, and [`AsyncLimit`] and [`BlockingLimit`] for those that can change the limit of a semaphore.
//! - [`node`] is for a store that can be one of the nodes of a quorum.
//!
//! The crate `lock-conformance` has a suite of tests for every backend, and `lock-memory` is the backend to read first.
//!
//! ```
//! # #[cfg(all(feature = "blocking", feature = "memory"))]
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! use std::sync::Arc;
//! use std::sync::atomic::{AtomicU64, Ordering};
//! use std::time::Duration;
//!
//! use leasehold::backend::{
//!     Answer, Backend, BackendError, BlockingBackend, Capabilities, Claim, EventSink, Fenced, Lease, ReleaseRequest, Released,
//!     Renewed,
//! };
//! use leasehold::memory::blocking::Memory;
//!
//! /// Counts requests for locks.
//! #[derive(Debug)]
//! struct Counted {
//!     store: Memory,
//!     claims: AtomicU64,
//! }
//!
//! impl Backend for Counted {
//!     fn capabilities(&self) -> Capabilities {
//!         self.store.capabilities()
//!     }
//!
//!     fn listen(&self, sink: EventSink) {
//!         self.store.listen(sink);
//!     }
//! }
//!
//! impl BlockingBackend for Counted {
//!     fn for_keeper(self: Arc<Self>) -> Arc<dyn BlockingBackend> {
//!         self
//!     }
//!
//!     fn acquire(&self, claim: &Claim, within: Duration) -> Result<Answer, BackendError> {
//!         self.claims.fetch_add(1, Ordering::Relaxed);
//!         self.store.acquire(claim, within)
//!     }
//!
//!     fn renew(&self, leases: &[Lease], within: Duration) -> Result<Vec<Renewed>, BackendError> {
//!         self.store.renew(leases, within)
//!     }
//!
//!     fn release(&self, request: &ReleaseRequest, within: Duration) -> Result<Released, BackendError> {
//!         self.store.release(request, within)
//!     }
//!
//!     fn fence(&self, lease: &Lease, within: Duration) -> Result<Fenced, BackendError> {
//!         self.store.fence(lease, within)
//!     }
//! }
//!
//! let backend = Arc::new(Counted { store: Memory::new(), claims: AtomicU64::new(0) });
//! let locks = leasehold::blocking::Client::new(backend.clone())?;
//! locks.mutex("job").acquire()?.release()?;
//! assert_eq!(backend.claims.load(Ordering::Relaxed), 1);
//! # Ok(())
//! # }
//! # #[cfg(not(all(feature = "blocking", feature = "memory")))]
//! # fn main() {}
//! ```

pub use lock_core::{
    Ability, Answer, AsyncBackend, AsyncInspect, AsyncLatch, AsyncLimit, Backend, BackendError, BlockingBackend,
    BlockingInspect, BlockingLatch, BlockingLimit, Capabilities, Certainty, Claim, Counter, Durability, Effect,
    ErrorKind, Event, EventSink, Fenced, FencingToken, Heard, Holder, Isolation, Lease, Limit, Listener, Listeners,
    Location, LockName, Mode, ModeKind, Moment, NameKind, Note, Operation, Owner, Prefix, Queueing, ReleaseRequest,
    Released, Renewed, RequestOrder, Slots, Stamped, Terms, TokenRange, Ttl, Waiting, Width, inspect, latch, limit,
    node,
};
