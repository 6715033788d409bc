//! `cargo xtask lab account`: workers pay into one account under ever better locks.
//!
//! Reading order: `stages` (the story) · `stage` (what they are made of) · `cast` (who begins when, in which process) ·
//! `worker` (reads, pauses and writes) · `gate`, `lock` (how it enters) · `memory`, `naive` with its `watchdog`, `leased` (the
//! locks) · `balance` (what they protect) · `line` (readers and a payer) · `mishap`, `cues` (how a fault is provoked) ·
//! `process` (workers of another process) · `diary` (what was seen) · `story` (how it is told).

mod balance;
mod cast;
mod cues;
mod diary;
mod gate;
mod leased;
mod line;
mod lock;
mod memory;
mod mishap;
mod naive;
pub(crate) mod process;
mod stage;
mod stages;
mod story;
mod watchdog;
mod worker;

use self::stage::Crew;
use crate::args::AccountArgs;
use crate::shared::failure::Failure;
use crate::shared::story::tell;
use crate::shared::tell::Form;

/// Tells the whole story.
pub(crate) fn run(args: &AccountArgs) -> Result<(), Failure> {
    let crew = Crew { workers: args.workers, deposits: args.deposits };
    tell(&crew, args.url.as_deref(), if args.json { Form::Json } else { Form::Text })
}
