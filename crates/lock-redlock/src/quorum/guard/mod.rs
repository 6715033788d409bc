//! The restart guard: a node that lost its memory must not vote before everything is over that it may have forgotten.
//!
//! A pass looks at all nodes. One that has forgotten is marked with a fresh epoch, and from then on abstains; that is noted at
//! all nodes. Its dwell lasts for the longest ttl in use, which enough of the others know, and otherwise for the longest that
//! is allowed. It is over when this client has measured it itself, or when a majority of the nodes has notes that are old
//! enough: so processes that live for a second can end it between them. Then, and not before, the highest counter of
//! the others is read, and the node is installed with it. Each step compares before it sets, so any number of clients may
//! pass at once, and each pass may end anywhere.
//!
//! Reading order: here (the steps of a pass) · `identity` (which answers count) · `dwell` (how long a node abstains) ·
//! `notes` (since
//! when) · `moving` (how a deployment becomes another one) · `outcome` and
//! `report` (what was found).

mod dwell;
mod identity;
mod moving;
mod notes;
mod outcome;
mod report;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use lock_core::node::{Ask, Epoch, Membership, NodeState, Noted, Noting, Told, View};
use lock_core::{BackendError, FencingToken, Moment};

use super::{Errand, Letter, NodeId, Outcome, Quorum, refusal};
use dwell::Dwell;
pub(super) use dwell::at_once;
pub use report::{NodeReport, Recovery, Report};

/// Why the guard passes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// To see that all nodes vote that may.
    Watch,
    /// To only look.
    Look,
    /// To declare that the deployment is new: no node ever belonged to one, and nothing has to be waited for.
    Found,
    /// To have these nodes belong to another deployment from now on. They abstain as if they had forgotten.
    Move(Arc<Membership>),
    /// To watch, and to have the nodes that nobody used belong to this deployment from now on, where it follows on the one
    /// given: so many of that one's nodes were moved that it cannot go on.
    TakeOver(Arc<Membership>),
}

/// One pass.
#[derive(Debug)]
pub struct Guard {
    purpose: Purpose,
    epochs: Vec<Epoch>,
    within: Duration,
    phase: Phase,
    looked_at: Moment,
    open: usize,
    views: Vec<Result<View, BackendError>>,
    /// Whose view came so late that the others' may be out of date.
    late: BTreeSet<NodeId>,
    /// Who answered and belongs to another deployment.
    strangers: BTreeSet<NodeId>,
    /// Who votes in an epoch that is not the last one of its address.
    suspects: BTreeMap<NodeId, Epoch>,
    /// What the nodes have noted of each.
    notes: BTreeMap<NodeId, Vec<Noted>>,
    /// Why a node could not note anything.
    note_failure: Option<BackendError>,
    dwells: BTreeMap<NodeId, Dwell>,
    recoveries: BTreeMap<NodeId, Recovery>,
    letters: VecDeque<Letter>,
    verdict: Option<Result<Report, BackendError>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Look,
    Mark,
    Note,
    Confirm,
    Install,
    Over,
}

impl Guard {
    /// Looks at all nodes. `epochs` are fresh, one for each node, in case it has forgotten.
    pub fn begin(quorum: &mut Quorum, now: Moment, purpose: Purpose, within: Duration, epochs: Vec<Epoch>) -> Self {
        quorum.watch.under_way = Some(now);
        let mut errand = Self {
            purpose,
            epochs,
            within,
            phase: Phase::Look,
            looked_at: now,
            open: 0,
            views: Vec::new(),
            late: BTreeSet::new(),
            strangers: BTreeSet::new(),
            suspects: BTreeMap::new(),
            notes: BTreeMap::new(),
            note_failure: None,
            dwells: BTreeMap::new(),
            recoveries: BTreeMap::new(),
            letters: VecDeque::new(),
            verdict: None,
        };
        errand.views = quorum.nodes().map(|_| Err(refusal("it was not asked", "ask again"))).collect();
        for node in quorum.nodes() {
            errand.send(quorum, node, Ask::Look);
        }
        errand
    }

    fn send(&mut self, quorum: &mut Quorum, node: NodeId, ask: Ask) {
        self.letters.push_back(quorum.letter(node, ask, self.within));
        self.open += 1;
    }

    /// Everybody asked has answered, or will not: what comes next, until there is something to wait for.
    fn go_on(&mut self, quorum: &mut Quorum, now: Moment) {
        while self.open == 0 && self.phase != Phase::Over {
            let done = match self.phase {
                Phase::Look => self.after_look(quorum),
                Phase::Mark => self.after_mark(quorum, now),
                Phase::Note => self.after_note(quorum),
                Phase::Confirm => self.after_confirm(quorum, now),
                Phase::Install | Phase::Over => Ok(Phase::Over),
            };
            match done {
                Ok(Phase::Over) => self.end(quorum, now),
                Ok(next) => self.phase = next,
                Err(error) => self.refuse(quorum, now, error),
            }
        }
    }

    /// Who has forgotten is marked.
    fn after_look(&mut self, quorum: &mut Quorum) -> Result<Phase, BackendError> {
        self.check_identity(quorum)?;
        match self.purpose.clone() {
            Purpose::Look => {
                self.read_notes(quorum);
                return Ok(Phase::Note);
            }
            Purpose::Move(membership) => return self.move_all(quorum, &membership),
            Purpose::Found => self.check_nobody_was_here(quorum)?,
            Purpose::Watch | Purpose::TakeOver(_) => {}
        }
        for node in quorum.nodes() {
            if let Some(ask) = self.marking(quorum, node) {
                self.send(quorum, node, ask);
            }
        }
        Ok(Phase::Mark)
    }

