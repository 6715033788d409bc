//! The requests that end a dwell, and the meaning of their answers. No I/O.
//!
//! A client that ends a dwell looks at all locks first, which takes time. Another dwell may begin meanwhile, for a loss of data that was
//! not seen. So the dwell is marked before, and only a dwell with that mark is ended.

use std::time::Duration;

use lock_core::{Effect, ErrorKind, Operation};
use redis::Value;

use crate::failure::Failure;
use crate::keys::{Key, Scope};
use crate::script;
use crate::wire::{Call, Line, Question, Retry, read, remaining};

/// What the script answers if the dwell is not the one that was marked.
const ANOTHER: i64 = -3;

/// Marks the dwell, if there is one, with a random text. Gives the incarnation of the server.
pub(crate) struct MarkDwell<'a> {
    pub(crate) scope: Scope,
    pub(crate) mark: &'a str,
}

impl Question for MarkDwell<'_> {
    type Answer = String;

    fn operation(&self) -> Operation {
        Operation::Connect
    }

    fn call(&self, _line: Line<'_>) -> Result<Call, Failure> {
        let mut mark = redis::cmd("SET");
        mark.arg(Key::Dwell(self.scope)).arg(self.mark).arg("XX").arg("KEEPTTL");
        Ok(Call::plain(mark))
    }

    fn read(&self, line: Line<'_>, _reply: Value) -> Result<String, Failure> {
        Ok(line.server_info.incarnation())
    }

    fn retry(&self) -> Retry {
        Retry::Once
    }
}

/// Asks for the longest ttl that the server has to expect: the longest that any of its clients has configured.
pub(crate) struct LongestTtl(pub(crate) Scope);

impl Question for LongestTtl {
    type Answer = Option<Duration>;

    fn operation(&self) -> Operation {
        Operation::Connect
    }

    fn call(&self, _line: Line<'_>) -> Result<Call, Failure> {
        let mut get = redis::cmd("GET");
        get.arg(Key::Longest(self.0));
        Ok(Call::plain(get))
    }

    fn read(&self, _line: Line<'_>, reply: Value) -> Result<Option<Duration>, Failure> {
        let millis: Option<u64> = redis::from_redis_value(reply).map_err(|_| Failure::strange_answer())?;
        Ok(millis.map(Duration::from_millis))
    }

    fn retry(&self) -> Retry {
        Retry::Once
    }
}

/// Ends the dwell with this mark, and returns how long it would have lasted; `None` if there is no dwell.
pub(crate) struct EndDwell<'a> {
    pub(crate) scope: Scope,
    pub(crate) mark: &'a str,
    /// The incarnation in which it was marked.
    pub(crate) incarnation: &'a str,
}

impl Question for EndDwell<'_> {
    type Answer = Option<Duration>;

    fn operation(&self) -> Operation {
        Operation::Connect
    }

    fn call(&self, _line: Line<'_>) -> Result<Call, Failure> {
        let keys = [Key::Dwell(self.scope), Key::Incarnation(self.scope)];
        Ok(Call::script(&script::END_DWELL, &keys).arg(self.mark).arg(self.incarnation))
    }

    fn read(&self, _line: Line<'_>, reply: Value) -> Result<Option<Duration>, Failure> {
        let left = read(reply)?;
        if left == ANOTHER {
            let message = "while its locks were listed, the server may have lost some again, or somebody else declared it new; free locks \
                           still wait";
            return Err(Failure::new(ErrorKind::Unavailable, Effect::None, message)
                .remedy("if this deployment has never granted a lock, try again"));
        }
        Ok(remaining(left))
    }

    fn retry(&self) -> Retry {
        Retry::Once
    }
}
