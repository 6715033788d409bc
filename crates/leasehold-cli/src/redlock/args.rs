//! The command line of `leasehold redlock`.

use clap::{Args, Subcommand};

const INIT_EXAMPLES: &str = "\
Example:
  leasehold redlock init redlock://db1,db2,db3

Without it a new deployment waits for its max_ttl, and for 5 minutes at least, before it grants anything: a \
new one cannot be told from one whose nodes have all lost their memory. So give it only where nobody holds anything. It \
is refused where a node cannot be reached, or knows a deployment already.";

const STATUS_EXAMPLES: &str = "\
Examples:
  leasehold redlock status redlock://db1,db2,db3
  LEASEHOLD_URL=redlock://db1,db2,db3 leasehold redlock status --json | jq .can_grant

The exit code is 0 where locks can be granted now and 69 where not. COUNTER is the node's count of fencing tokens, beside \
it how far that is from the node's clock in microseconds since 1970; LONGEST is the longest ttl that it was asked for. It \
only looks: nodes that abstain vote again when clients come by, and need no help.";

const MOVE_EXAMPLES: &str = "\
Example:
  leasehold redlock move redlock://db1,db2,db3 redlock://db1,db2,db3,db4,db5

The old nodes stop voting at once, and clients with the old URL are refused. The new deployment grants its first lock when \
all leases of the old one are over: after its max_ttl. Those who hold a lock now keep it for what is left of its ttl at \
most. A node that was away is moved by the next client with the new URL that reaches it. docs/redlock.md has it step by step.";

/// `leasehold redlock`.
#[derive(Debug, Args)]
pub(crate) struct RedlockArgs {
    #[command(subcommand)]
    pub(crate) task: Task,
}

impl RedlockArgs {
    /// Whether the answer and failures are told as JSON.
    pub(crate) fn json(&self) -> bool {
        matches!(&self.task, Task::Status(StatusArgs { json: true, .. }))
    }
}

/// What to do with a deployment.
#[derive(Debug, Subcommand)]
pub(crate) enum Task {
    /// Declare that a deployment is new, so that it grants locks at once.
    #[command(after_help = INIT_EXAMPLES)]
    Init(InitArgs),
    /// Show how the nodes are, and whether they can grant locks.
    #[command(after_help = STATUS_EXAMPLES)]
    Status(StatusArgs),
    /// Change the list of nodes, or max_ttl to a longer one.
    #[command(after_help = MOVE_EXAMPLES)]
    Move(MoveArgs),
}

/// `leasehold redlock init`.
#[derive(Debug, Args)]
pub(crate) struct InitArgs {
    /// The deployment; give a URL that holds a password by the environment instead.
    #[arg(value_name = "URL", env = "LEASEHOLD_URL", hide_env_values = true)]
    pub(crate) url: String,
}

/// `leasehold redlock status`.
#[derive(Debug, Args)]
pub(crate) struct StatusArgs {
    /// The deployment; give a URL that holds a password by the environment instead.
    #[arg(value_name = "URL", env = "LEASEHOLD_URL", hide_env_values = true)]
    pub(crate) url: String,
    /// Print one JSON object in place of the table.
    #[arg(long)]
    pub(crate) json: bool,
}

/// `leasehold redlock move`.
#[derive(Debug, Args)]
pub(crate) struct MoveArgs {
    /// The deployment as it is; give URLs that hold a password by the environment instead.
    #[arg(value_name = "OLD_URL", env = "LEASEHOLD_OLD_URL", hide_env_values = true)]
    pub(crate) old: String,
    /// The deployment as it shall be.
    #[arg(value_name = "NEW_URL", env = "LEASEHOLD_NEW_URL", hide_env_values = true)]
    pub(crate) new: String,
}
