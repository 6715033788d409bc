//! `leasehold redis`: sets up one Redis.

pub(crate) mod args;

use std::time::Duration;

use leasehold::redis::{Declared, RedisConfig, declare_new};
use leasehold::{BackendConfig, BackendError};
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
    let config = redis(&args.url)?;
    let declared = declare_new(&config).map_err(not_declared)?;
    if args.json { print(&json(&Report::from(declared))?) } else { print(&told(declared, config.max_ttl())) }
}

/// The Redis of a URL. Other stores need not be told that they are new, or have a command of their own.
fn redis(url: &str) -> Result<Box<RedisConfig>, Failure> {
    let message = match BackendConfig::from_url(url) {
        Ok(BackendConfig::Redis(config)) => return Ok(config),
        Ok(BackendConfig::Redlock(_)) => "this is the URL of a quorum; run leasehold redlock init".to_owned(),
        Ok(_) => "this store is no Redis, and needs no init: its free locks are granted at once".to_owned(),
        Err(invalid) => invalid.to_string(),
    };
    Err(Failure::new(Exit::Config, message))
}

/// The library's error is that of a connect, which is only a part of it.
fn not_declared(error: BackendError) -> Failure {
    let Failure { exit, message, .. } = error.into();
    let reason = message.strip_prefix("redis connect: ").unwrap_or(&message);
    Failure::new(exit, format!("cannot declare the server new: {reason}"))
}

fn told(declared: Declared, max_ttl: Option<Duration>) -> String {
    let Some(dwell) = declared.dwell else {
        return "nothing to do; free locks can already be granted".to_owned();
    };
    let longer = max_ttl.filter(|own| *own < declared.max_ttl);
    let longer = longer.map(|own| format!(", which another client has set, although this URL says {}", human(own)));
    format!(
        "declared new: clients with failover=dwell are granted free locks at once, not in {}; the longest ttl is {}{}",
        whole_seconds_up(dwell),
        human(declared.max_ttl),
        longer.unwrap_or_default()
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
