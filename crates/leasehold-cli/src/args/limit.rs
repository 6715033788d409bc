//! The arguments of `leasehold limit`.

use clap::Args;
use leasehold::backend::Limit;
use leasehold::inspect::Mode;
use leasehold::{Invalid, LockName};

use super::store::StoreArgs;

/// `leasehold limit`.
#[derive(Debug, Args)]
pub(crate) struct LimitArgs {
    #[command(flatten)]
    pub(crate) store: StoreArgs,
    /// The old number of slots, if no program that gives it runs now: such programs will run under the new one.
    ///
    /// While a slot is held or waited for, the old number is accepted for the next seven days without this option.
    #[arg(long, value_name = "N", value_parser = limit)]
    pub(crate) from: Option<Limit>,
    /// Print a JSON object instead of a sentence: `old` is null if it is not known.
    #[arg(long)]
    pub(crate) json: bool,
    /// The name of the semaphore.
    #[arg(value_name = "NAME")]
    pub(crate) name: LockName,
    /// The new number of slots.
    #[arg(value_name = "N", value_parser = limit)]
    pub(crate) limit: Limit,
}

/// Reads a number of slots.
pub(super) fn limit(text: &str) -> Result<Limit, Invalid> {
    let number = text.parse().map_err(|_| {
        let problem = format!("it is not a whole number between 1 and {}", Mode::LIMIT_MAX);
        Invalid::new("number of slots", text, problem, "say how many may hold a slot at the same time")
    })?;
    Limit::new(number)
}
