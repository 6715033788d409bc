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
    assert!(told("NOPERM User app has no permissions to run the 'evalsha' command").to_string().contains("'evalsha'"));
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
        assert_eq!(failure.fate, Fate::Drop);
        let error = failure.into_error(Operation::Release);
        assert_eq!((error.kind(), error.effect()), (kind, effect));
    }
}

#[test]
fn the_words_are_ours() {
    let io = |text: &str| RedisError::from(io::Error::other(text));
    let untold = RedisKind::Server(redis::ServerErrorKind::ResponseError);
    let select = |details: &str| RedisError::from((untold, "Redis server refused to switch database", details.into()));
    for (error, kind, expected) in [
        (io::Error::from_raw_os_error(111).into(), ErrorKind::Unreachable, "redis://127.0.0.1:7391 refused the conn"),
        (io::Error::from_raw_os_error(113).into(), ErrorKind::Unreachable, "7391 cannot be reached: No route to host;"),
        (io::Error::from(io::ErrorKind::UnexpectedEof).into(), ErrorKind::Unreachable, "7391 closed the connection;"),
        (
            io("failed to lookup address information: Name"),
            ErrorKind::Unreachable,
            "the host name of redis://127.0.0.1:7391; check the spelling",
        ),
        ((RedisKind::Parse, "no type byte").into(), ErrorKind::Config, "does not speak the Redis protocol; if it"),
        ((RedisKind::AuthenticationFailed, "no").into(), ErrorKind::Denied, "refused user and password; check both"),
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

#[cfg(feature = "tls")]
#[test]
fn what_tls_says_is_told_by_its_type() {
    use rustls::CertificateError::{ExpiredContext, NotValidForName, Revoked, UnknownIssuer};
    use rustls::pki_types::UnixTime;
    use rustls::{AlertDescription, Error, InvalidMessage, PeerIncompatible};

    let (time, not_after) = (UnixTime::now(), UnixTime::now());
    for (fault, expected) in [
        (Error::InvalidCertificate(UnknownIssuer), "does not trust; make the system"),
        (Error::InvalidCertificate(NotValidForName), "is for another name; use"),
        (Error::InvalidCertificate(ExpiredContext { time, not_after }), "has expired; renew it"),
        (Error::InvalidCertificate(Revoked), "is not accepted; make the system"),
        (Error::InvalidMessage(InvalidMessage::InvalidContentType), "does not speak TLS on this port"),
        (Error::AlertReceived(AlertDescription::HandshakeFailure), "have no TLS version in common; allow TLS 1.2"),
        (Error::PeerIncompatible(PeerIncompatible::ServerDoesNotSupportTls12Or13), "no TLS version in common"),
    ] {
        for error in [RedisError::from(fault.clone()), io::Error::new(io::ErrorKind::InvalidData, fault).into()] {
            let error = classify(scene(Stage::Connecting), &error).into_error(Operation::Connect);
            assert!(error.kind() == ErrorKind::Config && error.to_string().contains(expected), "{error}");
        }
    }
}
