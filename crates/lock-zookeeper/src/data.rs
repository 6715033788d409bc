//! The data of an entry.

use lock_core::Claim;
use serde::{Deserialize, Serialize};

/// The data of a node. Entries of other libraries have other data.
#[derive(Debug, Deserialize, Serialize)]
pub(crate) struct Data {
    /// Who asks, for display.
    pub(crate) note: String,
    /// How many tokens it has if it is granted.
    pub(crate) width: u8,
    /// The slots of its permits, once it holds them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) slots: Vec<u32>,
}

impl Data {
    pub(crate) fn of(claim: &Claim) -> Self {
        let width = u8::try_from(claim.width.get()).unwrap_or(u8::MAX);
        Self { note: claim.note.to_wire().to_owned(), width, slots: Vec::new() }
    }

    pub(crate) fn to_wire(&self) -> Vec<u8> {
        serde_json::to_vec(self).unwrap_or_default()
    }

    pub(crate) fn read(data: &[u8]) -> Option<Self> {
        serde_json::from_slice(data).ok()
    }
}
