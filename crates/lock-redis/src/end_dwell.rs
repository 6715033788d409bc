//! The request that ends a dwell, and the meaning of its answer. No I/O.

use std::time::Duration;

use lock_core::Operation;
use redis::Value;

use crate::failure::Failure;
use crate::script;
use crate::value::Key;
use crate::wire::{Call, Line, Question, Retry, read, remaining};

/// Ends the dwell, and returns how long it would have lasted.
pub(crate) struct EndDwell;

impl Question for EndDwell {
    type Answer = Option<Duration>;

    fn operation(&self) -> Operation {
        Operation::Connect
    }

    fn call(&self, _line: Line<'_>) -> Result<Call, Failure> {
        Ok(Call::script(&script::END_DWELL, &[Key::Dwell]))
    }

    fn read(&self, _line: Line<'_>, reply: Value) -> Result<Option<Duration>, Failure> {
        Ok(remaining(read(reply)?))
    }

    fn retry(&self) -> Retry {
        Retry::Once
    }
}
