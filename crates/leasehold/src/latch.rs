//! Latches: waiting until a number of processes has arrived.
//!
//! [`Client::latch`](crate::Client::latch) makes a [`Latch`](crate::Latch), which says what it guarantees. A store counts the ids
//! that arrive, so an arrival survives its process, and one that is repeated counts once. All single stores have latches; a
//! quorum (`redlock://`) has none, and says so before anything is sent.
//!
//! ```
//! # #[cfg(all(feature = "async", feature = "memory"))]
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! use std::time::Duration;
//!
//! let locks = leasehold::connect("memory:").await?;
//! let migrated = locks.latch("migrated:v7").ttl(Duration::from_secs(24 * 3600));
//! migrated.expect(2).await?; // the deployment
//! migrated.arrive_as("db-1").await?; // each database, after its migration
//! migrated.arrive_as("db-2").await?;
//! migrated.wait_for(Duration::from_secs(600)).await?; // the new version of the service
//! # Ok(())
//! # }
//! # #[cfg(not(all(feature = "async", feature = "memory")))]
//! # fn main() {}
//! ```
//!
//! # When not to use it
//!
//! - To let one process at a time do something: that is a [`Mutex`](crate::Mutex).
//! - To find out who is alive. A process that dies before it arrives is missed by nobody but the waiters, so give each wait a
//!   limit ([`Latch::wait_for`](crate::Latch::wait_for)) and say in the error how many are missing.
//! - To hand out work or results. A latch only counts; use a queue or a database.
//! - For phases that follow each other quickly. A reset is one step of one coordinator; arrivals for the next phase must
//!   not begin before it. A name for each phase, such as `phase-7`, needs no reset.

pub use lock_core::latch::{ArrivalId, Count, Generation, LatchError, LatchState};
