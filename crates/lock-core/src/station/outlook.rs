//! What a station says about itself, without an input.

use super::Station;
use super::quest::Quest;
use super::tenure::Tenure;
use crate::{Moment, Owner};

impl Station {
    /// When to tick next, if nothing happens before.
    #[must_use]
    pub fn next_wake(&self) -> Option<Moment> {
        let is_free = |quest: &&Quest| !self.has_to_wait(quest);
        let quests = self.quests.iter().filter(is_free).filter_map(|quest| quest.progress.due()).min();
        let tenures = self.tenures.iter().map(Tenure::turns_until).min();
        let replacements = self.tenures.iter().filter_map(|tenure| self.replacement_due(tenure)).min();
        let adoptions = self.adoptions.iter().flat_map(|adoption| [adoption.deadline(), self.adoption_due(adoption)]);
        let abandoned = self.quests.iter().filter_map(|quest| self.abandoned_until(quest)).min();
        let others = [self.line.next_deadline(), self.pending_releases.next_due()];
        [quests, abandoned, tenures, replacements, adoptions.flatten().min()].into_iter().chain(others).flatten().min()
    }

    /// Whether there are no waiters, no holder and no requests under way. Dropping an idle station forgets nothing but its
    /// floor, and not even that if the floor is shared.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        let nobody_asks = self.quests.is_empty() && self.line.is_empty() && self.adoptions.is_empty();
        nobody_asks && self.tenures.is_empty() && self.pending_releases.0.is_empty()
    }

    /// Whether this station may have made the owner known to the store: the owner asks or holds, or its release has not
    /// been answered yet.
    #[must_use]
    pub fn knows(&self, owner: Owner) -> bool {
        let replaces = |tenure: &Tenure| tenure.replacement.as_ref().is_some_and(|new| new.owner == owner);
        self.tenures.iter().any(|tenure| tenure.lease.owner == owner || replaces(tenure))
            || self.quests.iter().any(|quest| quest.owner == owner)
            || self.adoptions.iter().any(|adoption| adoption.owner == owner)
            || self.last_asked == Some(owner)
            || self.pending_releases.has(owner)
    }

    /// Whether others are known to wait for the lock that is held here. A hint: it may be late, and no longer true.
    #[must_use]
    pub fn is_wanted(&self) -> bool {
        self.tenures.iter().any(|tenure| tenure.wanted)
    }
}
