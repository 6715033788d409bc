//! Translates errors of Redis and of its client library into our own words: the library's are for programmers.

use std::borrow::Cow;

use lock_core::{Effect, ErrorKind};
use redis::{ErrorKind as RedisKind, RedisError};

use crate::cluster::Redirect;
use crate::failure::{Failure, MISSING, SEE_THERE, Scene, Stage};

/// What servers call the script in which an error occurred.
const SCRIPT: &str = "@user_script";

/// How much of a server's error is repeated to the user.
const TOLD_CHARS_MAX: usize = 200;

/// What to do while some of a lock's keys are at one server, and some at another.
const MOVING: &str = "wait until the hash slot has moved";
/// How to use a cluster.
pub(crate) const CLUSTER: &str = "use redis+cluster://HOST:PORT,HOST:PORT";
/// What to do if a cluster does not work.
pub(crate) const CHECK_CLUSTER: &str = "check the cluster with: redis-cli --cluster check HOST:PORT";
const RIGHTS: &str = "give the user the rights that the book lists under Operations: keys of its locks and ~leasehold:*, channels \
                      &leasehold:inbox:*, and the commands +@scripting +@pubsub +info +time +get +mget +set +del +exists \
                      +incrby +pexpire +pttl +lpop +rpush +llen +lrange +lset +lrem +hget +hmget +hset +hdel +hlen +hvals +scan, \
                      +hscan +pexpireat +unlink +zadd +zcard +zcount +zrange +zrem +zscore for locks that are shared, \
                      +select for a database other than 0, +wait with replicas=N, +waitaof with fsync=wait, \
                      +cluster|slots +asking for a cluster, and +lpos for a node of a quorum";

/// Says what an error of the client library means.
#[expect(clippy::wildcard_enum_match_arm, reason = "the library's kinds grow; a new one counts as unexpected")]
pub(crate) fn classify(scene: Scene<'_>, error: &RedisError) -> Failure {
    if let Some((_, told)) = error.clone().into_server_errors().as_deref().and_then(|errors| errors.first()) {
        return refusal(scene, told.code(), told.details().unwrap_or_default());
    }
    match error.kind() {
        RedisKind::Io if error.is_timeout() => match scene.stage {
            Stage::Connecting => Failure::no_connection(scene.server, scene.within).dropping(),
            Stage::Asked => Failure::no_answer(scene.server, scene.within).dropping(),
        },
        RedisKind::Io | RedisKind::Client => broken(scene, error),
        RedisKind::Parse => not_redis(scene),
        RedisKind::AuthenticationFailed => wrong_password(scene),
        RedisKind::InvalidClientConfig if error.to_string().contains("address") => broken(scene, error),
        RedisKind::InvalidClientConfig => Failure::new(ErrorKind::Config, Effect::None, words(error)),
        RedisKind::Server(_) => {
            let details = error.detail().map_or_else(|| words(error), str::to_owned);
            refusal(scene, lost_code(&details), &details)
        }
        _ => Failure::strange_answer(),
    }
}

/// The code of a refusal to select the database. The library passes on the rest of the message only.
fn lost_code(details: &str) -> &'static str {
    if details.contains("no permissions") {
        "NOPERM"
    } else if details.contains("uthentication required") {
        "NOAUTH"
    } else {
        "ERR"
    }
}

/// The refusal inside the message that Redis 6.2 builds when a script runs into one:
/// `ERR Error running script (call to f_..): @user_script:7: @user_script: 7: -READONLY ..`, or only from the second
/// `@user_script` on if the script passes it on itself.
fn unwrapped<'a>(code: &'a str, details: &'a str) -> (&'a str, &'a str) {
    if !details.starts_with("Error running script") && !code.starts_with(SCRIPT) {
        return (code, details);
    }
    let inner = details.rsplit_once(SCRIPT).map_or(details, |(_, inner)| inner);
    let inner = inner.trim_start_matches(|c: char| c.is_ascii_digit() || ": -".contains(c));
    match inner.split_once(' ') {
        Some((word, rest)) if word.bytes().all(|b| b.is_ascii_uppercase()) => (word, rest),
        _ => ("ERR", inner),
    }
}

