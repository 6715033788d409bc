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
    /// Watch the lock for this long; a minute if not given.
    #[arg(long = "for", value_name = "DURATION", requires = "name", value_parser = watched)]
    pub(crate) watched: Option<Duration>,
    /// A lock to suggest a ttl for: it is watched for a minute, or for as long as --for says.
    #[arg(value_name = "NAME")]
    pub(crate) name: Option<LockName>,
}

fn watched(text: &str) -> Result<Duration, Invalid> {
    parse_duration("for", text)
}
