//! Translates errors of Redis and of its client library into our own words: the library's are for programmers.

mod source;
#[cfg(feature = "tls")]
mod tls;

use std::borrow::Cow;
use std::io;

use lock_core::{Effect, ErrorKind};
use redis::{ErrorKind as RedisKind, RedisError};

use crate::cluster::Redirect;
use crate::failure::{Failure, MISSING, SEE_THERE, Scene, Stage};
use source::of_socket;

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

/// What only words tell: the server refused the command itself.
const REFUSED: [(&str, ErrorKind, &str); 4] = [
    ("unknown command", ErrorKind::Unsupported, MISSING),
    ("max number of clients", ErrorKind::Unavailable, "raise maxclients"),
    ("DB index", ErrorKind::Config, "give a database that the server has"),
    ("switch database", ErrorKind::Config, "give a database that the server has"),
];
/// The same for what a script ran into, perhaps half-way.
const IN_SCRIPT: [(&str, ErrorKind, &str); 4] = [
    ("Unknown Redis command", ErrorKind::Unsupported, MISSING),
    // Denied to a script: Redis 7.0 does not say which command it is; later versions and Valkey do.
    ("can't run this command", ErrorKind::Denied, RIGHTS),
    ("ACL failure in script", ErrorKind::Denied, RIGHTS),
    // A script needed a key that it had not named, and that is not there any more, or not yet.
    ("attempted to access a non local key", ErrorKind::Unavailable, MOVING),
];

/// What an error reply without a code of its own means.
fn general(stage: Stage, told: String) -> Failure {
    let has = |words: &str| told.contains(words);
    if has("WAITAOF") && has("unknown command") {
        return Failure::unsupported("fsync=wait needs a server that can wait for its disk")
            .remedy("use Redis 7.2 or later, or Valkey, or remove fsync from the URL");
    }
    if has("WAITAOF") && has("appendonly is disabled") {
        let message = "fsync=wait needs a server that keeps its data in an append-only file";
        return Failure::new(ErrorKind::Config, Effect::None, message)
            .remedy("set appendonly to yes at the server, or remove fsync from the URL");
    }
    if has("cluster mode") {
        return cluster();
    }
    let find = |table: [(&'static str, ErrorKind, &'static str); 4]| table.into_iter().find(|(words, ..)| has(words));
    if let Some((_, kind, remedy)) = find(IN_SCRIPT) {
        return Failure::new(kind, effect_at(stage), told).remedy(remedy);
    }
    match find(REFUSED) {
        // Another database needs another connection.
        Some((_, ErrorKind::Config, remedy)) => {
            Failure::new(ErrorKind::Config, Effect::None, told).remedy(remedy).dropping()
        }
        Some((_, kind, remedy)) => Failure::new(kind, Effect::None, told).remedy(remedy),
        None => Failure::new(ErrorKind::Protocol, effect_at(stage), told),
    }
}

/// What a broken connection means.
fn broken(scene: Scene<'_>, error: &RedisError) -> Failure {
    let server = scene.server;
    #[cfg(feature = "tls")]
    if let Some(failure) = tls::failure(server, error, effect_at(scene.stage)) {
        return failure;
    }
    let unreachable = |message| Failure::new(ErrorKind::Unreachable, effect_at(scene.stage), message).dropping();
    let raw = error.to_string();
    // The system's resolver has no type for its errors.
    if raw.contains("lookup address") || error.kind() == RedisKind::InvalidClientConfig {
        return unreachable(format!("cannot resolve the host name of {server}"))
            .remedy("check the spelling of the host, and DNS on this machine");
    }
    let is_refused = of_socket(error).is_some_and(|error| error.kind() == io::ErrorKind::ConnectionRefused);
    match (scene.stage, system_words(&raw)) {
        (Stage::Connecting, _) if is_refused => unreachable(format!("{server} refused the connection")),
        (Stage::Connecting, Some(reason)) => unreachable(format!("{server} cannot be reached: {reason}")),
        (Stage::Connecting, None) => unreachable(format!("{server} closed the connection")),
        (Stage::Asked, Some(reason)) => return unreachable(format!("the connection to {server} broke: {reason}")),
        (Stage::Asked, None) => return unreachable(format!("the connection to {server} broke")),
    }
    .remedy(SEE_THERE)
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
mod tests;