/// What an error reply means.
///
/// A refusal because of the server's state hits a script's first write, before anything has happened. A fault of one
/// command or one key may come after other commands have run.
pub(crate) fn refusal(scene: Scene<'_>, code: &str, details: &str) -> Failure {
    let in_script = code.starts_with(SCRIPT) || details.contains(SCRIPT);
    let effect = if in_script { effect_at(scene.stage) } else { Effect::None };
    let (code, details) = unwrapped(code, details);
    let said = format!("{code} {}", clean(&details));
    let told = match scene.stage {
        Stage::Connecting => format!("{} answered: {said}", scene.server),
        Stage::Asked => said,
    };
    let unavailable = |message| Failure::new(ErrorKind::Unavailable, Effect::None, message);
    let refused = |message| Failure::new(ErrorKind::Protocol, Effect::None, message);
    match code {
        "READONLY" => unavailable(told).remedy("connect to the primary").dropping(),
        "OOM" => unavailable(told).remedy("raise maxmemory, or free memory"),
        "MISCONF" => unavailable(told).remedy("free disk space, or check the server's log"),
        // It began to run again, or became a replica: another server may be the primary.
        "LOADING" | "MASTERDOWN" => unavailable(told).dropping(),
        "BUSY" | "UNBLOCKED" | "NOREPLICAS" => unavailable(told),
        "CLUSTERDOWN" => unavailable(told).remedy(CHECK_CLUSTER).redirected(Redirect::read(code, details)),
        "TRYAGAIN" => unavailable(told).remedy(MOVING),
        "NOPERM" => denied(told, effect).remedy(RIGHTS),
        "NOAUTH" => denied(format!("{} requires a password (NOAUTH)", scene.server), Effect::None)
            .remedy("put it in the URL, as in redis://:PASSWORD@HOST, or with a user, as in redis://USER:PASSWORD@HOST")
            .dropping(),
        "WRONGPASS" => wrong_password(scene),
        "DENIED" => denied(told, Effect::None),
        // An error that a script raised, rather than returned, names the script: then one of our own keys is damaged.
        "WRONGTYPE" if !in_script => Failure::other_kind(),
        "MOVED" | "ASK" | "CROSSSLOT" => cluster().redirected(Redirect::read(code, details)),
        "OTHERMODE" => refused("this owner holds the lock in another mode").remedy("ask as another owner"),
        "NOTHELD" => Failure::new(ErrorKind::NotHeld, Effect::None, "the lease to replace is not held")
            .remedy("acquire the lock again"),
        "UNREPLACED" => {
            refused("a lease cannot be replaced by one of this mode").remedy("release it, and acquire the lock again")
        }
        "UNKEPT" => refused("only an exclusive lease can be kept").remedy("release it at once"),
        "GIVENUP" => refused("this claim was given up"),
        "SPENT" => refused("the fencing tokens are used up")
            .remedy("the counter leasehold:counter was set too high; see the guarantees before you lower it"),
        "ERR" => general(scene.stage, told),
        _ => Failure::new(ErrorKind::Protocol, effect_at(scene.stage), told),
    }
}

fn wrong_password(scene: Scene<'_>) -> Failure {
    denied(format!("{} refused user and password", scene.server), Effect::None)
        .remedy("check both in the URL; a server without a password refuses any password")
        .dropping()
}

