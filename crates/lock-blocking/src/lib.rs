//! The blocking facade: locks for plain threads, without a runtime anywhere.
//!
//! A thin shell around the machine of `lock-core`: it runs actions, sleeps and wakes. Every rule about leases is in the
//! machine, and what is neither async nor blocking is in `lock-host`. `lock-async` is the same for tokio.
//!
//! - [`Client`] (`client`): one per store; makes [`Mutex`]es.
//! - [`Mutex`] (`mutex`): a name and how to hold it; `acquire`, `try_acquire`, `run_while_held` and variants of them.
//! - [`Guard`] (`guard`): proof of holding, with the fencing token; `check`, `verify`, `lost`, `release`.
//! - `threads`: who waits or holds at a station, and who runs what: the threads that wait run claims, and those that
//!   leave their own release. `driver`: runs actions, with a pool of threads for what is left. `keeper`: renews, on a
//!   thread of its own. `closing`: what a client that closes has left. `sync`: the primitives that threads share.

mod client;
mod closing;
mod driver;
mod guard;
mod keeper;
mod mutex;
mod sync;
mod threads;

pub use client::{Builder, Client};
pub use guard::Guard;
pub use lock_host::CancelToken;
pub use mutex::Mutex;
