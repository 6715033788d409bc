//! What is explored: the form of the guard, who is there, and how much may happen.

use std::cmp::Ordering;

use clap::ValueEnum;

/// The form of the guard. Each but the first lacks one rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Form {
    /// All rules.
    Complete,
    /// A ttl is used at once. The rule: a majority has to know it first.
    Unannounced,
    /// One old record ends a dwell. The rule: a majority has to have old ones.
    OneRecord,
    /// A node that was restored by the clock alone keeps the longest ttl that was read. The rule: it takes `max_ttl`
    /// for it.
    LowLongest,
    /// A dwell counts up to the installation. The rule: it must be over when the look that determines its length
    /// begins.
    PastLook,
    /// A dwell of no known ttl lasts for nothing. The rule: no dwell is shorter than the least.
    NoLeast,
    /// An announcement takes as long as it likes. The rule: it takes less time than the least dwell, so that no node that
    /// counts as told has forgotten it and votes again.
    SlowAnnouncement,
    /// While nodes of another deployment answer, blank ones are marked and installed if a majority is blank or of this
    /// deployment. The rule: only if so many vote in this one that no majority can have been moved.
    Strangers,
    /// Blank nodes dwell for the `max_ttl` of the client that marks them. The rule: for the default, if that is longer.
    ShortBlank,
    /// A list of nodes votes although the one before it may still grant. The rule: enough nodes of that one must have been moved
    /// and have waited.
    Hasty,
    /// Half of the old nodes are enough for a list to vote. The rule: more than half, or the half with the first node.
    Halves,
    /// A node that followed another move stays there. The rule: it follows the one that has a majority of the old nodes.
    NoSibling,
    /// A node that restarted with data from before a move counts for the list that it names. The rule: it counts as a blank one
    /// while a node that was moved answers.
    Outdated,
    /// After a move, voters that are left from an earlier time shorten dwells. The rule: only a majority of voters does.
    LeftVoters,
    /// A new node that was moved shows nothing. The rule: it shows that the move was decided, whatever the others have lost.
    NoProof,
}

/// Some nodes that belong together, as a client's URL says it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Deployment {
    /// The nodes, a bit for each.
    pub members: u8,
    /// The longest ttl.
    pub max_ttl: u8,
}

impl Deployment {
    pub(crate) fn has(self, node: usize) -> bool {
        self.members >> node & 1 == 1
    }

    /// How many nodes are a majority.
    pub(crate) fn majority(self) -> usize {
        self.members.count_ones() as usize / 2 + 1
    }

    /// Whether a move is decided that has reached so many nodes: the others are no majority, and no other move can have as many.
    pub(crate) fn is_left_by(self, form: Form, moved: usize, has_first: bool) -> bool {
        match (2 * moved).cmp(&(self.members.count_ones() as usize)) {
            Ordering::Greater => true,
            Ordering::Equal => has_first || form == Form::Halves,
            Ordering::Less => false,
        }
    }

    /// So many leave no majority without one of them.
    pub(crate) fn overlap(self) -> usize {
        self.members.count_ones() as usize - self.majority() + 1
    }
}

/// A client: which of the deployments it was given, and for how long it asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Asker {
    /// The number of the deployment.
    pub deployment: u8,
    /// Its ttl.
    pub ttl: u8,
}

/// Who is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Setup {
    /// The first is voted in at the beginning. The second is moved to, or is what some clients were given by mistake. The third,
    /// if it has nodes, is moved to by another operator.
    pub deployments: [Deployment; 3],
    /// The clients. Each wants the same lock, once.
    pub clients: [Asker; 2],
    /// The nodes that vote in the second deployment at the beginning: from an earlier time, a bit for each.
    pub left: u8,
    /// The longest ttl that all nodes know at the beginning.
    pub known: u8,
    /// The `max_ttl` that counts for blank nodes where nothing is said.
    pub default: u8,
}

/// How passes of the guard look at the nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, ValueEnum)]
pub enum Looks {
    /// All in one moment.
    AtOnce,
    /// One by one; anything may happen in between.
    OneByOne,
}

/// When a clock may step forward.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, ValueEnum)]
pub enum Steps {
    /// While its node keeps no lease, so that only records look older than they are.
    WhileFree,
    /// At any time. A lease that its node keeps is over by it.
    AnyTime,
}

/// How much may happen. Nothing bounds how many passes there are, and how late requests come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Bounds {
    /// How far time advances.
    pub ticks: u8,
    /// Nodes that lose everything.
    pub losses: u8,
    /// Nodes that restart with their data.
    pub restarts: u8,
    /// Nodes that restart with the data that they had at the beginning.
    pub rollbacks: u8,
    /// Nodes whose clock steps forward, and when.
    pub steps: (u8, Steps),
    /// Moves to the second deployment, or the third.
    pub moves: u8,
    /// How many of the other nodes a pass may miss.
    pub silent: u8,
    /// How many passes there are at a time, 1 or 2.
    pub passes: u8,
    /// How they look.
    pub looks: Looks,
}
