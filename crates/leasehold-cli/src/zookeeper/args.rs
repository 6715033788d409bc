//! The command line of `leasehold zookeeper`.

use clap::{Args, Subcommand};

use crate::base::BaseArgs;

const BASE_EXAMPLES: &str = "\
Examples:
  leasehold zookeeper base zookeeper://zk1,zk2,zk3/shop --above 1790412345678901

Tokens are counted from a base, by the transactions of the ensemble. Servers that were restored from an old copy count from an \
old transaction on, so new tokens would be below old ones, and resources would refuse them. Name the highest token that was in use, \
as the resource or `leasehold show` had it. Clients end their sessions when they learn of the new base, and lose their leases: run this while \
no lock is in use.";

/// `leasehold zookeeper`.
#[derive(Debug, Args)]
pub(crate) struct ZookeeperArgs {
    #[command(subcommand)]
    pub(crate) task: Task,
}

impl ZookeeperArgs {
    /// Whether results and failures are printed as JSON.
    pub(crate) fn json(&self) -> bool {
        let Task::Base(args) = &self.task;
        args.json
    }
}

/// The subcommands of `leasehold zookeeper`.
#[derive(Debug, Subcommand)]
pub(crate) enum Task {
    /// Raise the base of the fencing tokens, after servers were restored from an old copy.
    #[command(after_help = BASE_EXAMPLES)]
    Base(BaseArgs),
}
