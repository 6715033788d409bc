//! How many replicas must have a lease before it counts (`?replicas=N`), and the command that waits for them. No I/O.

use std::fmt;
use std::num::NonZeroU16;
use std::time::{Duration, Instant};

use lock_core::Invalid;
use redis::{Cmd, RedisResult, Value, from_redis_value};
use serde::Deserialize;

use crate::classify::refusal;
use crate::failure::{Failure, Scene, Stage};

/// How late a server may notice that a wait is over: it looks ten times a second.
const LATENESS: Duration = Duration::from_millis(100);
/// The part of the time of a request that is left for its answer besides, and the least that is waited. Chosen: a socket may give
/// up a tenth of its time too early, and requests that wait behind this one should have time left as well.
const PART: u32 = 4;
/// The shortest wait. Without a limit, `WAIT` would wait forever.
const WAIT_MIN: Duration = Duration::from_millis(1);

/// How many replicas have to acknowledge each grant and each renewal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
pub(crate) struct Replicas(NonZeroU16);

impl Replicas {
    /// Reads the option of a URL.
    pub(crate) fn parse(text: &str) -> Result<Self, Invalid> {
        let remedy = "write how many replicas have to acknowledge a grant, such as 1, or omit the option";
        let number = text.parse().map_err(|_| Invalid::new("replicas", text, "it is not a number from 1", remedy));
        number.map(Self)
    }

    pub(crate) fn get(self) -> u16 {
        self.0.get()
    }
}

impl fmt::Display for Replicas {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The wait for replicas at the end of a write. It covers everything that was written over the connection before.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wait {
    pub(crate) replicas: Replicas,
    /// When the time of the request is over.
    pub(crate) until: Instant,
}

impl Wait {
    /// One wait for several requests: it ends in time for the one that has the least time left.
    pub(crate) fn for_all(waits: impl Iterator<Item = Self>) -> Option<Self> {
        waits.min_by_key(|wait| wait.until)
    }

    /// The command, which has to be sent at once, since it names the time that is left.
    pub(crate) fn command(self) -> Cmd {
        let left = self.until.saturating_duration_since(Instant::now());
        let part = left / PART;
        let limit = (left - part).saturating_sub(LATENESS).max(part).max(WAIT_MIN);
        let mut command = redis::cmd("WAIT");
        command.arg(self.replicas.get()).arg(u64::try_from(limit.as_millis()).unwrap_or(u64::MAX));
        command
    }
}

/// The reply to a request that waits for replicas: its own, and that to `WAIT`. Errors of the request itself stay errors.
pub(crate) fn with_wait(own: RedisResult<Value>, waited: &RedisResult<Value>) -> RedisResult<Value> {
    let own = own?.extract_error()?;
    let mut waited = waited.clone()?;
    if let Value::ServerError(error) = &waited {
        // As a text, since an error in a list counts as the error of the whole list.
        waited = Value::SimpleString(format!("{} {}", error.code(), error.details().unwrap_or_default()));
    }
    Ok(Value::Array(vec![own, waited]))
}

/// Takes such a reply apart: its own part, and how many replicas acknowledged it, or why that is not known.
pub(crate) fn without_wait(server: &str, reply: Value) -> Result<(Value, Result<u64, Failure>), Failure> {
    let both: Vec<Value> = from_redis_value(reply).map_err(|_| Failure::strange_answer())?;
    let [own, waited] = <[Value; 2]>::try_from(both).map_err(|_| Failure::strange_answer())?;
    let acknowledged = if let Value::SimpleString(told) = &waited {
        Err(refused(server, told))
    } else {
        from_redis_value(waited).map_err(|_| Failure::strange_answer())
    };
    Ok((own, acknowledged))
}

/// The server refused to wait, after it had served the request.
fn refused(server: &str, told: &str) -> Failure {
    let scene = Scene { stage: Stage::Asked, server, within: Duration::ZERO };
    let (code, details) = told.split_once(' ').unwrap_or((told, ""));
    refusal(scene, code, details).after_a_part()
}

#[cfg(test)]
mod tests {
    use lock_core::{Effect, ErrorKind, Operation};
    use redis::Arg;

    use super::*;

    fn wait(left: Duration) -> Wait {
        Wait { replicas: Replicas::parse("2").unwrap(), until: Instant::now() + left }
    }

    fn limit(wait: Wait) -> u64 {
        let command = wait.command();
        let Some(Arg::Simple(limit)) = command.args_iter().nth(2) else { panic!("{command:?}") };
        std::str::from_utf8(limit).unwrap().parse().unwrap()
    }

    #[test]
    fn a_wait_ends_in_time_for_the_request_that_has_the_least_left() {
        let waits = [5000, 1000, 3000].map(|millis| wait(Duration::from_millis(millis)));
        let limit_of_all = limit(Wait::for_all(waits.into_iter()).unwrap());
        assert!((400..=650).contains(&limit_of_all), "{limit_of_all}");
        assert_eq!(limit(wait(Duration::ZERO)), 1, "it would wait forever");
        assert!(Wait::for_all(std::iter::empty()).is_none());
    }

    #[test]
    fn a_refused_wait_leaves_the_outcome_open() {
        let told = |code_and_details: &str| {
            let reply = Value::Array(vec![Value::Int(7), Value::SimpleString(code_and_details.to_owned())]);
            let (own, acknowledged) = without_wait("redis://h", reply).ok().unwrap();
            assert_eq!(own, Value::Int(7));
            acknowledged.unwrap_err().into_error(Operation::Acquire)
        };
        for (text, kind) in [
            ("UNBLOCKED force unblock from blocking operation, instance state changed", ErrorKind::Unavailable),
            ("NOPERM this user has no permissions to run the 'wait' command", ErrorKind::Denied),
            ("ERR unknown command 'WAIT'", ErrorKind::Unsupported),
        ] {
            let error = told(text);
            assert_eq!((error.kind(), error.effect()), (kind, Effect::Unknown), "{error}");
        }
        assert!(told("NOPERM no permissions").to_string().contains("+wait"));
    }

    #[test]
    fn what_is_no_number_of_replicas_is_refused() {
        assert_eq!(Replicas::parse("3").unwrap().get(), 3);
        for text in ["0", "-1", "all", "", "99999"] {
            assert!(Replicas::parse(text).unwrap_err().to_string().contains("such as 1"), "{text}");
        }
    }
}
