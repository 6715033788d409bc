//! What a pass of the guard found, for programs and for operators.

use std::time::Duration;

use lock_core::BackendError;
use lock_core::node::View;

/// How far a counter may be ahead of its node's clock before that is worth telling.
const AHEAD_MAX: Duration = Duration::from_secs(10);

/// What a pass found, in the end.
#[derive(Clone, Debug)]
pub struct Report {
    /// The nodes, in the order of the list.
    pub nodes: Vec<NodeReport>,
    /// How many are needed for anything.
    pub majority: usize,
}

impl Report {
    /// Whether enough nodes answered for anything to come of it.
    ///
    /// # Errors
    /// Why the first of the others did not.
    pub fn check_reached(&self) -> Result<(), BackendError> {
        let reached = self.nodes.iter().filter(|node| node.view.is_ok()).count();
        match self.nodes.iter().find_map(|node| node.view.as_ref().err()) {
            Some(error) if reached < self.majority => Err(error.clone()),
            Some(_) | None => Ok(()),
        }
    }

    /// What operators should know, in words.
    pub fn warnings(&self) -> Vec<String> {
        let count = self.nodes.len();
        let even = count
            .is_multiple_of(2)
            .then(|| format!("{count} nodes bear no more failures than {}: an odd number is better", count - 1));
        even.into_iter().chain(self.nodes.iter().flat_map(NodeReport::warnings)).collect()
    }
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
            format!("{address} votes again, and too few of the others remembered: its clock alone keeps tokens rising")
        });
        let ahead = Duration::from_micros(view.counter.saturating_sub(view.clock.0));
        let ahead = (ahead > AHEAD_MAX).then(|| {
            format!("{address} counts {} ahead of its clock: some clock was wrong", humantime::format_duration(ahead))
        });
        evicts.into_iter().chain(by_clock).chain(ahead).collect()
    }
}

/// How one node is.
#[derive(Clone, Debug)]
pub struct NodeReport {
    /// Its address.
    pub address: String,
    /// What it said last.
    pub view: Result<View, BackendError>,
    /// How it came to vote in this pass.
    pub recovery: Option<Recovery>,
    /// How long until its dwell is over at the latest, while this client lives. Of a pass that only looks: while others pass.
    pub votes_in: Option<Duration>,
}

/// How a counter was recovered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Recovery {
    /// From enough of the others: no token can be drawn twice.
    FromOthers,
    /// Too few of the others remembered: the node's clock alone keeps the tokens rising.
    ByClock,
}
