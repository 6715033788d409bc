//! What locks are used for, composed from the locks of a client: several locks at once, re-entrant locks, locks that degrade to
//! one of this process, jobs, elections, and values that are computed once.
//!
//! Nothing here is known to a store. The policy is the same in both facades; what waits is in `nonblocking` and `blocking`. Import the
//! trait `Kit` of one of them to call its methods on a client.
//!
//! - Several locks at once: `set` (which order, how long), `guards` (what is held), and `all` of each facade.
//! - A lock that the thread which holds it can acquire again: `reentrant` of `blocking`.
//! - Jobs: `slot` (what a run is for), `earlier` (slots that nobody has run), `first` (since when the job runs), `job` (what is acquired and
//!   kept), `outcome`, `taken` (what a store shows of a slot), and `job` and `run` (a job that has begun) of each facade.
//! - Elections: `election` (when a leader steps down, who is seen to lead), and `election` of each facade.
//! - A lock that degrades to one of this process while the store is away: `process` (the locks of this process), `degrading`
//!   (when, and what a guard knows), and `degrading` of each facade.
//! - Values that are computed once: `single_flight` (what is cached and for how long), and `single_flight` of each facade.
//! - `errors`, and `setters` (options that both have).

// Without a facade, nothing is left to use the policy.
#![cfg_attr(not(any(feature = "async", feature = "blocking")), allow(dead_code, unused_imports, unused_macros))]

#[cfg(feature = "blocking")]
pub mod blocking;
mod degrading;
mod earlier;
mod election;
mod errors;
mod first;
mod guards;
mod job;
#[cfg(feature = "async")]
pub mod nonblocking;
mod outcome;
mod process;
mod set;
mod setters;
mod single_flight;
mod slot;
mod taken;

pub use degrading::{Scope, Scoped};
pub use election::{Leader, Leading};
pub use errors::{AcquireAllError, ElectionError, JobError, LeadershipLost, ObserveError, ReleaseAllError};
pub use guards::Guards;
pub use outcome::{Begun, JobOutcome, JobRun, RunEnd, SkipReason, Skipped, SlotAfter};
pub use single_flight::{Entry, Found};
pub use slot::Slot;
