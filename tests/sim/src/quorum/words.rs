//! What goes over the network to a node and back.

use std::fmt;

use lock_core::node::{Ask, NodeState, NodeTime, Told};
use lock_redlock::quorum::{Outcome, Recovery};

use crate::network::Talk;

/// Clients and nodes.
#[derive(Debug)]
pub(crate) enum Words {}

impl Talk for Words {
    type Ask = Asked;
    type Say = Said;
}

/// A request, and how its node would come to vote by it.
#[derive(Clone)]
pub(crate) struct Asked {
    pub(crate) ask: Ask,
    pub(crate) recovery: Option<Recovery>,
}

/// An answer, and which of all requests that nodes ever ran was answered so.
#[derive(Clone)]
pub(crate) struct Said {
    pub(crate) outcome: Outcome,
    pub(crate) ran: u64,
}

impl fmt::Debug for Asked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.ask {
            Ask::Acquire { claim, wish, epoch } => {
                let (owner, width) = (claim.owner.to_wire(), claim.width.get());
                write!(f, "acquire {} {owner} width {width} wish {wish} {epoch}", claim.name)
            }
            Ask::Fence { leases, epoch } => {
                write!(f, "fence {epoch}")?;
                let mut leases = leases.iter();
                leases.try_for_each(|lease| write!(f, " {} {} {:?}", lease.name, lease.owner.to_wire(), lease.tokens))
            }
            Ask::Release(request) => {
                write!(f, "release {} {} {:?}", request.name, request.owner.to_wire(), request.certainty)
            }
            Ask::Look => f.write_str("look"),
            Ask::Mark { epoch, .. } => write!(f, "mark {epoch}"),
            Ask::Record { seen, .. } => {
                f.write_str("record")?;
                seen.iter().try_for_each(|sighting| write!(f, " {:?}", sighting.recording))
            }
            Ask::Install { epoch, counter, longest, .. } => {
                write!(f, "install {epoch} counter {counter} longest {longest:?} {:?}", self.recovery)
            }
            Ask::Move { epoch, .. } => write!(f, "move {epoch}"),
            Ask::Inspect(inspection) => write!(f, "{inspection:?}"),
        }
    }
}

impl fmt::Debug for Said {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "#{} ", self.ran)?;
        match &self.outcome {
            Ok(Told::Granted { token, clock: NodeTime(clock) }) => write!(f, "granted {token} at {clock}"),
            Ok(Told::Held { remaining, .. }) => write!(f, "held for {remaining:?}"),
            Ok(Told::View(view)) => {
                let state = match view.state {
                    NodeState::Voting(epoch) => format!("votes in {epoch}"),
                    NodeState::Abstaining { epoch, since } => format!("abstains before {epoch} for {since:?}"),
                    NodeState::Forgetful => "has forgotten".to_owned(),
                };
                write!(f, "{:?} {state} counter {} longest {:?}", view.run, view.counter, view.longest)
            }
            Ok(told @ (Told::Abstains | Told::Fenced(_) | Told::Released(_) | Told::Records(_))) => {
                write!(f, "{told:?}")
            }
            Ok(
                told @ (Told::Listed { .. } | Told::Shown(_) | Told::Owners(_) | Told::Revoked(_) | Told::RevokedBy(_)),
            ) => {
                write!(f, "{told:?}")
            }
            Err(error) => write!(f, "{:?} {:?}", error.kind(), error.effect()),
        }
    }
}
