//! What locks are used for, composed from the exclusive locks of a client: several locks at once, and re-entrant locks.
//!
//! Nothing here is known to a store, so all of it works on every store. The policy is the same in both facades; what
//! waits is in `nonblocking` and `blocking`. Import the trait `Kit` of one of them to call its methods on a client.
//!
//! - Several locks at once: `set` (which order, how long), `guards` (what is held), and `all` of each facade.
//! - A lock that its holder can acquire again: `reentrant` of each facade.
//! - `errors`, and `setters` (options that both have).

#[cfg(feature = "blocking")]
pub mod blocking;
mod errors;
#[cfg(any(feature = "async", feature = "blocking"))]
mod guards;
#[cfg(feature = "async")]
pub mod nonblocking;
#[cfg(any(feature = "async", feature = "blocking"))]
mod set;
#[cfg(any(feature = "async", feature = "blocking"))]
mod setters;

pub use errors::{AcquireAllError, ReentrantError, ReleaseAllError};
#[cfg(any(feature = "async", feature = "blocking"))]
pub use guards::Guards;
