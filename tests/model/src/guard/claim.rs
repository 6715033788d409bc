//! What must be true of every state, and what must be possible.

use stateright::Property;

use super::Guarded;
use super::node::{Belongs, Standing};
use super::setup::Bounds;
use super::state::State;
use crate::claimed::Claimed;

/// One thing that is claimed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Claim {
    /// No two may rely on the lock at a time.
    OneHolder,
    /// It is possible that the first client has it.
    FirstHolds,
    /// It is possible that the second client has it.
    SecondHolds,
    /// It is possible that a node that had lost everything votes again.
    VotesAgain,
    /// It is possible that all nodes of the second deployment vote in it.
    IsMoved,
    /// However moves crossed, one of the commands ends when it is run again: a majority knows its deployment.
    Settles,
    /// Once a new node was moved, the command of its move ends when it is run again, whatever was lost.
    Finishes,
}

impl Claim {
    /// All of them.
    pub const ALL: [Self; 7] = [
        Self::OneHolder,
        Self::FirstHolds,
        Self::SecondHolds,
        Self::VotesAgain,
        Self::IsMoved,
        Self::Settles,
        Self::Finishes,
    ];

    /// Whether it is claimed where so much may happen.
    pub fn concerns(self, bounds: Bounds) -> bool {
        match self {
            Self::OneHolder | Self::FirstHolds | Self::SecondHolds => true,
            Self::VotesAgain => bounds.losses > 0,
            Self::IsMoved => bounds.moves > 0,
            Self::Settles => bounds.moves > 1 && bounds.losses + bounds.rollbacks == 0,
            Self::Finishes => bounds.moves == 1,
        }
    }

    pub(crate) fn property<const N: usize>(self) -> Property<Guarded<N>> {
        let holds: fn(&Guarded<N>, &State<N>) -> bool = match self {
            Self::OneHolder => |model, state| !(state.holds(&model.setup, 0) && state.holds(&model.setup, 1)),
            Self::FirstHolds => |model, state| state.holds(&model.setup, 0),
            Self::SecondHolds => |model, state| state.holds(&model.setup, 1),
            Self::VotesAgain => |_, state| state.count(|node| node.standing == Standing::Votes && node.epoch > 1) > 0,
            Self::IsMoved => |_, state| {
                let is_there = (Standing::Votes, Belongs::Written(1));
                state.count(|node| node.member_of[1] && (node.standing, node.belongs) != is_there) == 0
            },
            Self::Settles => |model, state| [1, 2].into_iter().any(|to| state.settles(model.form, &model.setup, to)),
            Self::Finishes => |model, state| !state.proves(1) || state.settles(model.form, &model.setup, 1),
        };
        if self.is_proved_by_path() {
            Property::sometimes(self.text(), holds)
        } else {
            Property::always(self.text(), holds)
        }
    }
}

impl Claimed for Claim {
    fn text(self) -> &'static str {
        match self {
            Self::OneHolder => "there is one holder at a time",
            Self::FirstHolds => "the first client can have the lock",
            Self::SecondHolds => "the second client can have the lock",
            Self::VotesAgain => "a node that lost everything can vote again",
            Self::IsMoved => "all nodes of the second deployment can vote in it",
            Self::Settles => "one of the moves ends when it is run again",
            Self::Finishes => "once a new node was moved, the move ends when it is run again",
        }
    }

    fn is_proved_by_path(self) -> bool {
        !matches!(self, Self::OneHolder | Self::Settles | Self::Finishes)
    }
}
