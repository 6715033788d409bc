//! The arguments of `leasehold ls` and `leasehold show`.

use clap::{Args, ValueEnum};
use leasehold::LockName;

use super::every::EveryArgs;
use super::store::StoreArgs;

/// The order of a list of locks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Sort {
    /// By name; job2 comes before job10.
    Name,
    /// The lock that has been held for the longest time first.
    Held,
    /// The lock with the most waiters first.
    Waiters,
}

/// `leasehold ls`.
#[derive(Debug, Args)]
#[command(mut_arg("every", |every| every.requires("watch")))]
pub(crate) struct LsArgs {
    #[command(flatten)]
    pub(crate) store: StoreArgs,
    /// Print a JSON array instead of the table.
    #[arg(long)]
    pub(crate) json: bool,
    /// The order of the list.
    #[arg(long, value_name = "BY", value_enum, default_value_t = Sort::Name)]
    pub(crate) sort: Sort,
    /// Refresh repeatedly: redraw on a terminal, otherwise print again, with --json as one more line.
    #[arg(short, long)]
    pub(crate) watch: bool,
    #[command(flatten)]
    pub(crate) every: EveryArgs,
    /// Names to list: `*` matches any text, `?` matches one character.
    #[arg(value_name = "PATTERN", default_value = "*")]
    pub(crate) pattern: String,
}

/// `leasehold show`.
#[derive(Debug, Args)]
pub(crate) struct ShowArgs {
    #[command(flatten)]
    pub(crate) store: StoreArgs,
    /// Print a JSON object instead of the page; its field `held` says whether the lock is held.
    #[arg(long)]
    pub(crate) json: bool,
    /// The name of the lock.
    #[arg(value_name = "NAME")]
    pub(crate) name: LockName,
}