    /// What has a node abstain that may not go on as it is.
    fn marking(&self, quorum: &Quorum, node: NodeId) -> Option<Ask> {
        let view = self.views[node.0].as_ref().ok()?;
        let (epoch, membership) = (self.epochs[node.0], Arc::clone(&quorum.membership));
        if let Some(theirs) = self.left_behind(quorum, view) {
            return Some(Ask::Move { epoch, membership, predecessor: Arc::new(theirs.clone()) });
        }
        if !self.may_be_ours(quorum, view) {
            return None;
        }
        if let Purpose::TakeOver(predecessor) = &self.purpose
            && view.membership.is_none()
            && self.was_moved(quorum, predecessor)
        {
            return Some(Ask::Move { epoch, membership, predecessor: Arc::clone(predecessor) });
        }
        (view.state == NodeState::Forgetful).then_some(Ask::Mark { epoch, membership })
    }

    /// That a node abstains is noted everywhere.
    fn after_mark(&mut self, quorum: &mut Quorum, now: Moment) -> Result<Phase, BackendError> {
        // Another client may have been first.
        self.set_strangers_aside(quorum);
        let abstaining = self.abstaining();
        for (_, epoch) in &abstaining {
            quorum.watch.seen.entry(*epoch).or_insert(now);
        }
        quorum.watch.seen.retain(|epoch, _| abstaining.iter().any(|(_, abstaining)| abstaining == epoch));
        // What is reached under a second address is not the server of that address.
        let own = abstaining.into_iter().filter(|(node, _)| !self.is_double(*node));
        let begin = own.map(|(node, epoch)| (node, Noting::Begins(epoch))).collect();
        self.note(quorum, &begin);
        Ok(Phase::Note)
    }

    fn abstaining(&self) -> Vec<(NodeId, Epoch)> {
        let abstains = |(index, view): (usize, &Result<View, BackendError>)| match view {
            Ok(View { state: NodeState::Abstaining { epoch, .. }, .. }) => Some((NodeId(index), *epoch)),
            Ok(_) | Err(_) => None,
        };
        self.views.iter().enumerate().filter_map(abstains).collect()
    }

    /// Who seems to have been replaced may have forgotten since it was looked at: it is looked at again.
    fn after_note(&mut self, quorum: &mut Quorum) -> Result<Phase, BackendError> {
        self.suspects = self.superseded(quorum);
        for node in self.suspects.keys().copied().collect::<Vec<_>>() {
            self.send(quorum, node, Ask::Look);
        }
        Ok(Phase::Confirm)
    }

    /// Whose dwell was over before the counters were read is installed with the highest of them.
    fn after_confirm(&mut self, quorum: &mut Quorum, now: Moment) -> Result<Phase, BackendError> {
        self.set_superseded_aside(quorum);
        self.set_doubles_aside(quorum);
        self.check_majority_is_left(quorum)?;
        if self.purpose == Purpose::Look {
            self.foresee(quorum);
            return Ok(Phase::Over);
        }
        self.measure_dwells(quorum);
        let counter = self.highest_counter();
        for (node, dwell) in self.dwells.clone() {
            let ours = self.views[node.0].as_ref().is_ok_and(|view| self.may_be_ours(quorum, view));
            if ours && self.left(quorum, now, node, &dwell).is_zero() {
                let membership = Arc::clone(&quorum.membership);
                let ask = Ask::Install { epoch: dwell.epoch, counter, longest: dwell.longest, membership };
                self.recoveries.insert(node, dwell.recovery);
                self.send(quorum, node, ask);
            }
        }
        self.begin_notes_anew(quorum);
        Ok(Phase::Install)
    }

    /// Of a counter that is above all tokens nothing was granted: some clock was wrong, and it would use up the others, too.
    fn highest_counter(&self) -> u64 {
        let counters = self.views.iter().flatten().map(|view| view.counter);
        counters.filter(|counter| *counter <= FencingToken::MAX.get()).max().unwrap_or_default()
    }

    fn take_in(&mut self, now: Moment, letter: &Letter, outcome: Outcome) {
        match (&letter.ask, outcome) {
            (Ask::Note { .. }, Ok(Told::Noted(answers))) if self.phase == Phase::Note => {
                for (index, noted) in answers.into_iter().enumerate() {
                    self.notes.entry(NodeId(index)).or_default().extend(noted);
                }
            }
            (Ask::Note { .. }, Err(error)) => self.note_failure = Some(error),
            (Ask::Note { .. }, Ok(_)) => {}
            (_, Ok(Told::View(view))) => {
                self.views[letter.node.0] = Ok(*view);
                if now.since(self.looked_at) >= at_once() {
                    self.late.insert(letter.node);
                }
            }
            (_, Ok(_)) => {}
            (_, Err(error)) => self.views[letter.node.0] = Err(error),
        }
    }
}

impl Errand for Guard {
    type Verdict = Result<Report, BackendError>;

    fn next_letter(&mut self) -> Option<Letter> {
        self.letters.pop_front()
    }

    fn heard(&mut self, quorum: &mut Quorum, now: Moment, letter: &Letter, outcome: Outcome) {
        let owed = quorum.settle(now, letter, &outcome);
        self.letters.extend(owed);
        if matches!(letter.ask, Ask::Release(_)) {
            return;
        }
        self.open -= 1;
        self.take_in(now, letter, outcome);
        self.go_on(quorum, now);
    }

    fn take_verdict(&mut self) -> Option<Self::Verdict> {
        self.verdict.take()
    }
}
