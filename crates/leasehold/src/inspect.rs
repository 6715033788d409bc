//! Looking at locks from outside, for operators: who holds which lock, and ending the lease of a holder.
//!
//! [`Client::inspect`](crate::Client::inspect) gives the interface. Every store of this library has one, except a quorum (`redlock://`). Each request
//! has a time limit, `within`: without an answer by then, it fails with an error of the kind
//! [`Timeout`](crate::ErrorKind::Timeout).
//!
//! ```
//! # #[cfg(all(feature = "async", feature = "memory"))]
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! use std::time::Duration;
//! use leasehold::inspect::Query;
//!
//! let locks = leasehold::connect("memory:").await?;
//! let _guard = locks.mutex("job:7").why("nightly").acquire().await?;
//!
//! let inspect = locks.inspect().ok_or("a quorum cannot list its locks")?;
//! let mut query = Query::matching("job:*");
//! # let mut held = Vec::new();
//! loop {
//!     let page = inspect.list(&query, Duration::from_secs(1)).await?;
//!     for entry in page.entries {
//!         println!("{}: {}", entry.name, entry.holder); // job:7: pid 4711 on web-3 (nightly)
//! #       held.push(entry.name.to_string());
//!     }
//!     let Some(next) = page.next else { break };
//!     query = query.after(next);
//! }
//! # assert_eq!(held, ["job:7"]);
//! # Ok(())
//! # }
//! # #[cfg(not(all(feature = "async", feature = "memory")))]
//! # fn main() {}
//! ```

pub use lock_core::inspect::{Cursor, Entry, Held, Page, Query, Revoked, glob_matches};
pub use lock_core::{AsyncInspect, BlockingInspect, Mode, Slots};