/// What an error reply without a code of its own means.
fn general(stage: Stage, told: String) -> Failure {
    if told.contains("unknown command") && told.contains("WAITAOF") {
        return Failure::new(
            ErrorKind::Unsupported,
            Effect::None,
            "fsync=wait needs a server that can wait for its disk",
        )
        .remedy("use Redis 7.2 or later, or Valkey, or remove fsync from the URL");
    }
    if told.contains("WAITAOF") && told.contains("appendonly is disabled") {
        return Failure::new(
            ErrorKind::Config,
            Effect::None,
            "fsync=wait needs a server that keeps its data in an append-only file",
        )
        .remedy("set appendonly to yes at the server, or remove fsync from the URL");
    }
    if told.contains("unknown command") {
        return Failure::new(ErrorKind::Unsupported, Effect::None, told).remedy(MISSING);
    }
    if told.contains("Unknown Redis command") {
        return Failure::new(ErrorKind::Unsupported, effect_at(stage), told).remedy(MISSING);
    }
    // Denied to a script: Redis 7.0 does not say which command it is; later versions and Valkey do.
    if told.contains("can't run this command") || told.contains("ACL failure in script") {
        return denied(told, effect_at(stage)).remedy(RIGHTS);
    }
    if told.contains("max number of clients") {
        return Failure::new(ErrorKind::Unavailable, Effect::None, told).remedy("raise maxclients");
    }
    // A script needed a key that it had not named, and that is not there any more, or not yet.
    if told.contains("attempted to access a non local key") {
        return Failure::new(ErrorKind::Unavailable, effect_at(stage), told).remedy(MOVING);
    }
    if told.contains("cluster mode") {
        return cluster();
    }
    if told.contains("DB index") || told.contains("switch database") {
        return Failure::new(ErrorKind::Config, Effect::None, told)
            .remedy("give a database that the server has")
            .dropping();
    }
    Failure::new(ErrorKind::Protocol, effect_at(stage), told)
}

/// What a broken connection means.
fn broken(scene: Scene<'_>, error: &RedisError) -> Failure {
    let (server, raw) = (scene.server, error.to_string());
    if raw.contains("certificate:") {
        return bad_certificate(server, &raw);
    }
    if raw.contains("corrupt message") || raw.contains("InvalidContentType") {
        return Failure::speaks_no_tls(server);
    }
    if raw.contains("received fatal alert") || raw.contains("peer is incompatible") {
        let message = format!("{server} and this client have no TLS version in common");
        return Failure::new(ErrorKind::Config, effect_at(scene.stage), message)
            .remedy("allow TLS 1.2 or 1.3 without client certificates at the server")
            .dropping();
    }
    let unreachable = |message| Failure::new(ErrorKind::Unreachable, effect_at(scene.stage), message).dropping();
    if raw.contains("lookup address") || error.kind() == RedisKind::InvalidClientConfig {
        return unreachable(format!("cannot resolve the host name of {server}"))
            .remedy("check the spelling of the host, and DNS on this machine");
    }
    let reason = system_words(&raw);
    match (scene.stage, reason) {
        (Stage::Connecting, Some("Connection refused")) => unreachable(format!("{server} refused the connection")),
        (Stage::Connecting, Some(reason)) => unreachable(format!("{server} cannot be reached: {reason}")),
        (Stage::Connecting, None) => unreachable(format!("{server} closed the connection")),
        (Stage::Asked, Some(reason)) => return unreachable(format!("the connection to {server} broke: {reason}")),
        (Stage::Asked, None) => return unreachable(format!("the connection to {server} broke")),
    }
    .remedy(SEE_THERE)
}

fn bad_certificate(server: &str, raw: &str) -> Failure {
    let (fault, remedy) = if raw.contains("UnknownIssuer") {
        ("is signed by an authority that this system does not trust", "make the system trust the server's authority")
    } else if raw.contains("not valid for") || raw.contains("NotValidForName") {
        ("is for another name", "use the name that the certificate is for")
    } else if raw.contains("xpired") {
        ("has expired", "renew it at the server, or set the clock of this machine right")
    } else {
        let remedy = "make the system trust the server's authority, and use the name that the certificate is for";
        ("is not accepted", remedy)
    };
    Failure::new(ErrorKind::Config, Effect::None, format!("the certificate of {server} {fault}"))
        .remedy(remedy)
        .dropping()
}

fn not_redis(scene: Scene<'_>) -> Failure {
    match scene.stage {
        Stage::Connecting => {
            let message = format!("the server at {} does not speak the Redis protocol", scene.server);
            Failure::new(ErrorKind::Config, Effect::None, message)
                .remedy("if it speaks TLS on this port, use rediss:// instead of redis://")
        }
        Stage::Asked => Failure::strange_answer(),
    }
    .dropping()
}

fn cluster() -> Failure {
    Failure::unsupported("this server belongs to a cluster").remedy(CLUSTER)
}

fn denied(message: impl Into<Cow<'static, str>>, effect: Effect) -> Failure {
    Failure::new(ErrorKind::Denied, effect, message)
}

