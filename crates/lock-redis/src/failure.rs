//! What an error of Redis or of its client library means: its kind, its effect, and what becomes of the connection.

use std::borrow::Cow;
use std::time::Duration;

use lock_core::{BackendError, Effect, ErrorKind, Operation};
use redis::{ErrorKind as RedisKind, RedisError};

use crate::BACKEND;

/// How much of a server's error is repeated to the user.
const TOLD_CHARS_MAX: usize = 200;

const RIGHTS: &str = "give the user +eval +evalsha +script +info +time +get +set +del +exists +incrby +pexpire +pttl +scan on \
                      the keys of its locks and ~leasehold:*";

/// How far a request had come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stage {
    /// The connection was being made: no verb was sent.
    Connecting,
    /// The request was handed to a connection.
    Asked,
}

/// What becomes of a connection after an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    /// Its replies are still in step with its requests.
    Keep,
    /// It is of no use any more.
    Drop,
}

/// A failed request, before it is known in whose name it was made.
#[derive(Clone, Debug)]
pub(crate) struct Failure {
    kind: ErrorKind,
    effect: Effect,
    message: Cow<'static, str>,
    remedy: Option<&'static str>,
    fate: Fate,
}

impl Failure {
    fn new(kind: ErrorKind, effect: Effect, message: impl Into<Cow<'static, str>>) -> Self {
        Self { kind, effect, message: message.into(), remedy: None, fate: Fate::Keep }
    }

    fn remedy(mut self, remedy: &'static str) -> Self {
        self.remedy = Some(remedy);
        self
    }

    fn dropping(mut self) -> Self {
        self.fate = Fate::Drop;
        self
    }

    /// The request was sent, and no answer came in time.
    pub(crate) fn no_answer(within: Duration) -> Self {
        Self::new(ErrorKind::Timeout, Effect::Unknown, format!("no answer within {within:?}"))
    }

    /// There was no connection in time; nothing was sent.
    pub(crate) fn no_connection(within: Duration) -> Self {
        Self::new(ErrorKind::Unreachable, Effect::None, format!("no connection within {within:?}"))
            .remedy("see that the server runs at this address")
    }

    /// The URL says plain, and the server speaks TLS.
    pub(crate) fn speaks_tls() -> Self {
        Self::new(ErrorKind::Config, Effect::None, "the server speaks TLS on this port")
            .remedy("use rediss:// instead of redis://, or the server's plain port")
            .dropping()
    }

    /// The URL says TLS, and the server does not speak it.
    pub(crate) fn speaks_no_tls() -> Self {
        Self::new(ErrorKind::Config, Effect::None, "the server does not speak TLS on this port")
            .remedy("use redis:// instead of rediss://, or the server's TLS port")
            .dropping()
    }

    /// The task that was to make the connection ended with its runtime.
    #[cfg(feature = "async")]
    pub(crate) fn runtime_gone() -> Self {
        Self::new(ErrorKind::Unreachable, Effect::None, "the runtime that was connecting has ended")
    }

    /// A pool that was handed in gave no connection.
    #[cfg(any(feature = "deadpool", feature = "r2d2"))]
    pub(crate) fn pool(error: &dyn std::fmt::Display) -> Self {
        Self::new(ErrorKind::Unreachable, Effect::None, format!("the pool gave no connection: {}", clean(error)))
    }

    /// The server answered something that no script of ours answers.
    pub(crate) fn strange_answer() -> Self {
        Self::new(ErrorKind::Protocol, Effect::Unknown, "the server answered something unexpected")
    }

    pub(crate) fn other_kind() -> Self {
        Self::new(ErrorKind::OtherKind, Effect::None, "the key holds another kind of value, which was left untouched")
            .remedy("use another name, or a prefix")
    }

    pub(crate) fn unsupported(message: &'static str) -> Self {
        Self::new(ErrorKind::Unsupported, Effect::None, message)
    }

    /// The same, after an earlier part of the request had been answered.
    pub(crate) fn after_a_part(mut self) -> Self {
        self.effect = Effect::Unknown;
        self
    }

    pub(crate) fn fate(&self) -> Fate {
        self.fate
    }

    /// Whether the server said it, and so is alive.
    pub(crate) fn is_an_answer(&self) -> bool {
        !matches!(self.kind, ErrorKind::Timeout | ErrorKind::Unreachable)
    }

    pub(crate) fn into_error(self, operation: Operation) -> BackendError {
        let error = BackendError::new(BACKEND, operation, self.kind, self.effect, self.message);
        match self.remedy {
            Some(remedy) => error.with_remedy(remedy),
            None => error,
        }
    }
}

