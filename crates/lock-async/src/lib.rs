//! The tokio facade: locks for async code.
//!
//! A thin shell around the machine of `lock-core`: it runs actions, sleeps and wakes. Every rule about leases is in the
//! machine, and what is neither async nor blocking is in `lock-host`. `lock-blocking` is the same for plain threads.
//!
//! - [`Client`] (`client`): one per store; makes [`Mutex`]es.
//! - [`Mutex`] (`mutex`): a name and how to hold it; `acquire`, `try_acquire`, `run_while_held` and variants of them.
//! - [`AnyLock`] (`any`): a lock whose kind is decided at run time.
//! - [`Latch`] (`latch`): waits until a number of processes has arrived.
//! - [`Guard`] (`guard`): proof of holding, with the fencing token; `check`, `verify`, `lost`, `release`.
//! - [`LossWatch`] (`loss`): waits for the loss of a hold without keeping it.
//! - [`SharedGuard`] (`shared`): a guard with clones, the last of which releases the lock.
//! - `tasks`: the tasks that wait or hold at a station. `driver`: has actions run, in order, by the loops of `work`.
//!   `keeper`: renews, on a thread of its own.

mod any;
mod client;
mod driver;
mod guard;
mod keeper;
mod latch;
mod lent;
mod loss;
mod mutex;
mod shared;
mod tasks;
mod work;

pub use any::{AnyGuard, AnyLock};
pub use client::{Builder, Client};
pub use guard::{Guard, PermitGuard, ReadGuard};
pub use latch::Latch;
pub use lock_host::CancelToken;
pub use loss::LossWatch;
pub use mutex::{Mutex, NamedLock, ReadLock, RwLock, Semaphore};
pub use shared::SharedGuard;
pub use work::runtime;
