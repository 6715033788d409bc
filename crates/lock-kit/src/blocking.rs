//! For plain threads.
//!
//! Modules with a path are also compiled for async code. `waiting` has the primitives that they wait with; `cache`, `loss_and_leaders` and
//! `reentrant` are for threads only.

#[path = "nonblocking/all.rs"]
mod all;
mod cache;
#[path = "nonblocking/degrading.rs"]
mod degrading;
#[path = "nonblocking/election.rs"]
mod election;
#[path = "nonblocking/job.rs"]
mod job;
#[path = "nonblocking/kit.rs"]
mod kit;
mod loss_and_leaders;
mod reentrant;
#[path = "nonblocking/run.rs"]
mod run;
#[path = "nonblocking/single_flight.rs"]
mod single_flight;
mod waiting;

use lock_blocking::{Client, Guard, LossWatch, Mutex};
use lock_forms::blocking as both;

pub use all::{All, AllGuard, AllWatch, all};
pub use cache::Cache;
pub use degrading::{Degrading, DegradingGuard};
pub use election::{Election, Leaders, Leadership};
pub use job::Job;
pub use kit::Kit;
pub use reentrant::{Reentrant, ReentrantGuard};
pub use run::Run;
pub use single_flight::SingleFlight;
