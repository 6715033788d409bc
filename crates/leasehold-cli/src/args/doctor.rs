//! The arguments of `leasehold doctor`.

use std::time::Duration;

use clap::Args;
use lock_core::{Invalid, LockName, parse_duration};

use super::store::StoreArgs;

/// `leasehold doctor`.
#[derive(Debug, Args)]
pub(crate) struct DoctorArgs {
    #[command(flatten)]
    pub(crate) store: StoreArgs,
    /// Print one JSON object.
    #[arg(long)]
    pub(crate) json: bool,
    /// How long to watch the lock, to suggest a ttl for it.
    #[arg(long = "for", value_name = "DURATION", default_value = "1m", requires = "name", value_parser = watched)]
    pub(crate) watched: Duration,
    /// A lock for which a ttl is suggested, from how long it is held while this watches it.
    #[arg(value_name = "NAME")]
    pub(crate) name: Option<LockName>,
}

fn watched(text: &str) -> Result<Duration, Invalid> {
    parse_duration("for", text)
}
