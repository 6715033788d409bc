//! The command line of `leasehold etcd`.

use clap::{Args, Subcommand};

use crate::base::BaseArgs;

const BASE_EXAMPLES: &str = "\
Examples:
  leasehold etcd base etcd://etcd1,etcd2,etcd3/shop --above 1790412345678901

Tokens are counted from a base, by the revisions of the cluster. Servers that were restored from an old copy count from an \
old revision on, so new tokens would be below old ones, and resources would refuse them. Name the highest token that was in use, \
as the resource or `leasehold show` had it. Holders lose their leases when they renew them next: run this while no lock is in use.";

/// `leasehold etcd`.
#[derive(Debug, Args)]
pub(crate) struct EtcdArgs {
    #[command(subcommand)]
    pub(crate) task: Task,
}

impl EtcdArgs {
    /// Whether results and failures are printed as JSON.
    pub(crate) fn json(&self) -> bool {
        let Task::Base(args) = &self.task;
        args.json
    }
}

/// The subcommands of `leasehold etcd`.
#[derive(Debug, Subcommand)]
pub(crate) enum Task {
    /// Raise the base of the fencing tokens, after servers were restored from an old copy.
    #[command(after_help = BASE_EXAMPLES)]
    Base(BaseArgs),
}
