//! The steps of a pass: each begins when all nodes that were asked in the last one have answered, or will not.

use std::sync::Arc;
use std::time::Duration;

use lock_core::node::{Ask, Epoch, NodeState, Noting, Told};
use lock_core::{BackendError, FencingToken, Moment};

use super::super::node::NodeId;
use super::super::nodes::Nodes;
use super::super::outgoing::{Outcome, Outgoing};
use super::dwell::at_once;
use super::pass::{Pass, Phase, Purpose};

impl Pass {
    /// Looks at all nodes. `epochs` are fresh, one for each node, in case it has forgotten.
    pub(in super::super) fn begin(
        nodes: &mut Nodes,
        now: Moment,
        purpose: Purpose,
        within: Duration,
        epochs: Vec<Epoch>,
    ) -> Self {
        nodes.watch.under_way = Some(now);
        let mut pass = Self::new(nodes, now, purpose, within, epochs);
        for node in nodes.ids() {
            pass.send(nodes, node, Ask::Look);
        }
        pass
    }

    pub(in super::super) fn heard(&mut self, nodes: &mut Nodes, now: Moment, sent: &Outgoing, outcome: Outcome) {
        // It was owed.
        if matches!(sent.ask, Ask::Release(_)) {
            return;
        }
        self.open -= 1;
        self.take_in(now, sent, outcome);
        self.go_on(nodes, now);
    }

    /// Everybody asked has answered, or will not: what comes next, until there is something to wait for.
    fn go_on(&mut self, nodes: &mut Nodes, now: Moment) {
        while self.open == 0 && self.phase != Phase::Over {
            let done = match self.phase {
                Phase::Look => self.after_look(nodes),
                Phase::Mark => self.after_mark(nodes, now),
                Phase::Note => self.after_note(nodes),
                Phase::Confirm => self.after_confirm(nodes, now),
                Phase::Install | Phase::Over => Ok(Phase::Over),
            };
            match done {
                Ok(Phase::Over) => self.end(nodes, now),
                Ok(next) => self.phase = next,
                Err(error) => self.refuse(nodes, now, error),
            }
        }
    }

    /// Who has forgotten is marked.
    fn after_look(&mut self, nodes: &mut Nodes) -> Result<Phase, BackendError> {
        self.check_identity(nodes)?;
        match self.purpose.clone() {
            Purpose::Look => {
                self.read_notes(nodes);
                return Ok(Phase::Note);
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

    /// What has a node abstain that may not go on as it is.
    fn marking(&self, nodes: &Nodes, node: NodeId) -> Option<Ask> {
        let view = self.views[node.0].as_ref().ok()?;
        let (epoch, membership) = (self.epochs[node.0], Arc::clone(&nodes.membership));
        if let Some(theirs) = self.left_behind(nodes, view) {
            return Some(Ask::Move { epoch, membership, predecessor: Arc::new(theirs.clone()) });
        }
        if !self.may_be_ours(nodes, view) {
            return None;
        }
        if let Purpose::TakeOver(predecessor) = &self.purpose
            && view.membership.is_none()
            && self.was_moved(nodes, predecessor)
        {
            return Some(Ask::Move { epoch, membership, predecessor: Arc::clone(predecessor) });
        }
        (view.state == NodeState::Forgetful).then_some(Ask::Mark { epoch, membership })
    }

    /// That a node abstains is noted everywhere.
    fn after_mark(&mut self, nodes: &mut Nodes, now: Moment) -> Result<Phase, BackendError> {
        // Another client may have been first.
        self.set_strangers_aside(nodes);
        let abstaining = self.abstaining();
        for (_, epoch) in &abstaining {
            nodes.watch.seen.entry(*epoch).or_insert(now);
        }
        nodes.watch.seen.retain(|epoch, _| abstaining.iter().any(|(_, abstaining)| abstaining == epoch));
        // What is reached under a second address is not the server of that address.
        let own = abstaining.into_iter().filter(|(node, _)| !self.is_double(*node));
        let begin = own.map(|(node, epoch)| (node, Noting::Begins(epoch))).collect();
        self.note(nodes, &begin);
        Ok(Phase::Note)
    }

    /// Who seems to have been replaced may have forgotten since it was looked at: it is looked at again.
    fn after_note(&mut self, nodes: &mut Nodes) -> Result<Phase, BackendError> {
        self.suspects = self.superseded(nodes);
        for node in self.suspects.keys().copied().collect::<Vec<_>>() {
            self.send(nodes, node, Ask::Look);
        }
        Ok(Phase::Confirm)
    }

    /// Whose dwell was over before the counters were read is installed with the highest of them.
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
        for (node, dwell) in self.dwells.clone() {
            let ours = self.views[node.0].as_ref().is_ok_and(|view| self.may_be_ours(nodes, view));
            if ours && self.left(nodes, now, node, &dwell).is_zero() {
                let membership = Arc::clone(&nodes.membership);
                let ask = Ask::Install { epoch: dwell.epoch, counter, longest: dwell.longest, membership };
                self.recoveries.insert(node, dwell.recovery);
                self.send(nodes, node, ask);
            }
        }
        self.begin_notes_anew(nodes);
        Ok(Phase::Install)
    }

    /// Of a counter that is above all tokens nothing was granted: some clock was wrong, and it would use up the others, too.
    fn highest_counter(&self) -> u64 {
        let counters = self.views.iter().flatten().map(|view| view.counter);
        counters.filter(|counter| *counter <= FencingToken::MAX.get()).max().unwrap_or_default()
    }

    fn take_in(&mut self, now: Moment, sent: &Outgoing, outcome: Outcome) {
        match (&sent.ask, outcome) {
            (Ask::Note { .. }, Ok(Told::Noted(answers))) if self.phase == Phase::Note => {
                for (index, noted) in answers.into_iter().enumerate() {
                    self.notes.entry(NodeId(index)).or_default().extend(noted);
                }
            }
            (Ask::Note { .. }, Err(error)) => self.note_failure = Some(error),
            (Ask::Note { .. }, Ok(_)) => {}
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
}
