//! The arguments of `leasehold watch`.

use clap::Args;

use super::every::EveryArgs;
use super::store::StoreArgs;

/// `leasehold watch`.
#[derive(Debug, Args)]
pub(crate) struct WatchArgs {
    #[command(flatten)]
    pub(crate) store: StoreArgs,
    /// Print each event as one JSON object.
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) every: EveryArgs,
    /// Names to watch: `*` matches any text, `?` matches one character.
    #[arg(value_name = "PATTERN", default_value = "*")]
    pub(crate) pattern: String,
}
