//! What may happen next.

use crate::client::Stage;
use crate::node::{Exchange, Vote};
use crate::rules::{Guard, Rounds, Rules};
use crate::state::{State, names};

/// Which of two answers to an acquire that came twice the client takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Takes {
    /// The first.
    First,
    /// The second.
    Second,
}

/// Something that happens at one moment. Clients and nodes have numbers for names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the fields are named after what they name")]
pub enum Action {
    /// An acquire reaches a node, which grants. If another client owned the lock there, that key has just vanished.
    Grant { client: u8, node: u8, proposal: u8 },
    /// An acquire reaches a node once more, which grants again: the key has vanished just before.
    GrantAgain { client: u8, node: u8, proposal: u8, takes: Takes },
    /// A client counts a majority of its answers and chooses the highest.
    Choose { client: u8, token: u8 },
    /// A client's token reaches a node, which acknowledges it.
    Acknowledge { client: u8, node: u8 },
    /// A client is handed out.
    HandOut { client: u8 },
    /// A node grants another lock.
    Foreign { node: u8 },
    /// A node forgets everything.
    Crash { node: u8 },
    /// The dwell of a node that forgot everything is over; others can be read for it from now on.
    EndDwell { node: u8, floor: u8 },
    /// A node that forgot everything votes again with the counter that was read.
    Recover { node: u8, counter: u8 },
}

impl Action {
    /// All that may happen next.
    pub(crate) fn all<const N: usize, const C: usize>(rules: Rules, state: &State<N, C>) -> Vec<Self> {
        let mut all = Vec::new();
        if state.tokens().count() == C {
            return all; // Everybody has had the lock: nothing that follows can break a claim.
        }
        for node in names(N) {
            if state.node(node).vote == Vote::Votes {
                all.extend(names(C).flat_map(|client| Self::between(rules, state, client, node)));
            }
            all.extend(Self::mishaps(rules, state, node));
        }
        all.extend(names(C).flat_map(|client| Self::decisions(rules, state, client)));
        all
    }

    /// What a message of a client may do at a node. One that is refused changes nothing and need not arrive.
    fn between<const N: usize, const C: usize>(rules: Rules, state: &State<N, C>, client: u8, node: u8) -> Vec<Self> {
        let mut all = Vec::new();
        for &proposal in rules.rounds.proposals() {
            if state.node(node).exchange(client) == Exchange::Asked {
                all.push(Self::Grant { client, node, proposal });
            } else if state.left.duplicates > 0 {
                let again = |takes| Self::GrantAgain { client, node, proposal, takes };
                all.extend([Takes::First, Takes::Second].map(again));
            }
        }
        if changes_by_token(rules, state, client, node) {
            all.push(Self::Acknowledge { client, node });
        }
        all
    }

    /// What a client may do by itself.
    fn decisions<const N: usize, const C: usize>(rules: Rules, state: &State<N, C>, client: u8) -> Vec<Self> {
        match state.client(client).stage {
            Stage::Asking => state.choices(client).into_iter().map(|token| Self::Choose { client, token }).collect(),
            Stage::Fencing(_) if may_be_handed_out(rules, state, client) => vec![Self::HandOut { client }],
            Stage::Idle | Stage::Fencing(_) | Stage::Out(_) => Vec::new(),
        }
    }

    /// What may happen to a node by itself.
    fn mishaps<const N: usize, const C: usize>(rules: Rules, state: &State<N, C>, node: u8) -> Vec<Self> {
        let mut all = Vec::new();
        if state.left.crashes > 0 {
            all.push(Self::Crash { node });
        }
        match state.node(node).vote {
            Vote::Votes if state.left.foreign > 0 => all.push(Self::Foreign { node }),
            Vote::Votes => {}
            Vote::Abstains(_) if rules.guard == Guard::Abstain => all.push(Self::EndDwell { node, floor: 0 }),
            Vote::Abstains(_) => {
                all.extend(state.floors(node).into_iter().map(|floor| Self::EndDwell { node, floor }));
            }
            Vote::Reads(_) if rules.guard == Guard::Abstain => all.push(Self::Recover { node, counter: 0 }),
            Vote::Reads(floor) => {
                // Others are read one by one, while their counters rise: that comes to anything between.
                let last = state.floors(node).into_iter().max().unwrap_or(floor);
                all.extend((floor..=floor.max(last)).map(|counter| Self::Recover { node, counter }));
            }
        }
        all
    }
}

/// Whether a client's token, should it reach a node now, would change anything there or for the client.
fn changes_by_token<const N: usize, const C: usize>(rules: Rules, state: &State<N, C>, client: u8, node: u8) -> bool {
    let place = state.node(node);
    let changes = |token| match state.client(client).stage {
        Stage::Fencing(_) => place.exchange(client) == Exchange::Told,
        Stage::Idle | Stage::Asking | Stage::Out(_) => place.counter < token,
    };
    let is_sent = rules.rounds != Rounds::One;
    is_sent
        && state.client(client).token().is_some_and(|token| changes(token) && place.accepts(client, token, rules.check))
}

/// Whether a majority has acknowledged, and the client's deadline is not known to be over.
fn may_be_handed_out<const N: usize, const C: usize>(rules: Rules, state: &State<N, C>, client: u8) -> bool {
    let in_time = rules.guard != Guard::Complete || state.client(client).began >= state.dwelt;
    in_time && state.majority(|node| node.exchange(client).is_done())
}
