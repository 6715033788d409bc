//! The blocking facade: locks for plain threads, without a runtime anywhere.
//!
//! A thin shell around the machine of `lock-core`: it runs actions, sleeps and wakes. Every rule about leases is in the
//! machine, and what is neither async nor blocking is in `lock-host`. `lock-async` is the same for tokio.
//!
//! - [`Client`] (`client`, and `opening`): one per store; makes [`Mutex`]es.
//! - [`Mutex`] (`mutex`): a name and how to hold it; `acquire`, and `run_while_held` for work. [`RwLock`] (`rw_lock`), [`Semaphore`]
//!   (`semaphore`, and requests about its `limit`).
//! - [`AnyLock`] (`any`): a lock whose kind is decided at run time.
//! - [`Latch`] (`latch`): waits until a number of processes has arrived.
//! - [`Guard`] (`guard`): proof of holding, with the fencing token; `check`, `verify`, `release`. `change`: how it becomes another one.
//! - [`LossWatch`] (`loss`): sees the end of a hold without keeping it. `lost`: waiting for that.
//! - [`SharedGuard`] (`shared`): a guard with clones, the last of which releases the lock.
//! - `threads`: the threads that wait or hold at a station, and which runs what: threads that wait run claims, and
//!   threads that leave run their own release. `driver`: runs actions, with a `pool` of threads for what is left.
//!   `keeper`: renews, on a thread of its own. `closing`: runs what is left when a client closes. `wake_signal`: wakes the
//!   waiter of a latch. `sync`: the primitives that threads share.
//!
//! Files that are symbolic links are those of `lock-async`, where `async` and `.await` stand (`lock-forms`).

mod acquire;
mod any;
mod change;
mod client;
mod closing;
mod driver;
mod guard;
mod keeper;
mod latch;
mod limit;
mod loss;
mod lost;
mod mutex;
mod opening;
mod pool;
mod run_while_held;
mod rw_lock;
mod semaphore;
mod shared;
mod sync;
mod threads;
mod wake_signal;

use lock_forms::blocking as both;

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
