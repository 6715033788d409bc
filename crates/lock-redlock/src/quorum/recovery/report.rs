//! What a recovery pass found, for programs and for operators.

use std::time::Duration;

use lock_core::node::{Membership, View};
use lock_core::{BackendError, Effect, ErrorKind, Operation};

use crate::BACKEND;

/// How far a counter may be ahead of its node's clock before there is a warning.
const AHEAD_MAX: Duration = Duration::from_secs(10);

/// What a pass found when it ended.
#[derive(Clone, Debug)]
pub struct Report {
    /// The nodes, in the order of the list.
    pub nodes: Vec<NodeReport>,
    /// How many nodes are a majority.
    pub majority: usize,
    /// The deployment from which nodes were moved here, if it may still grant locks because too few of them are known to be
    /// here. Until the move is repeated and reaches enough of them, no node votes here.
    pub unfinished_move: Option<Membership>,
}

impl Report {
    /// What helps where so many nodes have lost their data during a move that nothing shows which list follows.
    pub const LAST_RESORT: &str = "stop all clients, wait for max_ttl and for at least 5 minutes, run `redis-cli DEL leasehold:node` at \
                                   every node of every list, and then: leasehold redlock init URL";

    /// Checks that a majority of the nodes answered.
    ///
    /// # Errors
    /// The reasons why the others did not.
    pub fn check_reached(&self) -> Result<(), BackendError> {
        let errors: Vec<_> = self.nodes.iter().filter_map(|node| node.view.as_ref().err()).collect();
        let (all, answered) = (self.nodes.len(), self.nodes.len() - errors.len());
        if answered >= self.majority {
            return Ok(());
        }
        // Nodes with transient errors may come back and complete a majority.
        let (passing, lasting): (Vec<&BackendError>, Vec<&BackendError>) =
            errors.iter().partition(|error| error.kind().is_transient());
        let hopeless = all - lasting.len() < self.majority;
        let first = if hopeless { lasting.first() } else { passing.first() };
        let kind = first.map_or(ErrorKind::Unreachable, |error| error.kind());
        let told: Vec<_> = errors.iter().map(ToString::to_string).collect();
        let message =
            format!("only {answered} of {all} nodes answer, but {} are needed ({})", self.majority, told.join("; "));
        Err(BackendError::new(BACKEND, Operation::Connect, kind, Effect::None, message))
    }

    /// How many nodes vote.
    pub fn voting(&self) -> usize {
        self.nodes.iter().filter(|node| node.view.as_ref().is_ok_and(View::votes)).count()
    }

    /// How long until a majority votes, if the nodes that abstain suffice.
    pub fn wait(&self) -> Option<Duration> {
        let mut waits: Vec<_> = self.nodes.iter().filter_map(|node| node.votes_in).collect();
        waits.sort_unstable();
        let missing = self.majority.saturating_sub(self.voting());
        missing.checked_sub(1).and_then(|last| waits.get(last).copied())
    }

    /// Whether all nodes answered and none knows of any deployment: this one is new, or all its data was lost.
    pub fn is_blank(&self) -> bool {
        self.nodes.iter().all(|node| node.view.as_ref().is_ok_and(|view| view.membership.is_none()))
    }

    /// Whether a node reports that it cannot be one, for instance because it is a replica, and so does not count.
    pub fn has_strangers(&self) -> bool {
        // Errors of `Connect` mean that a node belongs to another deployment, which stops nothing.
        let strange =
            |error: &BackendError| error.kind() == ErrorKind::Config && error.operation() != Operation::Connect;
        self.nodes.iter().any(|node| node.view.as_ref().is_err_and(strange))
    }

