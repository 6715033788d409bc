//! What must be true of every state, and what must be possible.

use stateright::Property;

use crate::Quorum;
use crate::claimed::Claimed;
use crate::node::{Exchange, Node};
use crate::rules::Rounds;
use crate::state::{Order, State, names};

/// One thing that is claimed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Claim {
    /// No token is handed out twice.
    Distinct,
    /// A client that begins after another was handed out has the higher token.
    RisesInTime,
    /// A client that is handed out while it owns all nodes that it counted has a token above all earlier ones.
    RisesByHolds,
    /// A client that still owns a majority of nodes with grants up to its token is not refused by them.
    Undisturbed,
    /// It is possible that a client needs only one round.
    OneRound,
    /// It is possible that a majority acknowledges in a second round.
    TwoRounds,
    /// It is possible that every client is handed out.
    Everybody,
}

impl Claim {
    /// All of them.
    pub const ALL: [Self; 7] = [
        Self::Distinct,
        Self::RisesInTime,
        Self::RisesByHolds,
        Self::Undisturbed,
        Self::OneRound,
        Self::TwoRounds,
        Self::Everybody,
    ];

    /// Whether it is claimed of this form.
    pub fn concerns(self, rounds: Rounds) -> bool {
        match self {
            Self::OneRound => rounds != Rounds::Two,
            Self::TwoRounds => rounds != Rounds::One,
            Self::Distinct | Self::RisesInTime | Self::RisesByHolds | Self::Undisturbed | Self::Everybody => true,
        }
    }

    pub(crate) fn property<const N: usize, const C: usize>(self) -> Property<Quorum<N, C>> {
        let holds: fn(&Quorum<N, C>, &State<N, C>) -> bool = match self {
            Self::Distinct => |_, state| are_distinct(state),
            Self::RisesInTime => |_, state| rise_in_time(state),
            Self::RisesByHolds => |_, state| state.order == Order::Kept,
            Self::Undisturbed => |model, state| names(C).all(|client| is_not_refused(model, state, client)),
            Self::OneRound => |_, state| names(C).any(|client| majority_has(state, client, Exchange::Counted)),
            Self::TwoRounds => |_, state| names(C).any(|client| majority_has(state, client, Exchange::Acknowledged)),
            Self::Everybody => |_, state| state.tokens().count() == C,
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
            Self::Distinct => "tokens are distinct",
            Self::RisesInTime => "who begins after a hand-out has a higher token",
            Self::RisesByHolds => "who holds has a higher token than all before",
            Self::Undisturbed => "who is undisturbed is acknowledged",
            Self::OneRound => "one round can suffice",
            Self::TwoRounds => "two rounds can suffice",
            Self::Everybody => "everybody can be handed out",
        }
    }

    fn is_proved_by_path(self) -> bool {
        match self {
            Self::Distinct | Self::RisesInTime | Self::RisesByHolds | Self::Undisturbed => false,
            Self::OneRound | Self::TwoRounds | Self::Everybody => true,
        }
    }
}

fn are_distinct<const N: usize, const C: usize>(state: &State<N, C>) -> bool {
    let equal = |one: u8| state.tokens().filter(|&token| token == one).count();
    state.tokens().all(|token| equal(token) == 1)
}

fn rise_in_time<const N: usize, const C: usize>(state: &State<N, C>) -> bool {
    state.clients.iter().all(|client| client.handed_out().is_none_or(|token| token > client.after))
}

fn is_not_refused<const N: usize, const C: usize>(model: &Quorum<N, C>, state: &State<N, C>, client: u8) -> bool {
    let Some(token) = state.client(client).token() else { return true };
    let owns = |node: &Node<C>| node.key_of(client).is_some_and(|key| key.grant <= token);
    !state.majority(owns) || state.majority(|node| node.accepts(client, token, model.rules.check))
}

fn majority_has<const N: usize, const C: usize>(state: &State<N, C>, client: u8, exchange: Exchange) -> bool {
    state.majority(|node| node.exchange(client) == exchange)
}
