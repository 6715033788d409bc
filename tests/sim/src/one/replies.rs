//! What becomes of a request: an answer, or an error.

use lock_core::station::{ActionId, Reply};
use lock_core::{BackendError, Batch, Effect, ErrorKind, Operation};

use super::words::{Ask, Refused, Say};
use crate::client::Heard;

/// What was asked, for the recipient of the answer.
#[derive(Debug)]
pub(super) enum What {
    /// An action of the station with this number.
    Action(usize, ActionId),
    Renewal(Batch),
    /// A call about a latch.
    Latch(u64),
    /// Nobody waits for the answer.
    Nothing,
}

/// What the station gets for an answer to an action.
pub(super) fn reply(say: Say) -> Option<Reply> {
    match say {
        Say::Acquire(result) => Some(Reply::Acquire(result.map_err(|refused| error_of(Operation::Acquire, refused)))),
        Say::Release(result) => Some(Reply::Release(result.map_err(|refused| error_of(Operation::Release, refused)))),
        Say::Hello
        | Say::SessionOver
        | Say::SessionMoved
        | Say::Renew(_)
        | Say::Fence(_)
        | Say::Revoke(_)
        | Say::Latch(_)
        | Say::Foreign(_)
        | Say::Primary(..)
        | Say::NotPrimary
        | Say::TooFew
        | Say::Silence
        | Say::Granted(..)
        | Say::KeptAlive(_)
        | Say::Txn(..)
        | Say::NoLease => None,
    }
}

fn error_of(operation: Operation, refused: Refused) -> BackendError {
    let error = |kind, message| BackendError::new("sim", operation, kind, Effect::None, message);
    match refused {
        Refused::GivenUp => error(ErrorKind::Protocol, "this claim was given up"),
        Refused::Dwells => error(ErrorKind::Unavailable, "free locks are not granted yet"),
        Refused::Spent => error(ErrorKind::Unavailable, "the tokens are used up"),
        Refused::Other(error) => error,
    }
}

pub(super) fn failed(what: What, ask: &Ask, kind: ErrorKind, effect: Effect) -> Option<Heard> {
    let error = |operation| BackendError::new("sim", operation, kind, effect, "did not work");
    match (what, ask) {
        (What::Renewal(batch), _) => Some(Heard::Renewal(batch, Err(error(Operation::Renew)))),
        (What::Action(site, id), Ask::Acquire(..)) => {
            Some(Heard::Reply(site, id, Reply::Acquire(Err(error(Operation::Acquire)))))
        }
        (What::Action(site, id), _) => Some(Heard::Reply(site, id, Reply::Release(Err(error(Operation::Release))))),
        (What::Latch(call), _) => Some(Heard::Latch(call, Err(error(Operation::Latch)))),
        (What::Nothing, _) => None,
    }
}
