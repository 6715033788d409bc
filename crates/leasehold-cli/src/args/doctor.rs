//! The arguments of `leasehold doctor`.

use std::time::Duration;

use clap::Args;
use leasehold::LockName;

use super::store::StoreArgs;
use crate::durations::duration;

/// `leasehold doctor`.
#[derive(Debug, Args)]
pub(crate) struct DoctorArgs {
    #[command(flatten)]
    pub(crate) store: StoreArgs,
    /// Print one JSON object.
    #[arg(long)]
    pub(crate) json: bool,
    /// Watch the lock for this long [default: 1m]
    #[arg(long = "for", value_name = "DURATION", requires = "name", value_parser = duration("for"))]
    pub(crate) watched: Option<Duration>,
    /// The lock to suggest a ttl for.
    #[arg(value_name = "NAME")]
    pub(crate) name: Option<LockName>,
}