fn effect_at(stage: Stage) -> Effect {
    match stage {
        Stage::Connecting => Effect::None,
        Stage::Asked => Effect::Unknown,
    }
}

/// What the library says, without its name for the kind of error.
pub(crate) fn words(error: &RedisError) -> String {
    clean(&error.to_string().replace(&format!(" - {:?}", error.kind()), ""))
}

/// A pool that was passed in provided no connection. The library's name for the kind of error, at the end, is left out.
#[cfg(any(feature = "deadpool", feature = "r2d2"))]
pub(crate) fn pool_failure(error: &dyn std::fmt::Display) -> Failure {
    let told = clean(error);
    let told = system_words(&told).unwrap_or(&told).split(" - ").next().unwrap_or_default();
    Failure::new(ErrorKind::Unreachable, Effect::None, format!("the pool provided no connection: {told}"))
}

/// What the operating system says, if it says something.
fn system_words(raw: &str) -> Option<&str> {
    raw.rsplit_once(" (os error ").map(|(words, _)| words)
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
    use std::time::Duration;

    use lock_core::{BackendError, Operation};

    use super::*;
    use crate::failure::Fate;

    fn scene(stage: Stage) -> Scene<'static> {
        Scene { stage, server: "redis://127.0.0.1:7391", within: Duration::from_secs(1) }
    }

    fn told(reply: &str) -> BackendError {
        let reply = redis::parse_redis_value(format!("-{reply}\r\n").as_bytes()).unwrap();
        let error = reply.extract_error().unwrap_err();
        classify(scene(Stage::Asked), &error).into_error(Operation::Acquire)
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
            ("DENIED Redis is running in protected mode", ErrorKind::Denied),
            ("GIVENUP this claim was given up", ErrorKind::Protocol),
            ("SPENT", ErrorKind::Protocol),
            ("ERR max number of clients reached", ErrorKind::Unavailable),
        ] {
            let error = told(reply);
            assert_eq!((error.kind(), error.effect()), (kind, Effect::None), "{reply}");
        }
        assert!(
            told("NOPERM User app has no permissions to run the 'evalsha' command").to_string().contains("'evalsha'")
        );
        assert!(told("SPENT").to_string().contains("the fencing tokens are used up"));
        assert_eq!(told("ERR something else").effect(), Effect::Unknown);
        assert_eq!(told("WRONGTYPE Operation .. script: 12ab, on @user_script:9.").kind(), ErrorKind::Protocol);
    }

    #[test]
    fn what_a_script_ran_into_keeps_its_code() {
        let in_6_2 = |inner: &str| {
            format!(
                "ERR Error running script (call to f_1f8f4cfba6f3375f8c4ec02b9de4361a5dea5c64): @user_script:7: {inner}"
            )
        };
        let passed_on = |inner: &str| format!("@user_script: 7: {inner}");
        for (inner, kind) in [
            ("READONLY You can't write against a read only replica.", ErrorKind::Unavailable),
            ("OOM command not allowed when used memory > 'maxmemory'.", ErrorKind::Unavailable),
            ("MISCONF Redis is configured to save RDB snapshots", ErrorKind::Unavailable),
            ("CLUSTERDOWN The cluster is down", ErrorKind::Unavailable),
            ("NOREPLICAS Not enough good replicas to write.", ErrorKind::Unavailable),
        ] {
            let replies = [
                in_6_2(&passed_on(&format!("-{inner}"))),
                passed_on(&format!("-{inner}")),
                format!("{inner} script: 1f8f, on @user_script:7."),
            ];
            for reply in replies {
                let error = told(&reply);
                assert_eq!((error.kind(), error.effect()), (kind, Effect::None), "{reply}");
                assert!(error.to_string().contains(&format!(": {inner}")), "{error}");
            }
        }
        for (reply, kind) in [
            (in_6_2("WRONGTYPE Operation against a key holding the wrong kind of value"), ErrorKind::Protocol),
            (in_6_2(&passed_on("Unknown Redis command called from Lua script")), ErrorKind::Unsupported),
            (
                in_6_2(&passed_on("Lua script attempted to access a non local key in a cluster node")),
                ErrorKind::Unavailable,
            ),
            (
                "ERR Script attempted to access a non local key in a cluster node script: d2d4, on @user_script:7.".into(),
                ErrorKind::Unavailable,
            ),
            (
                "ERR Unknown Redis command called from script script: 1f8f, on @user_script:7.".into(),
                ErrorKind::Unsupported,
            ),
            (
                in_6_2(&passed_on("The user executing the script can't run this command or subcommand")),
                ErrorKind::Denied,
            ),
            (
                "ERR ACL failure in script: User app has no permissions to run the 'set' command script: on @user_script:8."
                    .into(),
                ErrorKind::Denied,
            ),
            (
                "NOPERM User app has no permissions to run the 'set' command script: 1f, on @user_script:7.".into(),
                ErrorKind::Denied,
            ),
        ] {
            let error = told(&reply);
            assert_eq!((error.kind(), error.effect()), (kind, Effect::Unknown), "{reply}");
            assert!(!error.to_string().contains("Error running"), "{error}");
        }
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
            let failure = classify(scene(stage), &error);
            assert_eq!(failure.fate(), Fate::Drop);
            let error = failure.into_error(Operation::Release);
            assert_eq!((error.kind(), error.effect()), (kind, effect));
        }
    }

    #[test]
    fn the_words_are_ours() {
        let io = |text: &str| RedisError::from(io::Error::other(text));
        let untold = RedisKind::Server(redis::ServerErrorKind::ResponseError);
        let select =
            |details: &str| RedisError::from((untold, "Redis server refused to switch database", details.into()));
        for (error, kind, expected) in [
            (
                io::Error::from_raw_os_error(111).into(),
                ErrorKind::Unreachable,
                "redis://127.0.0.1:7391 refused the conn",
            ),
            (
                io::Error::from_raw_os_error(113).into(),
                ErrorKind::Unreachable,
                "7391 cannot be reached: No route to host;",
            ),
            (
                io::Error::from(io::ErrorKind::UnexpectedEof).into(),
                ErrorKind::Unreachable,
                "7391 closed the connection;",
            ),
            (
                io("failed to lookup address information: Name"),
                ErrorKind::Unreachable,
                "the host name of redis://127.0.0.1:7391; check the spelling",
            ),
            (io("invalid peer certificate: UnknownIssuer"), ErrorKind::Config, "does not trust; make the system"),
            (
                io("invalid peer certificate: it is not valid for any name"),
                ErrorKind::Config,
                "is for another name; use",
            ),
            (io("received corrupt message"), ErrorKind::Config, "TLS"),
            (
                io("received fatal alert: HandshakeFailure"),
                ErrorKind::Config,
                "have no TLS version in common; allow TLS 1.2",
            ),
            (io("peer is incompatible: ServerDoesNotSupportTls12Or13"), ErrorKind::Config, "no TLS version in common"),
            ((RedisKind::Parse, "no type byte").into(), ErrorKind::Config, "does not speak the Redis protocol; if it"),
            (
                (RedisKind::AuthenticationFailed, "no").into(),
                ErrorKind::Denied,
                "refused user and password; check both",
            ),
            (
                (RedisKind::InvalidClientConfig, "no such address").into(),
                ErrorKind::Unreachable,
                "cannot resolve the host name of",
            ),
            ((RedisKind::InvalidClientConfig, "a strange choice").into(), ErrorKind::Config, "a strange choice"),
            (select("this user has no permissions"), ErrorKind::Denied, "7391 answered: NOPERM this user has no perm"),
            (select("Authentication required."), ErrorKind::Denied, "requires a password (NOAUTH); put it in the URL"),
            (select("DB index is out of range"), ErrorKind::Config, "ERR DB index is out of range; give a database"),
        ] {
            let error = classify(scene(Stage::Connecting), &error).into_error(Operation::Connect);
            let text = error.to_string();
            assert!(error.kind() == kind && text.contains(expected), "{text}");
            for internal in ["ResponseError", "InvalidClientConfig", " - ", "os error", "UnknownIssuer", "Failure"] {
                assert!(!text.contains(internal), "{text}");
            }
        }
    }
}
