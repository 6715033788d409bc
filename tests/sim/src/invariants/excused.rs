//! Of some owners, something may be left at the store although they have left.

use lock_core::Owner;

use super::Watch;

impl Watch {
    /// What this owner has at the store stays there, for others to adopt.
    pub(crate) fn excuse(&mut self, owner: Owner) {
        self.excused.insert(owner);
    }

    pub(crate) fn is_excused(&self, owner: Owner) -> bool {
        self.excused.contains(&owner)
    }
}
