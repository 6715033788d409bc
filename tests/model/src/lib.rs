//! Every order of events of the quorum protocol, at a small size: two models, of what does not depend on each other.
//!
//! The one in this module is about **tokens**: they are distinct and rise, whatever keys vanish and messages come late. It has
//! no time, and so says nothing of whether two hold at once. [`guard`] is about **exclusion**: nodes that forget, marks,
//! dwells, announcements, notes and moves, in discrete time, and no tokens.
//!
//! # Tokens
//! Some clients want one lock of some independent nodes. Each node has one counter for all its locks. A node that nobody
//! owns **grants**: it raises its counter by one, or to what the client proposed if that is more, keeps that number with
//! the key, and answers it. The client chooses as its **token** the highest of some majority of its answers, and tells it
//! to all nodes. A node **acknowledges** the token if the client still owns the lock there by a grant of no more than the
//! token; its counter is then at least the token. After a majority of acknowledgements the client is **handed out**. On
//! the fast path a grant of just the token counts as an acknowledgement, so one round can suffice.
//!
//! Everything else is against it. Any key vanishes at any moment. Messages come as late as they like, in any order or
//! never. So often as [`Bounds`] say, other locks raise counters, acquires arrive twice, and nodes forget everything; then
//! a [`Guard`] keeps the node out until it has waited and read the counters of others.
//!
//! What is claimed of every state, and what must be possible at all, are the [`Claim`]s. [`Quorum::explore`] visits each
//! state that can be reached. [`Rules`] has the form that is built and those that are broken: for each of these the tests
//! say which claim falls.
//!
//! # What is left out, and why nothing is lost by it
//! - **A key vanishes just before the grant that takes its place.** To vanish earlier enables nothing.
//! - **A client begins with the first grant to it.** Had it begun earlier, less would be claimed of it, and more would
//!   keep it from being handed out.
//! - **Refusals and lost messages** change nothing at a node: such a message is one that never arrives.
//! - **Answers** have no journey. A client counts any majority of those that were given, and is handed out as late as it
//!   likes.
//! - **Giving up and releasing** is a key that vanishes; **trying again** is one more client.
//! - **Renewing** is telling the same token again. What is built may tell a higher one, the highest that a node drew for
//!   this owner: that raises counters, as other locks do, and the token that the key keeps, after which the owner is never
//!   told a lower one.
//! - **Names.** States that differ in the names of nodes or clients alone are visited once.
//!
//! Time is not modelled, but for the dwell: what began before a crash, and has a deadline, is over when the dwell is. How
//! nodes find out that they forgot, and how long a dwell has to be, is the other model's. Neither has widths, floors, the
//! bound of a wish, or tombstones; the simulator plays those.
//!
//! # How to run them
//! `cargo test -p quorum-model -- --nocapture` explores every form at a size that takes seconds, and prints how many states
//! there are. `cargo xtask model` explores larger ones, and `cargo xtask model tokens --help` and `model guard --help` say
//! how to explore one form at any size.
//!
//! Reading order, in both: `rules` or `setup` and `scene` (what is explored) · `client`, `node`, `pass`, `state` (what there
//! is) · `action`, `step` (what may happen, and what it does) · `claim` (what must be true) · `report`.

mod action;
mod claim;
mod client;
pub mod guard;
mod node;
mod report;
mod rules;
mod state;
mod step;

use stateright::{Model, Property};

pub use action::{Action, Takes};
pub use claim::Claim;
pub use client::{Client, Stage};
pub use node::{Exchange, Key, Node, Vote};
pub use report::{Claimed, Report};
pub use rules::{Bounds, Check, Guard, Rounds, Rules};
pub use state::{Order, State};

/// The protocol with `N` nodes and `C` clients.
#[derive(Clone, Copy, Debug)]
pub struct Quorum<const N: usize, const C: usize> {
    /// The form of the protocol.
    pub rules: Rules,
    /// How much may happen.
    pub bounds: Bounds,
}

impl<const N: usize, const C: usize> Model for Quorum<N, C> {
    type State = State<N, C>;
    type Action = Action;

    fn init_states(&self) -> Vec<Self::State> {
        vec![State::new(self.bounds)]
    }

    fn actions(&self, state: &Self::State, actions: &mut Vec<Action>) {
        actions.extend(Action::all(self.rules, state));
    }

    fn next_state(&self, state: &Self::State, action: Action) -> Option<Self::State> {
        let mut next = *state;
        next.apply(self.rules, action);
        Some(next)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        let concerned = Claim::ALL.into_iter().filter(|claim| claim.concerns(self.rules.rounds));
        concerned.map(Claim::property).collect()
    }
}
