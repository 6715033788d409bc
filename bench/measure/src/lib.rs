//! What every measured process of the bench has in common, whatever lock library it measures.
//!
//! A measured process gets its [`Plan`] as its one argument, does its work through a [`Client`], and speaks to the
//! bench by lines: [`Said`] on standard output, an empty line on standard input when it may continue.
//!
//! Reading order: `plan` (what is asked for) · `lock` (what is measured) · `work` (the loops) · `said` (what comes back)
//! · `meter` (clock and processor time).

mod lock;
mod meter;
mod plan;
mod said;
mod work;

pub use lock::{Client, Lock};
pub use meter::{Meter, now};
pub use plan::{Ending, Names, Plan, Runtime, Subject, Work};
pub use said::{Report, Said, Turn, ready, report, write_turns};
pub use work::{LOCKS_OF_A_TASK, Pairs, run};
