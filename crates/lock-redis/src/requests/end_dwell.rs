//! The requests that end a dwell, and the meaning of their answers. No I/O.
//!
//! A client that ends a dwell looks at all locks first, which takes time. Another dwell may begin meanwhile, for a loss of data that was
//! not seen. So the dwell is marked before, and only a dwell with that mark is ended.

use std::time::Duration;

use lock_core::{Effect, ErrorKind, Operation};
use redis::Value;

use super::simple::Simple;
use crate::failure::Failure;
use crate::keys::{Key, Scope};
use crate::script;
use crate::wire::{Call, Line, Question, Retry, read, remaining};

/// What the script answers if the dwell is not the one that was marked.
const ANOTHER: i64 = -3;

/// Marks the dwell, if there is one, with a random text. Gives the incarnation of the server.
pub(crate) fn mark_dwell(scope: Scope, text: &str) -> Simple<String> {
    let mut mark = redis::cmd("SET");
    mark.arg(Key::Dwell(scope)).arg(text).arg("XX").arg("KEEPTTL");
    Simple::new(Operation::Connect, Retry::Once, mark, |line, _reply| Ok(line.server_info.incarnation()))
}

/// Asks for the longest ttl that the server has to expect: the longest that any of its clients has configured.
pub(crate) fn longest_ttl(scope: Scope) -> Simple<Option<Duration>> {
    let mut get = redis::cmd("GET");
    get.arg(Key::Longest(scope));
    Simple::new(Operation::Connect, Retry::Once, get, |_line, reply| {
        Ok(read::<Option<u64>>(reply)?.map(Duration::from_millis))
    })
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
    const OPERATION: Operation = Operation::Connect;
    const RETRY: Retry = Retry::Once;

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
}
