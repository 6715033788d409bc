//! The restart guard: a node that lost its memory must not vote before everything is over that it may have forgotten.
//!
//! A pass looks at all nodes. One that has forgotten is marked with a fresh epoch, and from then on abstains; that is noted at
//! all nodes. Its dwell lasts for the longest ttl in use, which enough of the others know, and otherwise for the longest that
//! is allowed. It is over when this client has measured it itself, or when a majority of the nodes has notes that are old
//! enough: so processes that live for a second can end it between them. Then, and not before, the highest counter of
//! the others is read, and the node is installed with it. Each step compares before it sets, so any number of clients may
//! pass at once, and each pass may end anywhere.

mod identity;
mod report;

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use lock_core::node::{Ask, Epoch, Membership, Standing, Told, View};
use lock_core::{BackendError, Moment, drift};

use super::{Errand, Letter, NodeId, Outcome, Quorum, refusal};
pub use report::{NodeReport, Recovery, Report};

/// How much longer than the longest lease a note of an epoch is kept: long enough for clients that come once an hour.
const KEEP_BEYOND: Duration = Duration::from_secs(2 * 60 * 60);

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
    notes: BTreeMap<Epoch, Vec<Duration>>,
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
            notes: BTreeMap::new(),
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
                Phase::Note => self.after_note(quorum, now),
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
                self.foresee(quorum);
                return Ok(Phase::Over);
            }
            Purpose::Move(membership) => return self.move_all(quorum, &membership),
            Purpose::Found => self.check_nobody_was_here(quorum)?,
            Purpose::Watch => {}
        }
        for node in quorum.nodes() {
            if matches!(&self.views[node.0], Ok(view) if view.standing == Standing::Forgetful) {
                self.send(quorum, node, Ask::Mark(self.epochs[node.0]));
            }
        }
        Ok(Phase::Mark)
    }

    /// How long each has to wait that does not vote, by the node's own word for when it began.
    fn foresee(&mut self, quorum: &Quorum) {
        for node in quorum.nodes() {
            let (epoch, since) = match &self.views[node.0] {
                Ok(View { standing: Standing::Abstaining { epoch, since }, .. }) => (*epoch, *since),
                Ok(View { standing: Standing::Forgetful, .. }) => (self.epochs[node.0], Duration::ZERO),
                Ok(View { standing: Standing::Voting(_), .. }) | Err(_) => continue,
            };
            self.notes.insert(epoch, vec![since; quorum.majority()]);
            self.dwells.insert(node, self.dwell(quorum, node, epoch));
        }
    }

    fn move_all(&mut self, quorum: &mut Quorum, to: &Arc<Membership>) -> Result<Phase, BackendError> {
        if to.max_ttl < quorum.membership.max_ttl {
            let remedy = "keep max_ttl, or make it longer: older leases may last that long";
            return Err(refusal("the new deployment's max_ttl is shorter", remedy));
        }
        // A blank one has nothing to move, and may not belong here at all.
        let knows = |node: &NodeId| matches!(&self.views[node.0], Ok(view) if view.membership.is_some());
        let reached: Vec<_> = quorum.nodes().filter(knows).collect();
        // No majority of the earlier deployment can do without one of so many.
        if reached.len() < quorum.blocking() {
            let remedy = "see that they run, and that the first URL names the nodes as they are; then move again";
            return Err(refusal("too few nodes answer that know this deployment", remedy));
        }
        for node in reached {
            let moved = matches!(&self.views[node.0], Ok(view) if view.membership.as_ref() == Some(&**to));
            if !moved {
                let (epoch, membership) = (self.epochs[node.0], Arc::clone(to));
                self.send(quorum, node, Ask::Move { epoch, membership });
            }
        }
        Ok(Phase::Install)
    }

    /// That a node abstains is noted everywhere.
    fn after_mark(&mut self, quorum: &mut Quorum, now: Moment) -> Result<Phase, BackendError> {
        let keep = quorum.membership.max_ttl + KEEP_BEYOND;
        for (node, epoch) in self.abstaining() {
            quorum.watch.seen.entry(epoch).or_insert(now);
            let dwell = self.dwell(quorum, node, epoch);
            self.dwells.insert(node, dwell);
        }
        let epochs: Vec<_> = self.dwells.values().map(|dwell| dwell.epoch).collect();
        quorum.watch.seen.retain(|epoch, _| epochs.contains(epoch));
        let listeners: Vec<_> = quorum.nodes().filter(|node| self.views[node.0].is_ok()).collect();
        if self.purpose == Purpose::Watch {
            for epoch in epochs {
                for node in &listeners {
                    self.send(quorum, *node, Ask::Note { epoch, keep });
                }
            }
        }
        Ok(Phase::Note)
    }

    fn abstaining(&self) -> Vec<(NodeId, Epoch)> {
        let abstains = |(index, view): (usize, &Result<View, BackendError>)| match view {
            Ok(View { standing: Standing::Abstaining { epoch, .. }, .. }) => Some((NodeId(index), *epoch)),
            Ok(_) | Err(_) => None,
        };
        self.views.iter().enumerate().filter_map(abstains).collect()
    }

    /// Any lease that this node granted and forgot is known to a majority less itself; so enough of the others include one
    /// that knows its ttl, and one that knows its token.
    fn dwell(&self, quorum: &Quorum, node: NodeId, epoch: Epoch) -> Dwell {
        let others = self.views.iter().enumerate().filter(|(index, _)| *index != node.0);
        let others: Vec<_> = others.filter_map(|(_, view)| view.as_ref().ok()).filter(|view| view.votes()).collect();
        let own = self.views[node.0].as_ref().map_or(Duration::ZERO, |view| view.longest);
        let longest = others.iter().map(|view| view.longest).max().unwrap_or_default().max(own);
        let most = quorum.membership.max_ttl;
        let (lasts, longest, recovery) = if self.purpose == Purpose::Found {
            (Duration::ZERO, longest, Recovery::FromOthers)
        } else if others.len() >= quorum.blocking() {
            (longest + drift(longest), longest, Recovery::FromOthers)
        } else if self.views.iter().all(|view| view.as_ref().is_ok_and(|view| !view.votes())) {
            // Every client has to look anew, and to announce anew.
            (most + drift(most), longest, Recovery::ByClock)
        } else {
            // What was announced is not known to be known, so from now on it counts as everything.
            (most + drift(most), most, Recovery::ByClock)
        };
        Dwell { epoch, lasts, longest, recovery }
    }

    /// Whose dwell was over before the counters were read is installed with the highest of them.
    fn after_note(&mut self, quorum: &mut Quorum, now: Moment) -> Result<Phase, BackendError> {
        let counter = self.views.iter().flatten().map(|view| view.counter).max().unwrap_or_default();
        for (node, dwell) in self.dwells.clone() {
            if self.left(quorum, now, &dwell).is_zero() {
                let membership = Arc::clone(&quorum.membership);
                let ask = Ask::Install { epoch: dwell.epoch, counter, longest: dwell.longest, membership };
                self.recoveries.insert(node, dwell.recovery);
                self.send(quorum, node, ask);
            }
        }
        Ok(Phase::Install)
    }

    /// How long the dwell had to last yet when the counters were read.
    fn left(&self, quorum: &Quorum, now: Moment, dwell: &Dwell) -> Duration {
        let seen = quorum.watch.seen.get(&dwell.epoch).map_or(Duration::ZERO, |seen| self.looked_at.since(*seen));
        let mut notes = self.notes.get(&dwell.epoch).cloned().unwrap_or_default();
        notes.sort_unstable_by(|a, b| b.cmp(a));
        // So old was the youngest of the oldest majority, when the pass began.
        let noted = notes
            .get(quorum.majority() - 1)
            .map_or(Duration::ZERO, |age| age.saturating_sub(now.since(self.looked_at)));
        dwell.lasts.saturating_sub(seen.max(noted))
    }

    fn end(&mut self, quorum: &mut Quorum, now: Moment) {
        for (peer, view) in quorum.peers.iter_mut().zip(&self.views) {
            peer.epoch = match view {
                Ok(View { standing: Standing::Voting(epoch), .. }) => Some(*epoch),
                // It may be back before the next pass.
                Err(error) if error.kind().is_transient() => peer.epoch,
                Ok(_) | Err(_) => None,
            };
        }
        let report = self.report(quorum, now);
        let waits = report.nodes.iter().filter_map(|node| node.votes_in);
        quorum.watch.wait = waits.min().map(|wait| (now, wait));
        quorum.watch.is_blank = report.is_blank();
        quorum.watch.refusal = None;
        quorum.announced = self.announced(quorum);
        self.conclude(quorum, now, Ok(report));
    }

    /// What a majority of voters knows to be the longest ttl.
    fn announced(&self, quorum: &Quorum) -> Duration {
        let mut known: Vec<_> =
            self.views.iter().flatten().filter(|view| view.votes()).map(|view| view.longest).collect();
        known.sort_unstable_by(|a, b| b.cmp(a));
        known.get(quorum.majority() - 1).copied().unwrap_or_default()
    }

    fn refuse(&mut self, quorum: &mut Quorum, now: Moment, error: BackendError) {
        // What was asked for besides says nothing of what may be granted.
        if self.purpose == Purpose::Watch {
            quorum.watch.refusal = Some(error.clone());
        }
        self.conclude(quorum, now, Err(error));
    }

    fn conclude(&mut self, quorum: &mut Quorum, now: Moment, verdict: Result<Report, BackendError>) {
        quorum.watch.under_way = None;
        if self.purpose == Purpose::Watch {
            quorum.watch.last_pass = Some(now);
        }
        self.phase = Phase::Over;
        self.verdict = Some(verdict);
    }

    fn report(&self, quorum: &Quorum, now: Moment) -> Report {
        let nodes = quorum.peers.iter().zip(&self.views).enumerate().map(|(index, (peer, view))| {
            let dwell = self.dwells.get(&NodeId(index));
            let abstains = view.as_ref().is_ok_and(|view| !view.votes());
            NodeReport {
                address: peer.address.clone(),
                view: view.clone(),
                recovery: self.recoveries.get(&NodeId(index)).copied().filter(|_| !abstains),
                votes_in: dwell.filter(|_| abstains).map(|dwell| self.left(quorum, now, dwell)),
            }
        });
        Report { nodes: nodes.collect(), majority: quorum.majority() }
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
        match (&letter.ask, outcome) {
            (Ask::Note { epoch, .. }, Ok(Told::Noted(age))) => self.notes.entry(*epoch).or_default().push(age),
            (Ask::Note { .. }, _) => {}
            (_, Ok(Told::View(view))) => self.views[letter.node.0] = Ok(*view),
            (_, Ok(_)) => {}
            (_, Err(error)) => self.views[letter.node.0] = Err(error),
        }
        self.go_on(quorum, now);
    }

    fn take_verdict(&mut self) -> Option<Self::Verdict> {
        self.verdict.take()
    }
}
