//! Every order of events of the quorum protocol, at a small size: two models of independent parts.
//!
//! The model in this module is about **tokens**: they are distinct and rise, whichever keys vanish and messages are late. It
//! has no time, and so says nothing about whether two clients hold at once. [`guard`] is about **exclusion**: nodes that
//! forget, marks, dwells, announcements, records and moves, in discrete time, without tokens.
//!
//! # Tokens
//! Some clients want one lock of some independent nodes. Each node has one counter for all its locks. A node where the lock
//! is free **grants**: it raises its counter by one, or to the number that the client proposed if that is higher, stores the
//! new number with the key, and answers it. As its **token** the client chooses the highest number of some majority of its
//! answers, and tells it to all nodes. A node **acknowledges** the token if the client still owns the lock there by a grant
//! that is not above the token; its counter is then at least the token. After a majority of acknowledgements the client is
//! **handed out**. On the fast path a grant of exactly the token counts as an acknowledgement, so one round can be enough.
//!
//! Everything else is adversarial. Any key may vanish at any moment. Messages may be arbitrarily late, in any order, or lost.
//! As often as [`Bounds`] allow, other locks raise counters, acquires arrive twice, and nodes forget everything; then a
//! [`Guard`] keeps the node out until it has waited and read the counters of others.
//!
//! The [`Claim`]s say what must hold in every state, and what must be reachable. [`Quorum::explore`] visits every reachable
//! state. [`Rules`] has the form that is built and the broken forms: for each of these the tests say which claim fails.
//!
//! # What is left out, and why nothing is lost by it
//! - **A key vanishes just before the grant that replaces it.** Vanishing earlier enables nothing.
//! - **A client begins with the first grant to it.** If it began earlier, less would be claimed about it, and more would keep
//!   it from being handed out.
//! - **Refusals and lost messages** change nothing at a node: such a message is one that never arrives.
//! - **Answers** take no time. A client counts any majority of the answers that were given, and may be handed out
//!   arbitrarily late.
//! - **Giving up and releasing** is a key that vanishes; **trying again** is one more client.
//! - **Renewing** tells the same token again. The real code may tell a higher one, the highest that a node drew for this
//!   owner. That raises counters, as other locks do, and the token that the key stores; after that the owner is never told a
//!   lower one.
//! - **Names.** States that differ only in the names of nodes or clients are visited once.
//!
//! Time is not modelled, except for the dwell: whatever began before a crash and has a deadline is over when the dwell is. How
//! nodes find out that they forgot, and how long a dwell must be, belong to the other model. Neither has widths, floors, the
//! bound of a wish, or tombstones; the simulator covers those.
//!
//! # How to run them
//! `cargo test -p quorum-model -- --nocapture` explores every form at a size that takes seconds, and prints how many states
//! there are. `cargo xtask model` explores larger ones. `cargo xtask model tokens --help` and `model guard --help` say how to
//! explore one form at any size.
//!
//! Reading order, in both: `rules` or `setup` and `scene` (what is explored) · `client`, `node`, `pass`, `state` (the
//! state) · `action`, `step` (what may happen, and its effect) · `claim` (what must hold) · `report`.

mod action;
mod claim;
mod claimed;
mod client;
pub mod guard;
mod model;
mod node;
mod report;
mod rules;
mod state;
mod step;

pub use action::{Action, Takes};
pub use claim::Claim;
pub use claimed::Claimed;
pub use client::{Client, Stage};
pub use node::{Exchange, Key, Node, Vote};
pub use report::Report;
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
