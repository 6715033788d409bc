//! The tokio face: locks for async code.
//!
//! A thin shell round the machine of `lock-core`: it runs actions, sleeps and wakes. Every rule about leases is in the
//! machine. `lock-blocking` is its twin for plain threads, with the same files in the same order.
//!
//! - [`Client`] (`client`): one per store; makes [`Mutex`]es.
//! - [`Mutex`] (`mutex`): a name and how to hold it; `acquire`, `try_acquire`, `run_while_held`.
//! - [`Guard`] (`guard`): proof of holding, with the fencing token; `check`, `verify`, `lost`, `release`.
//! - `cell`: a station with the waiters and holders of this process. `driver`: runs actions, in order. `keeper`:
//!   renews, on a thread of its own.

mod cell;
mod client;
mod driver;
mod eras;
mod guard;
mod keeper;
mod mutex;

pub use client::{Builder, Client};
pub use guard::Guard;
pub use mutex::Mutex;