/// Says what an error of the client library means.
#[expect(clippy::wildcard_enum_match_arm, reason = "the library's kinds grow; what is new is strange")]
pub(crate) fn classify(stage: Stage, within: Duration, error: &RedisError) -> Failure {
    if let Some((_, told)) = error.clone().into_server_errors().as_deref().and_then(|errors| errors.first()) {
        return refusal(stage, told.code(), told.details().unwrap_or_default());
    }
    match error.kind() {
        RedisKind::Io if error.is_timeout() => match stage {
            Stage::Connecting => Failure::no_connection(within).dropping(),
            Stage::Asked => Failure::no_answer(within).dropping(),
        },
        RedisKind::Io | RedisKind::Client => broken(stage, error),
        RedisKind::Parse => not_redis(stage),
        RedisKind::AuthenticationFailed => denied("user and password were refused")
            .remedy("check both in the URL; a server without a password refuses any"),
        RedisKind::InvalidClientConfig if error.to_string().contains("address") => broken(stage, error),
        RedisKind::InvalidClientConfig => Failure::new(ErrorKind::Config, Effect::None, clean(error)),
        RedisKind::Server(_) => refusal(stage, "ERR", &error.to_string()),
        _ => Failure::strange_answer(),
    }
}

/// What an error reply means.
fn refusal(stage: Stage, code: &str, details: &str) -> Failure {
    let told = format!("{code} {}", clean(&details));
    let unavailable = |message| Failure::new(ErrorKind::Unavailable, Effect::None, message);
    match code {
        "READONLY" => unavailable(told).remedy("connect to the primary").dropping(),
        "OOM" => unavailable(told).remedy("raise maxmemory, or free memory"),
        "MISCONF" => unavailable(told).remedy("free the disk, or see the server's log"),
        "LOADING" | "BUSY" | "MASTERDOWN" | "NOREPLICAS" | "CLUSTERDOWN" | "TRYAGAIN" => unavailable(told),
        "NOPERM" => denied(told).remedy(RIGHTS),
        "NOAUTH" => denied(told).remedy("put user and password into the URL, as in redis://USER:PASSWORD@HOST"),
        "WRONGPASS" | "DENIED" => denied(told),
        // An error that a script raised, rather than answered, tells where: then it is a key of ours that is damaged.
        "WRONGTYPE" if !details.contains("script") => Failure::other_kind(),
        "MOVED" | "ASK" | "CROSSSLOT" => {
            Failure::unsupported("this server is one of a cluster").remedy("use a standalone server for locks")
        }
        "GIVENUP" => Failure::new(ErrorKind::Protocol, Effect::None, "this claim was given up"),
        "SPENT" => Failure::new(ErrorKind::Protocol, Effect::None, "the fencing tokens are used up")
            .remedy("the counter leasehold:counter was set too high; see the guarantees before you lower it"),
        "ERR" => general(stage, told),
        _ => Failure::new(ErrorKind::Protocol, effect_at(stage), told),
    }
}

/// What an error reply without a code of its own means.
fn general(stage: Stage, told: String) -> Failure {
    if told.contains("unknown command") {
        return Failure::new(ErrorKind::Unsupported, Effect::None, told).remedy("use Redis 6.2 or later, or Valkey");
    }
    // Redis 7.0 does not say which command it denies to a script.
    if told.contains("can't run this command") {
        return denied(told).remedy(RIGHTS);
    }
    if told.contains("max number of clients") {
        return Failure::new(ErrorKind::Unavailable, Effect::None, told).remedy("raise maxclients");
    }
    if told.contains("switch database") || told.contains("DB index") {
        return Failure::new(ErrorKind::Config, Effect::None, told)
            .remedy("give a database that the server has")
            .dropping();
    }
    Failure::new(ErrorKind::Protocol, effect_at(stage), told)
}

/// What a broken connection means.
fn broken(stage: Stage, error: &RedisError) -> Failure {
    let told = clean(error);
    if told.contains("certificate") {
        let remedy = "make the system trust the server's authority, and use the name that the certificate is for";
        return Failure::new(ErrorKind::Config, Effect::None, told).remedy(remedy).dropping();
    }
    if told.contains("corrupt message") || told.contains("InvalidContentType") {
        return Failure::speaks_no_tls();
    }
    let failure = Failure::new(ErrorKind::Unreachable, effect_at(stage), told).dropping();
    match stage {
        Stage::Connecting => failure.remedy("see that the server runs at this address"),
        Stage::Asked => failure,
    }
}

