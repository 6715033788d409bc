//! Where a request stands: a claim of an attempt, or a release.

use super::io::ActionId;
use crate::Moment;

/// Whether a request is under way, or when it is to be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Progress {
    /// It was handed out at this moment.
    UnderWay(ActionId, Moment),
    /// It is to be sent, or sent again, at this moment.
    Due(Moment),
}

impl Progress {
    /// When the request is to be sent, unless it is under way.
    pub(super) fn due(self) -> Option<Moment> {
        match self {
            Self::Due(at) => Some(at),
            Self::UnderWay(..) => None,
        }
    }

    /// The action that it is under way as, and when that was handed out.
    pub(super) fn under_way(self) -> Option<(ActionId, Moment)> {
        match self {
            Self::UnderWay(id, at) => Some((id, at)),
            Self::Due(_) => None,
        }
    }

    /// When the request was handed out, if it is under way as this action.
    pub(super) fn asked_at(self, action: ActionId) -> Option<Moment> {
        match self {
            Self::UnderWay(id, at) if id == action => Some(at),
            Self::UnderWay(..) | Self::Due(_) => None,
        }
    }
}
