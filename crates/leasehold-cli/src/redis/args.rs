//! The command line of `leasehold redis`.

use clap::{Args, Subcommand};

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
#[derive(Debug, Args)]
pub(crate) struct RedisArgs {
    #[command(subcommand)]
    pub(crate) task: Task,
}

impl RedisArgs {
    /// Whether results and failures are printed as JSON.
    pub(crate) fn json(&self) -> bool {
        let Task::Init(args) = &self.task;
        args.json
    }
}

/// What to do with a server.
#[derive(Debug, Subcommand)]
pub(crate) enum Task {
    /// Declare that a server or a cluster is new, so that it grants free locks at once.
    #[command(after_help = INIT_EXAMPLES)]
    Init(InitArgs),
}

/// `leasehold redis init`.
#[derive(Debug, Args)]
pub(crate) struct InitArgs {
    /// URL of the server; pass a URL that contains a password through the environment instead.
    #[arg(value_name = "URL", env = "LEASEHOLD_URL", hide_env_values = true)]
    pub(crate) url: String,
    /// Print one JSON object.
    #[arg(long)]
    pub(crate) json: bool,
}
