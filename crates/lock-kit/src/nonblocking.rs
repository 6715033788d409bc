//! For async code on tokio.
//!
//! `all`, `degrading`, `election`, `job`, `kit`, `run` and `single_flight` are also compiled for threads. `waiting` has the primitives that
//! they wait with; `cache` and `loss_and_leaders` are for async code only.

mod all;
mod cache;
mod degrading;
mod election;
mod job;
mod kit;
mod loss_and_leaders;
mod run;
mod single_flight;
mod waiting;

use lock_async::{Client, Guard, LossWatch, Mutex};
use lock_forms::nonblocking as both;

pub use all::{All, AllGuard, AllWatch, all};
pub use cache::Cache;
pub use degrading::{Degrading, DegradingGuard};
pub use election::{Election, Leaders, Leadership};
pub use job::Job;
pub use kit::Kit;
pub use run::Run;
pub use single_flight::SingleFlight;
