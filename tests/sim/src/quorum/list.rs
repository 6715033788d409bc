//! Which nodes a client's URL names.

use lock_redlock::quorum::NodeId;

use super::terms::Terms;

/// One of the two lists in a plot; everything else uses the first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum List {
    First,
    /// The last node of the first is replaced by a spare one.
    Second,
}

impl List {
    /// The nodes by their numbers in the world.
    pub(super) fn members(self, terms: &Terms) -> Vec<NodeId> {
        let replaced = if self == Self::Second { terms.nodes - 1 } else { terms.nodes };
        (0..terms.nodes).map(|index| if index == replaced { terms.nodes } else { index }).map(NodeId).collect()
    }

    /// Their addresses.
    pub(super) fn addresses(self, terms: &Terms) -> Vec<String> {
        self.members(terms).into_iter().map(|NodeId(index)| format!("node-{index}")).collect()
    }
}
