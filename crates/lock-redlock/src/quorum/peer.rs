//! What is known of one node: whether it votes, whether it answers, what it is still owed.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use lock_core::node::Epoch;
use lock_core::{BackendError, Certainty, Moment, Owner, Parting, Ttl};

/// A node that did not answer is asked again after so long at first, and twice as long each time ...
const PROBE_MIN: Duration = Duration::from_millis(50);
/// ... up to this.
const PROBE_MAX: Duration = Duration::from_secs(1);
/// How soon a node is told again of a release that it did not take.
pub(super) const OWED_REST: Duration = Duration::from_secs(1);
/// How many owners are kept in mind for a node that does not answer. What is beyond runs out with its lease.
const OWED_MAX: usize = 1024;

#[derive(Debug)]
pub(super) struct Peer {
    pub(super) address: String,
    /// The epoch that it votes in, as far as this client knows.
    pub(super) epoch: Option<Epoch>,
    /// Why it cannot be a node as it is, by the last pass of the guard.
    pub(super) fault: Option<BackendError>,
    pub(super) trust: Trust,
    /// How many letters are under way.
    pub(super) under_way: usize,
    /// Claims that were not answered.
    unanswered: BTreeMap<Owner, Unanswered>,
    owed: BTreeMap<Owner, Owed>,
}

/// What is known of a claim without an answer.
#[derive(Debug)]
enum Unanswered {
    /// It is under way.
    UnderWay,
    /// It is under way, and a release was sent after it.
    Parted(Arc<Parting>),
    /// It may arrive at any time, or never.
    Lost,
}

/// A release that it has not taken.
#[derive(Debug)]
struct Owed {
    /// Not to be sent again before this.
    due: Moment,
    /// Whatever it would end is over by then.
    until: Moment,
    parting: Arc<Parting>,
}

/// Whether a node can be expected to answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Trust {
    Trusted,
    /// It did not answer the last time, and is asked again at that moment, by one letter.
    Suspect {
        probe_at: Moment,
        pause: Duration,
    },
}

impl Peer {
    pub(super) fn new(address: String) -> Self {
        Self {
            address,
            epoch: None,
            fault: None,
            trust: Trust::Trusted,
            under_way: 0,
            unanswered: BTreeMap::new(),
            owed: BTreeMap::new(),
        }
    }

    pub(super) fn is_trusted(&self) -> bool {
        self.trust == Trust::Trusted
    }

    /// Whether it may be asked; who may ask a suspect is its probe.
    pub(super) fn may_be_asked(&mut self, now: Moment) -> bool {
        match &mut self.trust {
            Trust::Trusted => true,
            Trust::Suspect { probe_at, .. } if now < *probe_at => false,
            Trust::Suspect { probe_at, pause } => {
                *pause = (*pause * 2).min(PROBE_MAX);
                *probe_at = now + *pause;
                true
            }
        }
    }

    pub(super) fn claims(&mut self, owner: Owner) {
        if self.unanswered.len() == OWED_MAX {
            self.unanswered.pop_first();
        }
        self.unanswered.insert(owner, Unanswered::UnderWay);
    }

    /// It answered the claim of this owner, or surely never had it.
    pub(super) fn answered_claim(&mut self, owner: Owner) {
        self.unanswered.remove(&owner);
    }

    /// No answer came, so the claim may arrive at any time, also after the release that was sent behind it.
    pub(super) fn lost_claim(&mut self, now: Moment, owner: Owner, until: Moment) {
        match self.unanswered.insert(owner, Unanswered::Lost) {
            Some(Unanswered::Parted(parting)) => self.owe(&parting, now, until),
            Some(Unanswered::UnderWay | Unanswered::Lost) | None => {}
        }
    }

    /// What it has to be told when an owner leaves.
    pub(super) fn farewell(&mut self, parting: &Arc<Parting>) -> Arc<Parting> {
        let ttl = match self.unanswered.get_mut(&parting.owner) {
            None => return Arc::clone(parting),
            Some(Unanswered::Lost) => parting.ttl,
            // Most likely it comes first. If not, that is seen soon, and said then.
            Some(under_way) => {
                *under_way = Unanswered::Parted(Arc::clone(parting));
                Ttl::MIN
            }
        };
        Arc::new(Parting { ttl, certainty: Certainty::Unknown, ..Parting::clone(parting) })
    }

    /// It took a release.
    pub(super) fn released(&mut self, parting: &Parting) {
        self.owed.remove(&parting.owner);
        if matches!(self.unanswered.get(&parting.owner), Some(Unanswered::Lost)) {
            self.unanswered.remove(&parting.owner);
        }
    }

    pub(super) fn failed(&mut self, now: Moment) {
        if self.is_trusted() {
            self.trust = Trust::Suspect { probe_at: now + PROBE_MIN, pause: PROBE_MIN };
        }
    }

    /// It answers, and so can be given what it is owed.
    pub(super) fn answered(&mut self, now: Moment) -> Vec<Arc<Parting>> {
        self.trust = Trust::Trusted;
        self.owed.retain(|_, owed| now < owed.until);
        let due = self.owed.values_mut().filter(|owed| owed.due <= now);
        due.map(|owed| owed.say_again(now)).collect()
    }

    /// Remembers a release for when it answers again. A claim of that owner may arrive before it, or after.
    pub(super) fn owe(&mut self, parting: &Arc<Parting>, due: Moment, until: Moment) {
        if self.owed.len() == OWED_MAX {
            self.owed.pop_first();
        }
        let parting = Arc::new(Parting { certainty: Certainty::Unknown, ..Parting::clone(parting) });
        let owed = self.owed.entry(parting.owner).or_insert(Owed { due, until, parting });
        owed.due = owed.due.min(due);
    }
}

impl Owed {
    fn say_again(&mut self, now: Moment) -> Arc<Parting> {
        self.due = now + OWED_REST;
        Arc::clone(&self.parting)
    }
}
