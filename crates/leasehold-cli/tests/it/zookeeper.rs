//! `leasehold` on ZooKeeper: what differs from other stores, and each subcommand once.

use std::sync::Arc;

use crate::support::leasehold::{Leasehold, code, text, until_let_go};
use crate::support::servers::{a_broken_lock_is_seen, found, report, the_base_is_raised_once, the_next_one_waits};
use test_support::{Finish, Shared, ZookeeperOptions, ZookeeperServer};

/// The server that the tests share. Each has names of its own.
fn server() -> Arc<ZookeeperServer> {
    static SERVER: Shared<ZookeeperServer> = Shared::new();
    SERVER.get(|| ZookeeperServer::start_with(ZookeeperOptions::default().volatile()))
}

fn url(server: &ZookeeperServer) -> String {
    format!("zookeeper://{}?tick=500ms", server.address())
}

#[test]
fn a_command_has_the_lock_and_the_next_one_waits_for_it() {
    let server = server();
    the_next_one_waits(&format!("{}&prefix=waits", url(&server)));
}

#[test]
fn a_broken_lock_is_seen_by_its_holder_and_by_a_watch() {
    let server = server();
    a_broken_lock_is_seen(&format!("{}&prefix=broken", url(&server)));
}

#[test]
fn slots_and_leaders_are_as_elsewhere_and_what_it_cannot_do_is_refused() {
    let (server, leasehold) = (server(), Leasehold::new());
    let url = format!("--url {}&prefix=slots", url(&server));
    let _slot = leasehold.start(&format!("{url} --slots 2 gpu"), &until_let_go("slot"), "slot");
    let other = leasehold.run(&format!("{url} -n --slots 2 gpu"), "echo $LEASEHOLD_SLOT");
    assert_eq!(text(&other.stdout), "1\n", "{}", text(&other.stderr));
    let listed = leasehold.command(&format!("ls {url}")).finish();
    assert!(text(&listed.stdout).contains("ends with its session"), "{}", text(&listed.stdout));
    let changed = leasehold.command(&format!("limit {url} gpu 2")).finish();
    assert_eq!(code(changed.status), 78, "{}", text(&changed.stderr));
    let mut command = leasehold.command(&format!("elect {url} boss -- sh -c"));
    command.arg("echo $LEASEHOLD_FENCE");
    let output = command.finish();
    assert!(text(&output.stdout).trim().parse::<u64>().unwrap() > 0, "{}", text(&output.stderr));
}

#[test]
fn an_ensemble_that_cannot_be_used_says_why() {
    let (server, leasehold) = (server(), Leasehold::new());
    let address = server.address();
    for (url, expected, words) in [
        ("zookeeper://127.0.0.1:1".to_owned(), 69, "127.0.0.1:1 cannot be reached"),
        (format!("zookeeper://{address}/nowhere"), 78, "the chroot /nowhere does not exist"),
        (format!("zookeeper://{address}?timeout=1s"), 78, "timeout"),
        (format!("zookeeper://:sesame@{address}"), 78, "a password but no user"),
        (format!("zookeeper+tls://{address}"), 78, "does not say whom to trust"),
    ] {
        let refused = leasehold.run(&format!("-n --url {url} a"), "true");
        let said = text(&refused.stderr);
        assert_eq!(code(refused.status), expected, "{url}: {said}");
        assert!(said.contains(words) && !said.contains("sesame"), "{url}: {said}");
    }
}

#[test]
fn the_base_of_the_tokens_is_raised_once() {
    let server = ZookeeperServer::start_with(ZookeeperOptions::default().volatile());
    the_base_is_raised_once("zookeeper", &url(&server));
}

#[test]
fn a_doctor_looks_at_each_server() {
    let (server, leasehold) = (server(), Leasehold::new());
    let (told, exit) = report(&leasehold, &url(&server));
    assert_eq!((exit, &told["verdict"]), (0, &"remark".into()), "{told}");
    for check in ["reach", "session", "majority", "waiting", "tokens", "exclusion"] {
        assert_eq!(found(&told, check).0, "ok", "{check}: {told}");
    }
    let (told, exit) = report(&leasehold, &format!("zookeeper://127.0.0.1:1,{}?tick=500ms", server.address()));
    assert_eq!((exit, found(&told, "reach").0, found(&told, "majority").0), (0, "remark", "ok"), "{told}");
}

/// A lease lasts no longer than its session, whatever the ttl.
#[test]
fn a_ttl_beyond_the_session_is_shortened_and_loses_nothing() {
    let (server, leasehold) = (server(), Leasehold::new());
    let url = format!("{}&prefix=short", url(&server));
    let run = |session: &str, seconds: u32| {
        leasehold.run(
            &format!("--url {url}&session={session} --ttl 60s a"),
            &format!("sleep {seconds}; echo $LEASEHOLD_TTL_MS"),
        )
    };
    let long = run("10s", 12);
    let lasts: u64 = text(&long.stdout).trim().parse().unwrap_or_else(|_| panic!("{}", text(&long.stderr)));
    assert!((8_000..10_000).contains(&lasts), "{lasts}");
    let short = run("1s", 0);
    let said = text(&short.stderr);
    assert!(code(short.status) == 78 && said.contains("use a longer session"), "{said}");
}
