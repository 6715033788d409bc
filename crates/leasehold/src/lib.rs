//! Distributed locks with leases, loss signals and fencing tokens.
//!
//! A lock that other processes respect is a *lease*: it ends by itself when its holder dies. So a holder has to know
//! until when it may rely on it, has to be told when it is lost, and hands a *fencing token* to what the lock protects,
//! so that a write that comes too late is refused there. All three are the default here.
//!
//! ```
//! # #[cfg(all(feature = "async", feature = "memory"))]
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! use std::time::Duration;
//!
//! let locks = leasehold::connect("memory:").await?; // or sqlite:locks.db, redis://127.0.0.1
//! let guard = locks.mutex("invoice:42").ttl(Duration::from_secs(30)).wait(Duration::from_secs(5)).acquire().await?;
//!
//! let token = guard.fencing_token(); // goes with each write; the resource refuses lower ones
//! tokio::select! {
//!     done = write(token) => done?,
//!     lost = guard.lost() => return Err(lost.into()),
//! }
//! guard.release().await?;
//! # async fn write(_: leasehold::FencingToken) -> Result<(), std::io::Error> { Ok(()) }
//! # Ok(())
//! # }
//! # #[cfg(not(all(feature = "async", feature = "memory")))]
//! # fn main() {}
//! ```
//!
//! The same for plain threads:
//!
//! ```
//! # #[cfg(all(feature = "blocking", feature = "memory"))]
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let locks = leasehold::blocking::connect("memory:")?;
//! let Some(guard) = locks.mutex("import").try_acquire()? else { return Ok(()) }; // somebody else is at it
//! for batch in 1..=3 {
//!     guard.check()?; // local and cheap
//!     load(batch, guard.fencing_token());
//! }
//! guard.release()?;
//! # fn load(_: u32, _: leasehold::FencingToken) {}
//! # Ok(())
//! # }
//! # #[cfg(not(all(feature = "blocking", feature = "memory")))]
//! # fn main() {}
//! ```
//!
//! # Testing your code
//!
//! A test needs no server and does not sleep: the store in memory runs on a clock that the test moves.
//!
//! ```
//! # #[cfg(all(feature = "async", feature = "memory"))]
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! use std::{sync::Arc, time::Duration};
//!
//! let clock = leasehold::ManualClock::new();
//! let store = leasehold::memory::MemoryStore::new(Arc::new(clock.clone()));
//! let client = || leasehold::Client::builder(Arc::new(store.nonblocking())).clock(Arc::new(clock.clone())).build();
//! let (paused, other) = (client()?, client()?);
//!
//! let guard = paused.mutex("invoice:42").max_hold(Duration::from_secs(10)).acquire().await?;
//! clock.advance(Duration::from_secs(10));
//! assert!(guard.check().is_err());
//! let later = other.mutex("invoice:42").acquire().await?;
//! assert!(later.fencing_token() > guard.fencing_token());
//! # Ok(())
//! # }
//! # #[cfg(not(all(feature = "async", feature = "memory")))]
//! # fn main() {}
//! ```
//!
//! # Configuration
//!
//! [`BackendConfig`] says which store, [`LockOptions`] how to hold a lock; both are read by serde from any format, and
//! refuse fields that they do not know. `connect_to` takes the one, `mutex(name).options(...)` the other:
//!
//! ```toml
//! store = { backend = "redis", url = "redis://db1", prefix = "shop" }
//! lock = { ttl = "30s", wait = "5s", max_hold = "10m", why = "nightly report" }
//! ```
//!
//! # Features
//!
//! `async` (default) and `blocking` are the faces; `sqlite` (default), `redis`, `redlock` and `memory` the stores. `tls` brings
//! `rediss://`; `deadpool`, `connection-manager` and `r2d2` take clients that you have already. `full` is everything.

#[cfg(feature = "blocking")]
pub mod blocking;
mod config;
mod connect;
#[cfg(feature = "async")]
mod nonblocking;
#[cfg(feature = "redlock")]
pub mod redlock;

pub use config::BackendConfig;
pub use connect::ConnectError;
#[cfg(feature = "async")]
pub use lock_async::{Builder, Client, Guard, Mutex};
pub use lock_core as core;
pub use lock_core::{
    AcquireError, BackendError, Capabilities, Effect, Ended, ErrorKind, FencingToken, Holder, Invalid, LockName,
    LockOptions, LossReason, Lost, Note, Ttl, VerifyError, WhileHeldError, inspect,
};
pub use lock_host::{Clock, HostClock, ManualClock, Proof, SharedClock};
#[cfg(feature = "memory")]
pub use lock_memory as memory;
#[cfg(feature = "redis")]
pub use lock_redis as redis;
#[cfg(feature = "sqlite")]
pub use lock_sqlite as sqlite;
#[cfg(feature = "async")]
pub use nonblocking::{connect, connect_to};
