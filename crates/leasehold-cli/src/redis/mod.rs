//! `leasehold redis`: sets up one Redis.

pub(crate) mod args;

use leasehold::redis::{Declared, RedisConfig, declare_new};
use serde::Serialize;

use self::args::{InitArgs, RedisArgs, Task};
use crate::durations::{human, millis, whole_seconds_up};
use crate::exit::{Exit, Failure};
use crate::report::{json, print};

/// Runs the subcommand.
pub(crate) fn run(args: &RedisArgs) -> Result<Exit, Failure> {
    match &args.task {
        Task::Init(args) => init(args),
    }
}

fn init(args: &InitArgs) -> Result<Exit, Failure> {
    let config = RedisConfig::from_url(&args.url).map_err(|invalid| Failure::new(Exit::Config, invalid.to_string()))?;
    let declared = declare_new(&config)?;
    if args.json { print(&json(&Report::from(declared))?) } else { print(&told(declared)) }
}

fn told(declared: Declared) -> String {
    let Some(dwell) = declared.dwell else {
        return "nothing to do; free locks can already be granted".to_owned();
    };
    format!(
        "the server is new: free locks are granted at once, not in {}; the longest ttl is {}",
        whole_seconds_up(dwell),
        human(declared.max_ttl)
    )
}

/// All of it, for scripts.
#[derive(Debug, Serialize)]
struct Report {
    /// For how much longer no free lock would have been granted; `null` if they were granted already.
    dwell_ms: Option<u64>,
    max_ttl_ms: u64,
}

impl From<Declared> for Report {
    fn from(declared: Declared) -> Self {
        Self { dwell_ms: declared.dwell.map(millis), max_ttl_ms: millis(declared.max_ttl) }
    }
}
