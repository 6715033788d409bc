//! Recovery: a node that lost its memory must not vote before everything that it may have forgotten has expired.
//!
//! A pass looks at all nodes. A node that has forgotten is marked with a fresh epoch. From then on it abstains, and all nodes
//! record that. Its dwell lasts for the longest ttl in use if enough of the others know that, and for `max_ttl` otherwise. The
//! dwell is over when this client has measured it, or when a majority of the nodes has records that are old enough; so
//! processes that live for a second can complete it together. Then, and not before, the highest counter of the others is
//! read, and the node is installed with it. Each step compares before it sets, so any number of clients may run passes at
//! once, and each pass may end at any step.
//!
//! Reading order: here (the steps of a pass) · `identity` (which answers count) · `dwell` (how long a node abstains) ·
//! `records` (since when) · `moving` (how a deployment becomes another one) · `outcome` and `report` (what was found).

mod dwell;
mod identity;
mod moving;
mod outcome;
mod records;
mod report;
mod serialized;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use lock_core::node::{Ask, Epoch, Membership, NodeState, Record, Recording, Told, View};
use lock_core::{BackendError, FencingToken, Moment, drift};

use super::nodes::Nodes;
use super::outgoing::{NodeId, Outcome, Outgoing};
use super::trouble::refusal;

pub use report::{NodeReport, Recovery, Report};

/// No dwell is shorter, however short the leases are that the others know. Since the look at them, a longer ttl may
/// have been announced, and a claim granted and forgotten. Chosen: more than an announcement or a look takes, and about
/// as long as a restart.
const DWELL_MIN: Duration = Duration::from_secs(2);

/// Answers that arrive within less than this hold for all their nodes at the same time: none can have forgotten what it
/// said, dwelled and returned.
pub(super) fn at_once() -> Duration {
    DWELL_MIN.saturating_sub(drift(DWELL_MIN))
}

/// What a recovery pass is for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// To restore every node that may vote.
    Watch,
    /// To look, without changing anything.
    Look,
    /// To declare that the deployment is new: no node has ever belonged to one, so no dwell is needed.
    Init,
    /// To move these nodes to another deployment. They abstain as if they had forgotten.
    Move(Arc<Membership>),
    /// To look, and to add unused nodes to this deployment if it succeeds the given one, which has no majority left
    /// after the move.
    TakeOver(Arc<Membership>),
}

/// One recovery pass.
#[derive(Debug)]
pub(super) struct Pass {
    purpose: Purpose,
    epochs: Vec<Epoch>,
    within: Duration,
    phase: Phase,
    looked_at: Moment,
    open: usize,
    views: Vec<Result<View, BackendError>>,
    /// The nodes whose view came so late that the others' may be out of date.
    late: BTreeSet<NodeId>,
    /// The nodes that answered and belong to another deployment, and the number of the move that led there.
    strangers: BTreeMap<NodeId, u64>,
    /// The nodes that vote in an epoch that is not the last one of their address.
    suspects: BTreeMap<NodeId, Epoch>,
    /// What the nodes have recorded about each other.
    records: BTreeMap<NodeId, Vec<Record>>,
    /// Why a node could not record anything.
    record_failure: Option<BackendError>,
    dwells: BTreeMap<NodeId, Dwell>,
    recoveries: BTreeMap<NodeId, Recovery>,
    verdict: Option<Result<Report, BackendError>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Look,
    Mark,
    Record,
    Confirm,
    Move,
    Install,
    Over,
}

/// How long a node has to abstain.
#[derive(Clone, Copy, Debug)]
struct Dwell {
    epoch: Epoch,
    lasts: Duration,
    longest: Duration,
    recovery: Recovery,
}

impl Pass {
    /// Looks at all nodes. `epochs` are fresh, one for each node, in case it has forgotten.
    pub(super) fn begin(
        nodes: &mut Nodes,
        now: Moment,
        purpose: Purpose,
        within: Duration,
        epochs: Vec<Epoch>,
    ) -> Self {
        nodes.watch.in_flight = Some(now);
        let mut pass = Self {
            purpose,
            epochs,
            within,
            phase: Phase::Look,
            looked_at: now,
            open: 0,
            views: nodes.ids().map(|_| Err(refusal("it was not asked", "ask again"))).collect(),
            late: BTreeSet::new(),
            strangers: BTreeMap::new(),
            suspects: BTreeMap::new(),
            records: BTreeMap::new(),
            record_failure: None,
            dwells: BTreeMap::new(),
            recoveries: BTreeMap::new(),
            verdict: None,
        };
        for node in nodes.ids() {
            pass.send(nodes, node, Ask::Look);
        }
        pass
    }

    pub(super) fn heard(&mut self, nodes: &mut Nodes, now: Moment, sent: &Outgoing, outcome: Outcome) {
        // The node had not confirmed that release.
        if matches!(sent.ask, Ask::Release(_)) {
            return;
        }
        self.open -= 1;
        self.take_in(now, sent, outcome);
        self.go_on(nodes, now);
    }

    /// Once all nodes that were asked have answered or failed: takes the next steps, up to one that waits for nodes.
    fn go_on(&mut self, nodes: &mut Nodes, now: Moment) {
        while self.open == 0 && self.phase != Phase::Over {
            let done = match self.phase {
                Phase::Look => self.after_look(nodes),
                Phase::Mark => self.after_mark(nodes, now),
                Phase::Record => self.after_record(nodes),
                Phase::Confirm => self.after_confirm(nodes, now),
                Phase::Move => Ok(self.move_blank(nodes)),
                Phase::Install => Ok(self.after_install(nodes)),
                Phase::Over => Ok(Phase::Over),
            };
            match done {
                Ok(Phase::Over) => self.end(nodes, now),
                Ok(next) => self.phase = next,
                Err(error) => self.refuse(nodes, now, error),
            }
        }
    }

