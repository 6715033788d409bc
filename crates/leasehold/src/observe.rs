//! What happens to the locks of a client, for logs and metrics.
//!
//! With the feature `tracing`, every client emits events of the crate `tracing` with the target `leasehold`, without
//! any code. Each has the field `backend`, and those of a lock have `lock`. None contains a secret.
//!
//! | event | level | when | fields |
//! |---|---|---|---|
//! | `acquired` | debug | a waiter got the lock | `token`, `waited_ms`, `position` if the store queued it |
//! | `not acquired` | debug; warn if the store failed | a waiter did not get the lock | `waited_ms`, `outcome`, `holder` or `error` as far as they are known |
//! | `waiting long` | warn | a waiter has waited for 10 s, 20 s, 40 s and so on | `waited_ms`, `holder` and `error` as far as they are known |
//! | `renewed late` | warn | a renewal was confirmed when less than half of the lease was left | `token`, `late_ms`, `remaining_ms` |
//! | `lost` | error | a hold was lost | `token`, `held_ms`, `reason` |
//! | `released` | debug | the lock was released, or passed on to a waiter of the same client | `token`, `held_ms` |
//! | `release pending` | warn | the store did not confirm a release; it is repeated in the background | `token`, `error` |
//! | `release given up` | info | a pending release is not repeated any more: its lease has expired, or will expire with its ttl | `token`, `pending_ms` |
//! | `degraded` | warn | the store was unreachable, and [`Degrading`](crate::kit::Degrading) fell back to a process-local lock | `waited_ms`, `error` |
//! | `request failed` | debug | a request to acquire, renew or release the lock failed, or was not answered in time | `error` |
//! | `store unavailable` | warn | the store did not answer in time, or cannot serve; once for the client | `error` |
//! | `store available` | info | the store answers again | `after_ms` |
//!
//! Each call that acquires a lock is a span `acquire` (debug) with the fields `lock`, `backend`, `outcome` and, once the lock
//! is held, `token`. Its parent is the span of the caller, so a trace shows how long a request waited for its locks.
//!
//! `outcome` is `acquired`, `busy`, `timed out`, `cancelled`, `closed` or `failed`. If the call's future is dropped, the span
//! has no `outcome`, and the event has the outcome `dropped`. A call with an invalid name or option has neither.
//!
//! `acquired`, `not acquired` and `waiting long` are emitted inside that span, whichever thread emits them. The other events
//! have no span of the client; the fields `lock` and `token` connect them.
//!
//! With the feature `metrics`, every client records metrics of the crate `metrics`. The page `metrics.md` of the book has their names, a
//! dashboard and alert rules.
//!
//! For anything else, add an [`Observer`], which gets the same events. The threads that run the client call it, so it must
//! return quickly; it may use the client, but must not wait for a lock.
//!
//! ```
//! # #[cfg(all(feature = "async", feature = "memory"))]
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! use std::sync::Arc;
//! use std::sync::atomic::{AtomicU64, Ordering};
//! use leasehold::BackendConfig;
//! use leasehold::observe::{Observer, Event};
//!
//! #[derive(Default)]
//! struct Counters {
//!     acquired: AtomicU64,
//!     waited_ms: AtomicU64,
//!     lost: AtomicU64,
//! }
//!
//! impl Observer for Counters {
//!     fn observe(&self, event: &Event) {
//!         match event {
//!             Event::Acquired { waited, .. } => {
//!                 self.acquired.fetch_add(1, Ordering::Relaxed);
//!                 self.waited_ms.fetch_add(waited.as_millis() as u64, Ordering::Relaxed);
//!             }
//!             Event::Lost { .. } => _ = self.lost.fetch_add(1, Ordering::Relaxed),
//!             _ => {}
//!         }
//!     }
//! }
//!
//! let counters = Arc::new(Counters::default());
//! let config = BackendConfig::from_url("memory:")?; // or a configuration that was read
//! let locks = leasehold::builder(&config).await?.observer(counters.clone()).build()?;
//! locks.mutex("invoice:42").acquire().await?.release().await?;
//! assert_eq!(counters.acquired.load(Ordering::Relaxed), 1);
//! # Ok(())
//! # }
//! # #[cfg(not(all(feature = "async", feature = "memory")))]
//! # fn main() {}
//! ```

pub use lock_core::Lateness;
pub use lock_host::{Event, Level, Observer, Outcome, SharedObserver};
