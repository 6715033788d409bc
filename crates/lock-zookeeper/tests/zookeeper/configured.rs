//! Configurations that cannot work, and those that the server changes.

use std::time::{Duration, Instant};

use lock_core::{Answer, BackendError, Effect, ErrorKind};
use lock_zookeeper::blocking;
use test_support::bounds::wait_for;
use test_support::{Fault, Proxy, ZookeeperOptions, ZookeeperServer};

use crate::support::{Client, LONG, SOON, Viewer, at, claim, config, lasts_while_cut_off, server, url, waiting};

/// How long connecting may take: five seconds, and time for a loaded machine.
const CONNECTS_WITHIN: Duration = Duration::from_secs(7);

/// The refusal, and how long it took.
fn refusal(url: &str) -> (BackendError, Duration) {
    let asked = Instant::now();
    let error = blocking::connect(&config(url)).map(drop).expect_err("it is refused");
    (error, asked.elapsed())
}

#[track_caller]
fn is_unreachable(url: &str, named: &str) {
    let (error, took) = refusal(url);
    assert_eq!((error.kind(), error.effect()), (ErrorKind::Unreachable, Effect::None), "{error:?}");
    assert!(error.remedy().is_some_and(|remedy| remedy.contains("running and reachable")), "{error:?}");
    assert!(error.to_string().contains(named), "{named}: {error}");
    assert!(took < CONNECTS_WITHIN, "{took:?}");
}

#[test]
fn a_missing_chroot_is_named_and_nothing_is_made() {
    let server = server();
    let viewer = Viewer::at(&server.address());
    let url = format!("zookeeper://{}/elsewhere/locks?session=10s", server.address());
    let error = wait_for("an answer", || match refusal(&url).0 {
        error if error.kind() == ErrorKind::Unreachable => Err(error),
        error => Ok(error),
    });
    assert_eq!((error.kind(), error.effect()), (ErrorKind::Config, Effect::None), "{error:?}");
    assert!(error.to_string().contains("/elsewhere/locks does not exist"), "{error}");
    assert!(error.remedy().is_some_and(|remedy| remedy.contains("create it")), "{error:?}");
    assert!(!viewer.exists("/elsewhere"));

    for path in ["/elsewhere", "/elsewhere/locks"] {
        server.run(&["create", path]);
    }
    let client = Client::new(&url);
    client.take(&claim("report"));
    assert_eq!(viewer.children("/elsewhere/locks/report").len(), 1);
}

#[test]
fn servers_that_nobody_runs_are_unreachable_within_five_seconds() {
    let nowhere = at(1);
    is_unreachable(&url(&nowhere, LONG), &nowhere);
    // The client gives up with the session that it asked for.
    for address in [nowhere.as_str(), "nowhere.invalid:2181"] {
        is_unreachable(&url(address, Duration::from_secs(1)), address);
    }
}

#[test]
fn a_server_that_accepts_connections_and_says_nothing_is_unreachable() {
    let server = server();
    let silent = Proxy::start(server.port());
    silent.set(Fault::Hold);
    is_unreachable(&url(&at(silent.port()), LONG), &at(silent.port()));
}

#[test]
fn of_several_servers_one_that_answers_is_enough() {
    let server = server();
    let client = Client::new(&url(&format!("{},{}", at(1), server.address()), LONG));
    client.take(&claim("several"));
}

/// How long a lease lasts that a URL asks for, at a server with these bounds.
fn lasts(server: &ZookeeperServer, asked: Duration) -> Duration {
    let client = Client::new(&url(&server.address(), asked));
    match client.acquire(&claim(&format!("asked for {asked:?}")), SOON) {
        Ok(Answer::Granted { valid_for, .. }) => valid_for,
        other => panic!("not granted: {other:?}"),
    }
}

#[test]
fn a_session_that_the_server_shortens_or_lengthens_counts_as_it_is() {
    let (shortest, longest) = (Duration::from_secs(4), Duration::from_secs(8));
    let bounds = ["minSessionTimeout=4000", "maxSessionTimeout=8000"];
    let server = ZookeeperServer::start_with(ZookeeperOptions::default().settings(&bounds));
    for (asked, negotiated) in [(LONG, longest), (longest, longest), (shortest / 5, shortest)] {
        let lasts = lasts(&server, asked);
        assert!(lasts <= negotiated && lasts >= negotiated / 4, "{lasts:?} of {negotiated:?}");
    }
    // And that is how long it lasts.
    let (proxy, other) = (Proxy::start(server.port()), Client::new(&url(&server.address(), LONG)));
    let client = Client::new(&url(&at(proxy.port()), LONG));
    let lease = client.take(&claim("shortened"));
    let next = waiting("shortened");
    other.queue(&next, 1);
    lasts_while_cut_off(&client, &lease, &proxy, || other.is_granted(next.owner));
}

/// With a login, nobody else may use what a client has made, unless the URL says that everybody may.
#[test]
fn nodes_belong_to_the_login_that_has_made_them() {
    let server = server();
    let at = |login: &str, options: &str| {
        Client::new(&format!("zookeeper://{login}{}/?session=10s&tick=500ms{options}", server.address()))
    };
    let (own, same, stranger) = (at("app:sesame@", ""), at("app:sesame@", ""), at("", ""));
    own.take(&claim("acl/closed"));
    same.is_busy(&claim("acl/closed"));
    let error = stranger.acquire(&claim("acl/closed"), SOON).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Denied, "{error}");
    assert_eq!(error.remedy(), Some("check the login of the URL, and the ACLs of the nodes"));
    assert!(!error.to_string().contains("sesame"), "{error}");
    let open = at("app:sesame@", "&acl=open");
    open.take(&claim("acl open/shared"));
    stranger.is_busy(&claim("acl open/shared"));
}
