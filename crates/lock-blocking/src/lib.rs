//! The blocking facade: locks for plain threads, without a runtime anywhere.
//!
//! A thin shell around the machine of `lock-core`: it runs actions, sleeps and wakes. Every rule about leases is in the
//! machine, and what is neither async nor blocking is in `lock-host`. `lock-async` is the same for tokio.
//!
//! - [`Client`] (`client`): one per store; makes [`Mutex`]es.
//! - [`Mutex`] (`mutex`): a name and how to hold it; `acquire`, `try_acquire`, `run_while_held` and variants of them.
//! - [`AnyLock`] (`any`): a lock whose kind is decided at run time.
//! - [`Latch`] (`latch`): waits until a number of processes has arrived.
//! - [`Guard`] (`guard`): proof of holding, with the fencing token; `check`, `verify`, `lost`, `release`.
//! - [`LossWatch`] (`loss`): waits for the loss of a hold without keeping it.
//! - [`SharedGuard`] (`shared`): a guard with clones, the last of which releases the lock.
//! - `threads`: the threads that wait or hold at a station, and which runs what: threads that wait run claims, and
//!   threads that leave run their own release. `driver`: runs actions, with a pool of threads for what is left.
//!   `keeper`: renews, on a thread of its own. `closing`: runs what is left when a client closes. `sync`: the
//!   primitives that threads share.

mod any;
mod client;
mod closing;
mod driver;
mod guard;
mod keeper;
mod latch;
mod loss;
mod mutex;
mod shared;
mod sync;
mod threads;

pub use any::{AnyGuard, AnyLock};
pub use client::{Builder, Client};
pub use guard::{Guard, PermitGuard, ReadGuard};
pub use latch::Latch;
pub use lock_host::CancelToken;
pub use loss::LossWatch;
pub use mutex::{Mutex, NamedLock, ReadLock, RwLock, Semaphore};
pub use shared::SharedGuard;
