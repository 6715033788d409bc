//! The progress of a request: a claim of an attempt, or a release.

use super::io::ActionId;
use crate::Moment;

/// Whether a request is in flight, or when it is to be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Progress {
    /// It was handed out at this moment.
    InFlight(ActionId, Moment),
    /// It is to be sent, or sent again, at this moment.
    Due(Moment),
}

impl Progress {
    /// When the request is to be sent, unless it is in flight.
    pub(super) fn due(self) -> Option<Moment> {
        match self {
            Self::Due(at) => Some(at),
            Self::InFlight(..) => None,
        }
    }

    /// The action that it is in flight as, and when that was handed out.
    pub(super) fn in_flight(self) -> Option<(ActionId, Moment)> {
        match self {
            Self::InFlight(id, at) => Some((id, at)),
            Self::Due(_) => None,
        }
    }

    /// When the request was handed out, if it is in flight as this action.
    pub(super) fn asked_at(self, action: ActionId) -> Option<Moment> {
        match self {
            Self::InFlight(id, at) if id == action => Some(at),
            Self::InFlight(..) | Self::Due(_) => None,
        }
    }
}
