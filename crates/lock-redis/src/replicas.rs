//! How many replicas must have a lease before it counts (`?replicas=N`), whether it must be on disk (`?fsync=wait`), and the
//! command that waits for both. No I/O.

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
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct Replicas(NonZeroU16);

impl Replicas {
    /// Reads the option of a URL.
    pub(crate) fn parse(text: &str) -> Result<Self, Invalid> {
        let remedy = "write how many replicas have to acknowledge a grant, such as 1, or omit the option";
        let number = text.parse().map_err(|_| Invalid::new("replicas", text, "it is not a number from 1", remedy));
        number.map(Self)
    }
}

impl fmt::Display for Replicas {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// What a grant or a renewal waits for besides.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Fsync {
    /// Until it is on disk.
    Wait,
}

/// Who must have a lease before it counts: the server's disk and those of so many replicas, or so many replicas in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Copies {
    replicas: u16,
    fsync: Option<Fsync>,
}

impl Copies {
    /// What is configured, if anything is.
    pub(crate) fn of(replicas: Option<Replicas>, fsync: Option<Fsync>) -> Option<Self> {
        let copies = Self { replicas: replicas.map_or(0, |replicas| replicas.0.get()), fsync };
        (replicas.is_some() || fsync.is_some()).then_some(copies)
    }

    /// How many replicas.
    pub(crate) fn replicas(self) -> u16 {
        self.replicas
    }

    /// Whether they must have it on disk.
    pub(crate) fn fsync(self) -> Option<Fsync> {
        self.fsync
    }

    /// The command that waits for them.
    pub(crate) fn command(self, limit: Duration) -> Cmd {
        let mut command = redis::cmd(if self.fsync.is_some() { "WAITAOF" } else { "WAIT" });
        if self.fsync.is_some() {
            command.arg(1);
        }
        command.arg(self.replicas).arg(u64::try_from(limit.as_millis()).unwrap_or(u64::MAX));
        command
    }

    /// Refuses what too few have, at a server to which so many replicas were connected.
    pub(crate) fn check(self, (disks, replicas): Had, connected: u32) -> Result<(), Failure> {
        if self.fsync.is_some() && disks == 0 {
            return Err(Failure::not_on_disk());
        }
        if replicas < u64::from(self.replicas) {
            return Err(Failure::too_few_replicas(replicas, self.replicas, connected));
        }
        Ok(())
    }
}

/// Whether the server's own disk had it when the wait was over, as 0 or 1, and how many replicas did.
type Had = (u64, u64);

/// Reads the reply to `WAIT`, which knows nothing of disks, or to `WAITAOF`.
fn had(reply: Value) -> Result<Had, Failure> {
    let had = if let Value::Int(_) = reply {
        from_redis_value(reply).map(|replicas| (0, replicas))
    } else {
        from_redis_value(reply)
    };
    had.map_err(|_| Failure::strange_answer())
}

/// The wait at the end of a write, for replicas or disks. It covers everything that was written over the connection before.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wait {
    pub(crate) copies: Copies,
    /// When the time of the request is over.
    pub(crate) until: Instant,
}

impl Wait {
    /// One wait for several requests: as long as that of the one that has the most time left. Who has less gives up alone, and takes
    /// no time from the others.
    pub(crate) fn for_all(waits: impl Iterator<Item = Self>) -> Option<Self> {
        waits.max_by_key(|wait| wait.until)
    }

    /// The command, which has to be sent at once, since it names the time that is left.
    pub(crate) fn command(self) -> Cmd {
        let left = self.until.saturating_duration_since(Instant::now());
        let part = left / PART;
        let limit = (left - part).saturating_sub(LATENESS).max(part).max(WAIT_MIN);
        self.copies.command(limit)
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

/// Takes such a reply apart: its own part, and who had it, or why that is not known.
pub(crate) fn without_wait(server: &str, reply: Value) -> Result<(Value, Result<Had, Failure>), Failure> {
    let both: Vec<Value> = from_redis_value(reply).map_err(|_| Failure::strange_answer())?;
    let [own, waited] = <[Value; 2]>::try_from(both).map_err(|_| Failure::strange_answer())?;
    let had = if let Value::SimpleString(told) = &waited { Err(refused(server, told)) } else { had(waited) };
    Ok((own, had))
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

    fn copies(replicas: &str, fsync: Option<Fsync>) -> Copies {
        Copies::of(Some(Replicas::parse(replicas).unwrap()), fsync).unwrap()
    }

    fn wait(left: Duration) -> Wait {
        Wait { copies: copies("2", None), until: Instant::now() + left }
    }

    fn limit(wait: Wait) -> u64 {
        let command = wait.command();
        let Some(Arg::Simple(limit)) = command.args_iter().nth(2) else { panic!("{command:?}") };
        std::str::from_utf8(limit).unwrap().parse().unwrap()
    }

    #[test]
    fn a_wait_leaves_a_part_of_the_time_of_the_request_that_has_the_most() {
        let waits = [5000, 1000, 3000].map(|millis| wait(Duration::from_millis(millis)));
        let limit_of_all = limit(Wait::for_all(waits.into_iter()).unwrap());
        assert!((2000..=3650).contains(&limit_of_all), "{limit_of_all}");
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
    fn what_is_not_on_disk_does_not_count() {
        let command = |copies: Copies| {
            let packed = copies.command(Duration::from_millis(650)).get_packed_command();
            String::from_utf8(packed).unwrap().split("\r\n").skip(2).step_by(2).collect::<Vec<_>>().join(" ")
        };
        let alone = Copies::of(None, Some(Fsync::Wait)).unwrap();
        let both = copies("2", Some(Fsync::Wait));
        assert_eq!(command(copies("2", None)), "WAIT 2 650");
        assert_eq!((command(alone), command(both)), ("WAITAOF 1 0 650".to_owned(), "WAITAOF 1 2 650".to_owned()));
        assert_eq!(Copies::of(None, None), None);
        let told = |copies: Copies, own: i64, replicas: i64| {
            let told = had(Value::Array(vec![Value::Int(own), Value::Int(replicas)])).ok().unwrap();
            copies.check(told, 2).err().map(|failure| failure.into_error(Operation::Acquire))
        };
        for (copies, own, replicas, words) in [
            (alone, 1, 0, None),
            (alone, 0, 2, Some("not written it to disk in time")),
            (both, 1, 2, None),
            (both, 1, 1, Some("1 of 2 replicas")),
            (both, 0, 2, Some("not written it to disk in time")),
        ] {
            let error = told(copies, own, replicas);
            assert_eq!(error.is_some(), words.is_some(), "{copies:?} {own} {replicas}");
            if let Some(error) = error {
                assert_eq!((error.kind(), error.effect()), (ErrorKind::Unavailable, Effect::Unknown), "{error}");
                assert!(words.is_some_and(|words| error.to_string().contains(words)), "{error}");
            }
        }
        for strange in [Value::Nil, Value::Array(vec![Value::Int(1)]), Value::SimpleString("OK".to_owned())] {
            assert!(had(strange).is_err());
        }
    }

    #[test]
    fn what_is_no_number_of_replicas_is_refused() {
        assert_eq!(copies("3", None).replicas(), 3);
        for text in ["0", "-1", "all", "", "99999"] {
            assert!(Replicas::parse(text).unwrap_err().to_string().contains("such as 1"), "{text}");
        }
    }
}
