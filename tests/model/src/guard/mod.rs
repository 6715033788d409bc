//! Every order of events of the guard, which restores nodes that forgot, at a small size.
//!
//! There is one lock, and two clients that each want it once. Each has the list of nodes and the `max_ttl` of its URL: a
//! [`Deployment`]. A node votes under an **epoch**. When it loses everything, or restarts with its data, it has none. A
//! **pass** of the guard looks at the nodes, marks one that forgot with a new epoch, and installs it once its **dwell** is
//! over: the longest ttl that enough voters know, otherwise `max_ttl`. A client whose ttl a majority does not know
//! **announces** it. An operator **moves** nodes to the second deployment. Time is discrete: a lease expires its ttl after it
//! was requested, and a node keeps it for its ttl after it granted it.
//!
//! The main claim is that no two leases live at a time. [`Form`] has the guard with all its rules, and without each one of them.
//!
//! The guard over five nodes is explored with one deployment; a move is explored with three nodes of which one is replaced. Two moves at
//! once are explored with three nodes to which one of the operators adds a fourth: there is the claim that one of the moves
//! settles when it is run again.
//!
//! # What is left out, and why nothing is lost by it
//! - **Tokens and counters.** They belong to the other model.
//! - **Who measures a dwell.** It counts from the first pass that saw the epoch: no client can have begun to measure
//!   earlier, and no node has an older record. So records are counted only where a clock stepped.
//! - **Other nodes that a pass could bring back at once.** They are separate passes, at the same moment.
//! - **Late requests.** A claim, an announcement, a move or an installation takes effect arbitrarily late, under the epochs
//!   that were read, or never. A look or a mark that is late is simply a later one.
//! - **Refusals, releases and lost messages** are keys that stay until they expire: that keeps others out, and no more.
//! - **How long a client's look takes.** It is one moment here. In the code, what it saw counts as announced only if the look
//!   took less than the shortest dwell: the rule of announcements.
//! - **Being handed out.** A client relies on the lock as soon as a majority has granted it, and until its ttl is over.
//!
//! # What is not covered
//! - Renewals, and clients that look again after they announced.
//! - Clocks that run at different rates. The code adds 1 %.
//! - Two servers behind one address, and two addresses of one server.
//! - A pass that does not reach a node of another deployment: it may take blank nodes that belong to that one. With a second
//!   list in use, [`Bounds::silent`] is 0, and a test shows what happens otherwise.

mod action;
mod claim;
mod model;
mod node;
mod pass;
mod scene;
mod setup;
mod state;
mod step;

pub use action::Action;
pub use claim::Claim;
pub use node::{Belongs, Exchange, Key, Node, Part, Seen, Standing};
pub use pass::{Decision, Look, Pass};
pub use scene::Scene;
pub use setup::{Asker, Bounds, Deployment, Form, Looks, Setup, Steps};
pub use state::{Stage, State};

/// The guard over `N` nodes.
#[derive(Clone, Copy, Debug)]
pub struct Guarded<const N: usize> {
    /// Its form.
    pub form: Form,
    /// Who is there.
    pub setup: Setup,
    /// How much may happen.
    pub bounds: Bounds,
}
