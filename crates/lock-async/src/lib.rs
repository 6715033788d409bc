//! The tokio facade: locks for async code.
//!
//! A thin shell around the machine of `lock-core`: it runs actions, sleeps and wakes. Every rule about leases is in the
//! machine, and what is neither async nor blocking is in `lock-host`. `lock-blocking` is the same for plain threads.
//!
//! - [`Client`] (`client`, and `opening`): one per store; makes [`Mutex`]es.
//! - [`Mutex`] (`mutex`): a name and how to hold it; `acquire`, and `run_while_held` for work. [`RwLock`] (`rw_lock`), [`Semaphore`]
//!   (`semaphore`, and requests about its `limit`).
//! - [`AnyLock`] (`any`): a lock whose kind is decided at run time.
//! - [`Latch`] (`latch`): waits until a number of processes has arrived.
//! - [`Guard`] (`guard`): proof of holding, with the fencing token; `check`, `verify`, `release`. `change`: how it becomes another one.
//! - [`LossWatch`] (`loss`): sees the end of a hold without keeping it. `lost`: waiting for that.
//! - [`SharedGuard`] (`shared`): a guard with clones, the last of which releases the lock.
//! - `tasks`: the tasks that wait or hold at a station. `driver`: has actions run, in order, by the loops of `work`.
//!   `inline_requests`: requests that a task polls itself. `flush_epoch`: what a flush waits for. `keeper`: renews, on a thread of its own.
//!   `wake_signal`: wakes the waiter of a latch.
//!
//! `lock-blocking` has the same files for threads, as symbolic links: all that is neither `opening`, `lost`, nor in the last item.

mod acquire;
mod any;
mod change;
mod client;
mod driver;
mod flush_epoch;
mod guard;
mod inline_requests;
mod keeper;
mod latch;
mod limit;
mod loss;
mod lost;
mod mutex;
mod opening;
mod run_while_held;
mod rw_lock;
mod semaphore;
mod shared;
mod tasks;
mod wake_signal;
mod work;

use lock_forms::nonblocking as both;

pub use any::{AnyGuard, AnyLock};
pub use client::Client;
pub use guard::{Guard, PermitGuard, ReadGuard};
pub use latch::Latch;
pub use lock_host::CancelToken;
pub use loss::LossWatch;
pub use mutex::{Mutex, NamedLock, ReadLock, Semaphore};
pub use opening::Builder;
pub use rw_lock::RwLock;
pub use shared::SharedGuard;
pub use work::runtime;
