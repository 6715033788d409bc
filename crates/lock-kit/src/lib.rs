//! Uses of locks, composed from the locks of a client: several locks together, re-entrant locks, locks that fall back to a
//! process-local lock, jobs, elections, and values that are computed once.
//!
//! Stores know nothing of this crate. The policy is the same in both facades. Code that waits is in `nonblocking`, whose files are also compiled
//! for `blocking`; each of the two has its own `loss_and_leaders`, `cache` and `waiting`. Import the trait `Kit` of one of them to call its methods on a client.
//!
//! - Several locks together: `set` (which order, how long), `guards` (what is held), and `all` of each facade.
//! - A lock that the thread which holds it can acquire again: `reentrant` of `blocking`.
//! - Jobs: `slot` (the scheduled time), `earlier_slots` (missed slots), `first_slot` (the first run), `job` (policy), `outcome`, `taken_slot`
//!   (why a slot is taken), and `job` and `run` (a job that has begun) of each facade.
//! - Elections: `election` (when a leader steps down, who is seen to lead), and `election` of each facade.
//! - A lock that falls back to a process-local lock while the store is unreachable: `process_lock` (a lock of this process), `degrading`
//!   (when, and what a guard knows), and `degrading` of each facade.
//! - Values that are computed once: `single_flight` (what is cached and for how long), and `single_flight` of each facade.
//! - `errors`.

#![cfg_attr(
    not(any(feature = "async", feature = "blocking")),
    allow(dead_code, unused_imports, reason = "without a facade, nothing is left to use the policy")
)]

#[cfg(feature = "blocking")]
#[cfg_attr(feature = "async", expect(clippy::duplicate_mod, reason = "one source is compiled in both forms"))]
pub mod blocking;
mod degrading;
mod earlier_slots;
mod election;
mod errors;
mod first_slot;
mod guards;
mod job;
#[cfg(feature = "async")]
pub mod nonblocking;
mod outcome;
mod process_lock;
mod set;
mod single_flight;
mod slot;
mod taken_slot;

pub use degrading::{Scope, Scoped};
pub use election::{Leader, Leading};
pub use errors::{AcquireAllError, ElectionError, JobError, LeadershipLost, ObserveError, ReleaseAllError};
pub use guards::Guards;
pub use outcome::{Begun, JobOutcome, JobRun, RunEnd, SkipReason, Skipped, SlotAfter};
pub use single_flight::{Entry, Found};
pub use slot::Slot;
