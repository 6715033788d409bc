//! The blocking face: locks for plain threads, without a runtime anywhere.
//!
//! A thin shell round the machine of `lock-core`: it runs actions, sleeps and wakes. Every rule about leases is in the
//! machine. `lock-async` is its twin for tokio, with the same files in the same order.
//!
//! - [`Client`] (`client`): one per store; makes [`Mutex`]es.
//! - [`Mutex`] (`mutex`): a name and how to hold it; `acquire`, `try_acquire`, `run_while_held`.
//! - [`Guard`] (`guard`): proof of holding, with the fencing token; `check`, `verify`, `lost`, `release`.
//! - `cell`: a station with the waiters and holders of this process (`seats`); the threads that wait run its claims, and
//!   those that leave their releases. `driver`: runs one action, and what is left by threads of its own. `keeper`: renews, on a thread of its own. `sync`: what all of them meet by.

mod cell;
mod client;
mod driver;
mod guard;
mod keeper;
mod mutex;
mod seats;
mod sync;

pub use client::{Builder, Client};
pub use guard::Guard;
pub use mutex::Mutex;