fn not_redis(stage: Stage) -> Failure {
    match stage {
        Stage::Connecting => {
            Failure::new(ErrorKind::Config, Effect::None, "the server does not speak the Redis protocol")
                .remedy("if it speaks TLS on this port, use rediss:// instead of redis://")
        }
        Stage::Asked => Failure::strange_answer(),
    }
    .dropping()
}

fn denied(message: impl Into<Cow<'static, str>>) -> Failure {
    Failure::new(ErrorKind::Denied, Effect::None, message).dropping()
}

fn effect_at(stage: Stage) -> Effect {
    match stage {
        Stage::Connecting => Effect::None,
        Stage::Asked => Effect::Unknown,
    }
}

/// A text on one line, shortened, without the arguments of a request, which hold owners.
fn clean(text: &dyn std::fmt::Display) -> String {
    let text = text.to_string();
    let told = text.split(", with args").next().unwrap_or_default();
    told.chars().filter(|c| !c.is_control()).take(TOLD_CHARS_MAX).collect()
}

#[cfg(test)]
mod tests {
    use std::io;

    use super::*;

    const WITHIN: Duration = Duration::from_secs(1);

    fn told(reply: &str) -> BackendError {
        let reply = redis::parse_redis_value(format!("-{reply}\r\n").as_bytes()).unwrap();
        let error = reply.extract_error().unwrap_err();
        classify(Stage::Asked, WITHIN, &error).into_error(Operation::Acquire)
    }

    #[test]
    fn refusals_have_a_kind_and_no_effect() {
        for (reply, kind) in [
            ("READONLY You can't write against a read only replica.", ErrorKind::Unavailable),
            ("LOADING Redis is loading the dataset in memory", ErrorKind::Unavailable),
            ("BUSY Redis is busy running a script.", ErrorKind::Unavailable),
            ("MASTERDOWN Link with MASTER is down", ErrorKind::Unavailable),
            ("MISCONF Redis is configured to save RDB snapshots", ErrorKind::Unavailable),
            ("OOM command not allowed when used memory > 'maxmemory'.", ErrorKind::Unavailable),
            ("NOAUTH Authentication required.", ErrorKind::Denied),
            ("WRONGPASS invalid username-password pair or user is disabled.", ErrorKind::Denied),
            ("NOPERM User app has no permissions to run the 'evalsha' command", ErrorKind::Denied),
            ("WRONGTYPE Operation against a key holding the wrong kind of value", ErrorKind::OtherKind),
            ("MOVED 3999 127.0.0.1:6381", ErrorKind::Unsupported),
            ("GIVENUP this claim was given up", ErrorKind::Protocol),
            ("ERR max number of clients reached", ErrorKind::Unavailable),
        ] {
            let error = told(reply);
            assert_eq!((error.kind(), error.effect()), (kind, Effect::None), "{reply}");
        }
        assert!(
            told("NOPERM User app has no permissions to run the 'evalsha' command").to_string().contains("'evalsha'")
        );
        assert_eq!(told("ERR something else").effect(), Effect::Unknown);
        assert_eq!(told("WRONGTYPE Operation .. script: 12ab, on @user_script:9.").kind(), ErrorKind::Protocol);
    }

    #[test]
    fn arguments_are_never_repeated() {
        let error = told("ERR unknown command 'EVALSHA', with args beginning with: 'lh1:abab' ");
        assert_eq!(error.kind(), ErrorKind::Unsupported);
        assert!(!format!("{error} {error:?}").contains("abab"));
    }

    #[test]
    fn broken_connections_differ_by_stage() {
        let broken = |kind| RedisError::from(io::Error::from(kind));
        for (stage, error, kind, effect) in [
            (Stage::Connecting, broken(io::ErrorKind::ConnectionRefused), ErrorKind::Unreachable, Effect::None),
            (Stage::Connecting, broken(io::ErrorKind::TimedOut), ErrorKind::Unreachable, Effect::None),
            (Stage::Asked, broken(io::ErrorKind::BrokenPipe), ErrorKind::Unreachable, Effect::Unknown),
            (Stage::Asked, broken(io::ErrorKind::WouldBlock), ErrorKind::Timeout, Effect::Unknown),
        ] {
            let failure = classify(stage, WITHIN, &error);
            assert_eq!(failure.fate(), Fate::Drop);
            let error = failure.into_error(Operation::Release);
            assert_eq!((error.kind(), error.effect()), (kind, effect));
        }
    }
}
