//! `leasehold redis`: sets up one Redis.

use std::time::Duration;

use clap::Subcommand;
use leasehold::BackendConfig;
use leasehold::redis::{Declared, RedisConfig, declare_new};
use serde_json::json;

use crate::durations::{human, millis, whole_seconds_up};
use crate::exit::{Exit, Failure};
use crate::report::{json, print};

const INIT_EXAMPLES: &str = "\
Examples:
  leasehold redis init 'redis+sentinel://s1,s2,s3/orders'
  leasehold redis init 'redis+cluster://db1,db2,db3'
  leasehold redis init 'redis://db1?failover=dwell'

Clients with failover=dwell, the default with sentinels and in a cluster, are granted no free lock while the server may have \
forgotten leases. A new server cannot be told apart from one that has lost its data, so it grants them nothing for max_ttl and \
ten seconds. Run this only if no lock was ever granted there. It is refused if a lock is held or waited for. In a cluster, it \
declares all hash slots, which takes some seconds and leaves three small keys in each.";

/// `leasehold redis`.
#[derive(Debug, Subcommand)]
pub(crate) enum Redis {
    /// Declare that a server or a cluster is new, so that it grants free locks at once.
    #[command(after_help = INIT_EXAMPLES)]
    Init {
        /// URL of the server; pass a URL that contains a password through the environment instead.
        #[arg(value_name = "URL", env = "LEASEHOLD_URL", hide_env_values = true)]
        url: String,
        /// Print one JSON object.
        #[arg(long)]
        json: bool,
    },
}

/// Runs the subcommand.
pub(crate) fn run(Redis::Init { url, json: as_json }: &Redis) -> Result<Exit, Failure> {
    let config = redis(url)?;
    let declared = declare_new(&config);
    let declared = declared.map_err(|error| Failure::while_connected("cannot declare the server new", error))?;
    if !as_json {
        return print(&told(declared, config.max_ttl()));
    }
    // Without a dwell, free locks were granted already.
    print(&json(&json!({ "dwell_ms": declared.dwell.map(millis), "max_ttl_ms": millis(declared.max_ttl) }))?)
}

/// The Redis of a URL. Other stores need no declaration that they are new, or have a command of their own.
fn redis(url: &str) -> Result<Box<RedisConfig>, Failure> {
    let message = match BackendConfig::from_url(url) {
        Ok(BackendConfig::Redis(config)) => return Ok(config),
        Ok(BackendConfig::Redlock(_)) => "this is the URL of a quorum; run leasehold redlock init".to_owned(),
        Ok(_) => "this store is not Redis, and needs no init: it grants free locks at once".to_owned(),
        Err(invalid) => invalid.to_string(),
    };
    Err(Failure::new(Exit::Config, message))
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
