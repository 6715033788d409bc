//! How often to poll.

use std::time::Duration;

use clap::Args;
use leasehold::Invalid;
use leasehold::clock::parse_duration;

use crate::durations::human;

/// The shortest time between two polls. Chosen: so that listing some thousand locks does not keep a store busy.
const EVERY_MIN: Duration = Duration::from_millis(100);

/// How often to poll.
#[derive(Clone, Copy, Debug, Args)]
pub(crate) struct EveryArgs {
    /// Time between two polls of the store.
    #[arg(long, value_name = "DURATION", default_value = "1s", value_parser = every)]
    pub(crate) every: Duration,
}

fn every(text: &str) -> Result<Duration, Invalid> {
    let given = parse_duration("every", text)?;
    if given < EVERY_MIN {
        let problem = format!("it is below {}", human(EVERY_MIN));
        return Err(Invalid::new("every", text, problem, "give a longer time, such as 1s"));
    }
    Ok(given)
}
