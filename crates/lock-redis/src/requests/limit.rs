//! Requests about the limit of a semaphore as questions, and the meaning of their answers. No I/O.

use lock_core::limit::{Act, Record, Request, Usage};
use lock_core::{Limit, Mode, Operation};
use redis::Value::{self, BulkString as Text, Int};

use super::value::mode_of;
use crate::failure::Failure;
use crate::keys::Key;
use crate::script;
use crate::wire::{Call, Line, Question, Retry, read, to_millis};

impl Question for &Request {
    type Answer = Usage;
    const OPERATION: Operation = Operation::Limit;
    /// Setting a limit again changes nothing.
    const RETRY: Retry = Retry::Once;

    fn call(&self, Line { wire, server_info, .. }: Line<'_>) -> Result<Call, Failure> {
        let keys = wire.keys(&self.name);
        let more = [Key::Queue(keys), Key::Waiters(keys), Key::Limits(keys)];
        let (act, limit) = match self.act {
            Act::Set(limit) => ("set", limit),
            Act::Look => ("look", self.known),
        };
        let call = Call::drawing(&script::LIMIT, server_info, keys, &more).arg(act);
        Ok(call.arg(self.known.get()).arg(limit.get()).arg(to_millis(Record::KEPT_FOR)))
    }

    fn read(&self, _line: Line<'_>, reply: Value) -> Result<Usage, Failure> {
        match read::<Vec<Value>>(reply)?.as_slice() {
            [Text(word), Int(limit), Int(used)] if word == b"usage" => {
                usage(*limit, *used).ok_or_else(Failure::strange_answer)
            }
            [Text(word), Int(limit)] => {
                Err(refused(Mode::one_permit(self.known), word, *limit).unwrap_or_else(Failure::strange_answer))
            }
            _ => Err(Failure::strange_answer()),
        }
    }

    fn gives(&self, _answer: Option<&Usage>) -> bool {
        matches!(self.act, Act::Set(_))
    }
}

fn usage(limit: i64, used: i64) -> Option<Usage> {
    Some(Usage { limit: limit_from(limit)?, used: u32::try_from(used).ok()? })
}

/// A limit as a script states it.
pub(crate) fn limit_from(number: i64) -> Option<Limit> {
    Limit::new(u32::try_from(number).ok()?).ok()
}

/// Why a claim of this mode is refused where this limit is in use.
pub(crate) fn refused(asked: Mode, word: &[u8], limit: i64) -> Option<Failure> {
    match word {
        b"otherkind" => Some(Failure::in_other_use(mode_of(limit, 1)?, asked)),
        b"above" => Some(Failure::above_limit(limit_from(limit)?, asked.count())),
        _ => None,
    }
}