    /// Marks the nodes that have forgotten.
    fn after_look(&mut self, nodes: &mut Nodes) -> Result<Phase, BackendError> {
        self.check_identity(nodes)?;
        match self.purpose.clone() {
            Purpose::Look => {
                self.read_records(nodes);
                return Ok(Phase::Record);
            }
            Purpose::Move(membership) => return self.move_all(nodes, &membership),
            Purpose::Init => self.check_nobody_was_here(nodes)?,
            Purpose::Watch | Purpose::TakeOver(_) => {}
        }
        for node in nodes.ids() {
            if let Some(ask) = self.marking(nodes, node) {
                self.send(nodes, node, ask);
            }
        }
        Ok(Phase::Mark)
    }

    /// Records at all nodes which nodes abstain.
    fn after_mark(&mut self, nodes: &mut Nodes, now: Moment) -> Result<Phase, BackendError> {
        // Another client may have been first.
        self.set_strangers_aside(nodes);
        let abstaining = self.abstaining();
        for (_, epoch) in &abstaining {
            nodes.watch.seen.entry(*epoch).or_insert(now);
        }
        nodes.watch.seen.retain(|epoch, _| abstaining.iter().any(|(_, abstaining)| abstaining == epoch));
        // A server that is reached under a second address is not the server of that address.
        let own = abstaining.into_iter().filter(|(node, _)| !self.is_double(*node));
        let begin = own.map(|(node, epoch)| (node, Recording::Begins(epoch))).collect();
        self.record(nodes, &begin);
        Ok(Phase::Record)
    }

    /// Looks again at nodes that seem to have been replaced: they may have forgotten since the first look.
    fn after_record(&mut self, nodes: &mut Nodes) -> Result<Phase, BackendError> {
        self.suspects = self.superseded(nodes);
        for node in self.suspects.keys().copied().collect::<Vec<_>>() {
            self.send(nodes, node, Ask::Look);
        }
        Ok(Phase::Confirm)
    }

    /// Installs the nodes whose dwell was over before the counters were read, with the highest counter.
    fn after_confirm(&mut self, nodes: &mut Nodes, now: Moment) -> Result<Phase, BackendError> {
        self.set_superseded_aside(nodes);
        self.set_doubles_aside(nodes);
        self.check_majority_is_left(nodes)?;
        if self.purpose == Purpose::Look {
            self.foresee(nodes);
            return Ok(Phase::Over);
        }
        self.measure_dwells(nodes);
        let counter = self.highest_counter();
        let is_open = self.undecided_move(nodes, |node| self.has_waited(nodes, now, node)).is_some();
        let dwells = if is_open { BTreeMap::new() } else { self.dwells.clone() };
        for (node, dwell) in dwells {
            let ours = self.views[node.0].as_ref().is_ok_and(|view| self.may_be_ours(nodes, view));
            if ours && self.left(nodes, now, node, &dwell).is_zero() {
                let (membership, moves) = (Arc::clone(&nodes.membership), self.moves(nodes));
                let ask = Ask::Install { epoch: dwell.epoch, counter, longest: dwell.longest, moves, membership };
                self.recoveries.insert(node, dwell.recovery);
                self.send(nodes, node, ask);
            }
        }
        self.begin_records_anew(nodes);
        Ok(Phase::Install)
    }

    /// A counter above all tokens comes from a clock that was wrong. Nothing was granted from it, and it would use up the
    /// tokens of the other nodes, too.
    fn highest_counter(&self) -> u64 {
        let counters = self.views.iter().flatten().map(|view| view.counter);
        counters.filter(|counter| *counter <= FencingToken::MAX.get()).max().unwrap_or_default()
    }

    fn take_in(&mut self, now: Moment, sent: &Outgoing, outcome: Outcome) {
        match (&sent.ask, outcome) {
            (Ask::Record { .. }, Ok(Told::Records(answers))) if self.phase == Phase::Record => {
                for (index, recorded) in answers.into_iter().enumerate() {
                    self.records.entry(NodeId(index)).or_default().extend(recorded);
                }
            }
            (Ask::Record { .. }, Err(error)) => self.record_failure = Some(error),
            (Ask::Record { .. }, Ok(_)) => {}
            (_, Ok(Told::View(view))) => {
                self.views[sent.node.0] = Ok(*view);
                if now.since(self.looked_at) >= at_once() {
                    self.late.insert(sent.node);
                }
            }
            (_, Ok(_)) => {}
            (_, Err(error)) => self.views[sent.node.0] = Err(error),
        }
    }

    fn send(&mut self, nodes: &mut Nodes, node: NodeId, ask: Ask) {
        nodes.send(node, ask, self.within);
        self.open += 1;
    }

    fn abstaining(&self) -> Vec<(NodeId, Epoch)> {
        let abstains = |(index, view): (usize, &Result<View, BackendError>)| match view {
            Ok(View { state: NodeState::Abstaining { epoch, .. }, .. }) => Some((NodeId(index), *epoch)),
            Ok(_) | Err(_) => None,
        };
        self.views.iter().enumerate().filter_map(abstains).collect()
    }

    /// The verdict, as soon as it is certain.
    pub(super) fn take_verdict(&mut self) -> Option<Result<Report, BackendError>> {
        self.verdict.take()
    }
}
