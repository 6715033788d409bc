//! The command line of `leasehold redlock`.

use clap::{Args, Subcommand};

const INIT_EXAMPLES: &str = "\
Example:
  leasehold redlock init redlock://db1,db2,db3

Without `init`, a new deployment grants nothing until its max_ttl has passed, and for at least 5 minutes. It looks the same as \
one whose nodes have all lost their data, so run `init` only if no lock is held. `init` is refused if a node is unreachable or \
already belongs to a deployment.";

const STATUS_EXAMPLES: &str = "\
Examples:
  leasehold redlock status redlock://db1,db2,db3
  leasehold redlock status redlock://db1,db2,db3 --json | jq .can_grant

The exit code is 0 if locks can be granted now, and 69 if not. COUNTER is the node's counter of fencing tokens, which \
starts at the microseconds since 1970, and CLOCK OFFSET is how far it is ahead of the node's clock (negative: behind). \
LONGEST is the longest ttl that clients have requested. The command changes nothing: nodes that abstain vote again as \
clients connect.";

const MOVE_EXAMPLES: &str = "\
Example:
  leasehold redlock move redlock://db1,db2,db3 redlock://db1,db2,db3,db4,db5

The old nodes stop voting at once, and clients with the old URL are refused. The new deployment grants its first lock when \
all leases of the old one have expired, after its max_ttl. Current holders keep their locks for the rest of their ttl at \
most. If a node in the new list was unreachable, the next client with the new URL that reaches it moves it. If a node that \
leaves the list was unreachable, run the same command again, or stop the node permanently.

Nothing is changed if a new node does not answer or belongs to another deployment, or if too few nodes have ever voted in the \
old one. The same holds if so many old nodes are unreachable that they could still grant locks among themselves. The new list \
must keep more than half of the old nodes: replace more in two moves, and wait in between until locks can be granted.

If a move was interrupted, run the same command again. It also moves a kept node that has lost its data, once enough of \
the others were moved or a new node was. If a kept node is gone for good before that, start an empty server at its address \
first. A node that was unreachable during two moves names the first list: move it from that URL to the newest one.

If another move came first, this one leaves its nodes alone and exits with 78: use the other one's URL, or, once that \
grants locks, move on from it. Of two moves at once, the one with more than half of the old nodes (or half and the first \
one) succeeds when it is run again.

Tokens continue above the counters of the old nodes that answer when the new deployment begins to vote. If none of them is \
known to have the highest counter, they continue from the clocks, and a warning says so. A node that restarted and did not \
vote again before the move does not count here. max_ttl cannot be lowered by a move. The page \"Running a quorum\" of the \
book has the steps.";

/// `leasehold redlock`.
#[derive(Debug, Subcommand)]
pub(crate) enum Redlock {
    /// Declare that a deployment is new, so that it grants locks at once.
    #[command(after_help = INIT_EXAMPLES)]
    Init(InitArgs),
    /// Show the state of the nodes, and whether they can grant locks.
    #[command(after_help = STATUS_EXAMPLES)]
    Status(StatusArgs),
    /// Change the list of nodes, or increase max_ttl.
    #[command(after_help = MOVE_EXAMPLES)]
    Move(MoveArgs),
}

/// `leasehold redlock init`.
#[derive(Debug, Args)]
pub(crate) struct InitArgs {
    /// URL of the deployment; pass a URL that contains a password through the environment instead.
    #[arg(value_name = "URL", env = "LEASEHOLD_URL", hide_env_values = true)]
    pub(crate) url: String,
}

/// `leasehold redlock status`.
#[derive(Debug, Args)]
pub(crate) struct StatusArgs {
    /// URL of the deployment; pass a URL that contains a password through the environment instead.
    #[arg(value_name = "URL", env = "LEASEHOLD_URL", hide_env_values = true)]
    pub(crate) url: String,
    /// Print one JSON object in place of the table.
    #[arg(long)]
    pub(crate) json: bool,
}

/// `leasehold redlock move`.
#[derive(Debug, Args)]
pub(crate) struct MoveArgs {
    /// URL of the current deployment; pass URLs that contain a password through the environment instead.
    #[arg(value_name = "OLD_URL", env = "LEASEHOLD_OLD_URL", hide_env_values = true)]
    pub(crate) old: String,
    /// URL of the new deployment.
    #[arg(value_name = "NEW_URL", env = "LEASEHOLD_NEW_URL", hide_env_values = true)]
    pub(crate) new: String,
}
