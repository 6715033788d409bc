//! Looking at locks from outside, for operators: who holds which lock, and ending the lease of a holder.
//!
//! [`Client::inspect`](crate::Client::inspect) gives the store, whose methods `holder`, `list`, `revoke` and `revoked_by` are
//! for operators. Every store of this library has them; of a quorum (`redlock://`), they need a majority of the nodes. Each request has a time limit, `within`:
//! without an answer by then, it fails with an error of the kind [`Timeout`](crate::ErrorKind::Timeout).
//!
//! A store lists its locks in pages. [`list_all`] reads all of them, and [`next_changes`] says what has happened between two such listings. [`blocking`] has
//! both for plain threads.
//!
//! [`BackendConfig::examine`](crate::BackendConfig::examine) asks a store about itself, and says with each [`Check`] what was found.
//!
//! The returned types implement serde's `Serialize`. Times are in milliseconds.
//!
//! ```
//! # #[cfg(all(feature = "async", feature = "memory"))]
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! use std::time::Duration;
//! use leasehold::inspect::{Query, list_all};
//!
//! let locks = leasehold::connect("memory:").await?;
//! let _guard = locks.mutex("job:7").why("nightly").acquire().await?;
//!
//! let inspect = locks.inspect().ok_or("this store cannot list its locks")?;
//! # let mut held = Vec::new();
//! for entry in list_all(inspect, Query::matching("job:*"), Duration::from_secs(1)).await?.entries() {
//!     println!("{}: {}", entry.name, entry.holder); // job:7: pid 4711 on web-3 (nightly)
//! #   held.push(entry.name.to_string());
//! }
//! # assert_eq!(held, ["job:7"]);
//! # Ok(())
//! # }
//! # #[cfg(not(all(feature = "async", feature = "memory")))]
//! # fn main() {}
//! ```
//!
//! # Ending a lease
//!
//! `revoke` ends the lease that you have seen, and no later one. Its holder finds its guard lost.
//!
//! ```
//! # #[cfg(all(feature = "async", feature = "memory"))]
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! use std::time::Duration;
//! use leasehold::Holder;
//! use leasehold::inspect::note;
//!
//! let locks = leasehold::connect("memory:").await?;
//! let guard = locks.mutex("job:7").acquire().await?;
//!
//! let (inspect, within) = (locks.inspect().ok_or("this store cannot list its locks")?, Duration::from_secs(1));
//! let name = "job:7".parse()?;
//! if let Some(entry) = inspect.holder(&name, within).await?
//!     && let Holder::Leasehold { tokens, .. } = entry.holder
//! {
//!     let by = note("the job hangs")?; // with this host and process
//!     println!("{:?}", inspect.revoke(&name, tokens.high(), &by, within).await?); // Revoked
//! }
//! println!("{}", guard.lost().await);
//! # Ok(())
//! # }
//! # #[cfg(not(all(feature = "async", feature = "memory")))]
//! # fn main() {}
//! ```
//!
//! # What has happened between two listings
//!
//! ```
//! # #[cfg(all(feature = "async", feature = "memory"))]
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! use std::time::Duration;
//! use leasehold::inspect::{Query, Watch, list_all, next_changes, watch};
//!
//! let locks = leasehold::connect("memory:").await?;
//! let guard = locks.mutex("job:7").acquire().await?;
//! let (inspect, within) = (locks.inspect().ok_or("this store cannot list its locks")?, Duration::from_secs(1));
//!
//! let mut watch = Watch::new(list_all(inspect, Query::all(), within).await?);
//! guard.release().await?;
//! # let mut happened = Vec::new();
//! // In a loop, pause for `watch.pause(every)` before each listing, and call `watch.miss()` if one fails.
//! let listing = list_all(inspect, Query::all(), within).await?;
//! for change in next_changes(inspect, &mut watch, listing, within).await {
//!     println!("{}: {:?}", change.name, change.happened); // job:7: Released(...)
//! #   happened.push(matches!(change.happened, watch::Happened::Released(_)));
//! }
//! # assert_eq!(happened, [true]);
//! # Ok(())
//! # }
//! # #[cfg(not(all(feature = "async", feature = "memory")))]
//! # fn main() {}
//! ```

#[cfg(feature = "blocking")]
#[cfg_attr(feature = "async", expect(clippy::duplicate_mod, reason = "one source is compiled in both forms"))]
pub mod blocking;
#[cfg(feature = "async")]
mod nonblocking;

pub use lock_core::examine::{Check, Verdict};
pub use lock_core::inspect::{
    Cursor, Entry, Held, Listing, Page, Query, Revoked, Votes, Waiter, Watch, glob_matches, watch,
};
pub use lock_core::{Holder, Mode, Note, Slots};
pub use lock_host::{host_name, is_gone, note};
#[cfg(feature = "async")]
pub use nonblocking::{list_all, next_changes};
