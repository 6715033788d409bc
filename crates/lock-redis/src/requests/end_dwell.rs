//! The requests that end a dwell, and the meaning of their answers. No I/O.
//!
//! A client that ends a dwell looks at all locks first, which takes time. Another dwell may begin meanwhile, for a loss of data that was
//! not seen. So the dwell is marked before, and only a dwell with that mark is ended.

use std::time::Duration;

use lock_core::Operation;

use super::simple::Simple;
use crate::failure::Failure;
use crate::keys::{Key, Scope};
use crate::script;
use crate::wire::{Call, Question, read, remaining};

/// What the script answers if the dwell is not the one that was marked.
const ANOTHER: i64 = -3;

/// Marks the dwell, if there is one, with a random text. Gives the incarnation of the server.
pub(crate) fn mark_dwell(scope: Scope, text: &str) -> impl Question<Answer = String> + use<> {
    let mut mark = redis::cmd("SET");
    mark.arg(Key::Dwell(scope)).arg(text).arg("XX").arg("KEEPTTL");
    Simple::new(Operation::Connect, Call::plain(mark), |line, _reply| Ok(line.server_info.incarnation()))
}

/// Asks for the longest ttl that the server has to expect: the longest that any of its clients has configured.
pub(crate) fn longest_ttl(scope: Scope) -> impl Question<Answer = Option<Duration>> {
    let mut get = redis::cmd("GET");
    get.arg(Key::Longest(scope));
    Simple::new(Operation::Connect, Call::plain(get), |_line, reply| {
        Ok(read::<Option<u64>>(reply)?.map(Duration::from_millis))
    })
}

/// Ends the dwell with this mark, which was made in this incarnation, and returns how long it would have lasted; `None` if there is no
/// dwell.
pub(crate) fn end_dwell(
    scope: Scope,
    mark: &str,
    incarnation: &str,
) -> impl Question<Answer = Option<Duration>> + use<> {
    let keys = [Key::Dwell(scope), Key::Incarnation(scope)];
    let end = Call::script(&script::END_DWELL, &keys).arg(mark).arg(incarnation);
    Simple::new(Operation::Connect, end, |_line, reply| match read(reply)? {
        ANOTHER => {
            let message = "while its locks were listed, the server may have lost some again, or somebody else declared it new; free locks \
                           still wait";
            Err(Failure::unavailable(message).remedy("if this deployment has never granted a lock, try again"))
        }
        left => Ok(remaining(left)),
    })
}
