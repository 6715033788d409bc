//! What a quorum decides, without I/O: which node to ask what, and what the answers mean. The async and the blocking backend
//! run it, and so does the simulator.
//!
//! A [`Request`] is one verb, or one recovery pass, over all nodes. The [`Quorum`] owns the requests in flight: [`begin`]
//! one, then [`poll`] until there is no output left. Send each [`Outgoing`], those of one node in order, and report each
//! outcome to [`heard`], also after the verdict: the remaining work for slower nodes is part of the request.
//!
//! Reading order: `in_flight` (the requests) · `nodes` and `node` (what is known about the nodes) · `sending` and
//! `held_back` (what they are sent, and when) · `acquire`, `renew`, `release` (the verbs) · `inspect` (for operators) · `recovery` (how a node that lost
//! its memory comes to vote again).
//!
//! [`begin`]: Quorum::begin
//! [`poll`]: Quorum::poll
//! [`heard`]: Quorum::heard

mod acquire;
mod held_back;
mod in_flight;
mod inspect;
mod node;
mod nodes;
mod objection;
mod outgoing;
mod recovery;
mod release;
mod renew;
mod request;
mod rule;
mod sending;
mod trouble;
mod watch;
mod wishes;

pub use in_flight::{EpochSource, Output, Quorum};
pub use inspect::Answers;
#[cfg(test)]
pub(crate) use inspect::Heard;
pub use outgoing::{NodeId, Outcome, Outgoing, RequestId};
pub use recovery::{NodeReport, Purpose, Recovery, Report};
pub(crate) use request::no_verdict;
pub use request::{Request, Verdict};
#[cfg(feature = "twins")]
pub use rule::Rule;