    /// Warnings for operators.
    pub fn warnings(&self) -> Vec<String> {
        let count = self.nodes.len();
        let even = count
            .is_multiple_of(2)
            .then(|| format!("{count} nodes tolerate no more failures than {}: use an odd number", count - 1));
        let beyond = self.beyond_max_ttl();
        let unfinished = self.unfinished_move.as_ref().map(|before| {
            format!(
                "too few nodes of the deployment before this one ({}) are known to be here, because the move was interrupted or \
                 nodes have lost their data since; it may still grant locks, so this one must not; to finish, run: leasehold \
                 redlock move OLD_URL NEW_URL; if that does not help because data was lost: {}",
                before.members.join(", "),
                Self::LAST_RESORT
            )
        });
        even.into_iter()
            .chain(unfinished)
            .chain(beyond)
            .chain(self.nodes.iter().flat_map(NodeReport::warnings))
            .collect()
    }

    /// Why nodes that lost their data wait for longer than the `max_ttl` that others remember, and for how much longer.
    fn beyond_max_ttl(&self) -> Option<String> {
        let waiting: Vec<_> = self.nodes.iter().filter(|node| node.beyond_max_ttl.is_some()).collect();
        let lasts = waiting.iter().filter_map(|node| node.beyond_max_ttl).max().filter(|_| !self.is_blank())?;
        let left = waiting.iter().filter_map(|node| node.votes_in).max()?;
        let addresses: Vec<_> = waiting.iter().map(|node| node.address.as_str()).collect();
        Some(format!(
            "{} know no deployment (they are new, or lost their data), and too few of the others vote to tell which max_ttl \
             applied: leases may last for the default, so they abstain for {} in all, and for {} more at most",
            addresses.join(", "),
            whole_seconds(lasts),
            whole_seconds(left)
        ))
    }
}

/// Rounded up.
fn whole_seconds(time: Duration) -> humantime::FormattedDuration {
    humantime::format_duration(Duration::from_secs(time.as_secs() + u64::from(time.subsec_nanos() > 0)))
}

impl NodeReport {
    fn warnings(&self) -> Vec<String> {
        let address = &self.address;
        let view = match &self.view {
            Ok(view) => view,
            Err(error) if error.kind().is_transient() => return Vec::new(),
            Err(error) => return vec![format!("{address} does not count: {error}")],
        };
        let evicts = view.evicts.as_ref().map(|policy| {
            format!(
                "{address} may drop locks when its memory is full: its maxmemory-policy is {policy}, not noeviction"
            )
        });
        let by_clock = self.recovery.filter(|recovery| *recovery == Recovery::ByClock).map(|_| {
            format!("{address} votes again, but too few of the other nodes kept their data: rising tokens now depend on its clock alone")
        });
        let ahead = Duration::from_micros(view.counter.saturating_sub(view.clock.0));
        let ahead = (ahead > AHEAD_MAX).then(|| {
            format!(
                "the token counter of {address} is {} ahead of its clock: some clock was wrong",
                humantime::format_duration(ahead)
            )
        });
        evicts.into_iter().chain(by_clock).chain(ahead).collect()
    }
}

/// The state of one node.
#[derive(Clone, Debug)]
pub struct NodeReport {
    /// Its address.
    pub address: String,
    /// Its last answer.
    pub view: Result<View, BackendError>,
    /// How its counter was recovered, if it began to vote in this pass.
    pub recovery: Option<Recovery>,
    /// How long until its dwell is over at the latest, provided that this client keeps running, or, in a pass that only
    /// looks, that others run passes.
    pub votes_in: Option<Duration>,
    /// How long it abstains in all, if that is longer than `max_ttl`. It knows of no deployment, and too few of the others vote
    /// to tell which `max_ttl` applied to it: those that remember one may have been left behind by a move that raised it.
    pub beyond_max_ttl: Option<Duration>,
}

/// How a counter was recovered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Recovery {
    /// From enough of the others, or of the nodes that were moved here: no token can be drawn twice.
    FromOthers,
    /// Too few of the others remembered, so rising tokens depend on the node's clock alone.
    ByClock,
}
