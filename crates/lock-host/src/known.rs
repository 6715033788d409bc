//! Which owners of a station its store may still know.

use lock_core::Owner;
use lock_core::station::{Action, ActionId, Input, Output, Reply, Request};

/// How many releases that did not end well are remembered. Chosen: a station has no more pending ones than a few.
const RELEASES_MAX: usize = 16;

/// The owners that a station asked the store for and that the store may still know: that of the last claim, whose lease
/// or place it has become, and those of releases that were not answered.
#[derive(Debug, Default)]
pub struct KnownOwners {
    asked: Option<Owner>,
    releasing: Vec<(ActionId, Owner)>,
}

impl KnownOwners {
    /// Whether a grant for this owner is the station's, or is given up by a release of it.
    pub fn contains(&self, owner: Owner) -> bool {
        self.asked == Some(owner) || self.releasing.iter().any(|(_, other)| *other == owner)
    }

    /// Whose claim came last.
    pub fn last_asked(&self) -> Option<Owner> {
        self.asked
    }

    /// Takes in what the station is about to be told.
    pub fn note_input(&mut self, input: &Input) {
        let Input::Reply(id, Reply::Release(Ok(_))) = input else { return };
        let released = self.releasing.iter().find(|(other, _)| other == id).map(|(_, owner)| *owner);
        self.releasing.retain(|(_, owner)| Some(*owner) != released);
        if self.asked == released {
            self.asked = None;
        }
    }

    /// Takes in what the station says.
    pub fn note_output(&mut self, output: &Output) {
        let Output::Run(Action { id, request, .. }) = output else { return };
        match request {
            Request::Acquire(claim) => self.asked = Some(claim.owner),
            Request::Release(request) => {
                self.releasing.retain(|(_, owner)| *owner != request.owner);
                if self.releasing.len() == RELEASES_MAX {
                    self.releasing.remove(0);
                }
                self.releasing.reserve_exact(1);
                self.releasing.push((*id, request.owner));
            }
        }
    }

    /// Nothing is going on at the station any more.
    pub fn clear(&mut self) {
        *self = Self::default();
    }
}
