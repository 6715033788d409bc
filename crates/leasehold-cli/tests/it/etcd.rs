//! `leasehold` on etcd: what differs from other stores, and each subcommand once.

use std::sync::Arc;

use crate::support::leasehold::{Leasehold, code, text, until_let_go};
use crate::support::servers::{a_broken_lock_is_seen, found, report, the_base_is_raised_once, the_next_one_waits};
use test_support::{EtcdServer, Finish, Shared};

/// The server that the tests share. Each has names of its own.
fn server() -> Arc<EtcdServer> {
    static SERVER: Shared<EtcdServer> = Shared::new();
    SERVER.get(EtcdServer::start)
}

/// The URL of keys that only one test uses.
fn url(test: &str) -> String {
    format!("{}/{test}", server().url())
}

#[test]
fn a_command_has_the_lock_and_the_next_one_waits_for_it() {
    let server = server();
    the_next_one_waits(&url("waits"));
    assert_eq!(server.run(&["get", "--prefix", "--keys-only", "waits/a"]), "", "its keys are gone");
}

#[test]
fn a_broken_lock_is_seen_by_its_holder_and_by_a_watch() {
    let _server = server();
    a_broken_lock_is_seen(&url("broken"));
}

#[test]
fn slots_and_leaders_are_as_elsewhere() {
    let (_server, leasehold) = (server(), Leasehold::new());
    let url = format!("--url {}", url("slots"));
    let _slot = leasehold.start(&format!("{url} --slots 2 gpu"), &until_let_go("slot"), "slot");
    let other = leasehold.run(&format!("{url} -n --slots 2 gpu"), "echo $LEASEHOLD_SLOT");
    assert_eq!(text(&other.stdout), "1\n", "{}", text(&other.stderr));
    let listed = leasehold.json(&format!("ls {url}"));
    assert!(listed[0]["remaining_ms"].as_u64().is_some_and(|left| left > 0), "{listed}");
    let mut command = leasehold.command(&format!("elect {url} boss -- sh -c"));
    command.arg("echo $LEASEHOLD_FENCE");
    let output = command.finish();
    assert!(text(&output.stdout).trim().parse::<u64>().unwrap() > 0, "{}", text(&output.stderr));
}

/// `etcdctl lock` and `leasehold run` take the same lock, whose key begins with a slash.
#[test]
fn a_lock_of_etcdctl_keeps_a_command_out() {
    let (server, leasehold) = (server(), Leasehold::new());
    let url = url("/shared");
    let held = leasehold.start(&format!("--url {url} a"), &until_let_go("held"), "held");
    let mut other = server.etcdctl(&["lock", "/shared/a", "echo", "theirs"]);
    let other = std::thread::spawn(move || other.finish());
    let waits = || (leasehold.json(&format!("show --url {url} a"))["waiters"] == 1).then_some(());
    crate::support::wait_for("the waiter of etcdctl", waits);
    assert!(!other.is_finished());
    leasehold.let_go("held");
    assert_eq!(code(held.end().status), 0);
    let output = other.join().unwrap();
    assert!(text(&output.stdout).contains("theirs"), "{}", text(&output.stderr));
}

#[test]
fn a_cluster_that_cannot_be_used_says_why() {
    let (server, leasehold) = (server(), Leasehold::new());
    for (url, expected, words) in [
        ("etcd://127.0.0.1:1".to_owned(), 69, "no connection to 127.0.0.1:1"),
        (format!("{}?timeout=1s", server.url()), 78, "timeout"),
        (format!("etcd://:sesame@127.0.0.1:{}", server.port()), 78, "a password but no user"),
        (format!("etcds://127.0.0.1:{}", server.port()), 69, "ports for TLS"),
        ("etcd:///shop".to_owned(), 78, "names no host"),
    ] {
        let refused = leasehold.run(&format!("-n --url {url} a"), "true");
        let said = text(&refused.stderr);
        assert_eq!(code(refused.status), expected, "{url}: {said}");
        assert!(said.contains(words) && !said.contains("sesame"), "{url}: {said}");
    }
}

#[test]
fn the_base_of_the_tokens_is_raised_once() {
    let _server = server();
    the_base_is_raised_once("etcd", &url("base"));
}

/// The version in these tests has faults, and `doctor` reports them.
#[test]
fn a_doctor_looks_at_each_server() {
    let (server, leasehold) = (server(), Leasehold::new());
    let (told, exit) = report(&leasehold, &server.url());
    assert_eq!((exit, &told["verdict"]), (78, &"finding".into()), "{told}");
    for check in ["reach", "cluster", "alarms", "majority", "waiting", "tokens", "exclusion"] {
        assert_eq!(found(&told, check).0, "ok", "{check}: {told}");
    }
    let (verdict, said) = found(&told, "version");
    assert!(verdict == "finding" && said.contains("etcd 3.5.1") && said.contains("upgrade"), "{said}");
    let (told, _) = report(&leasehold, &format!("etcd://127.0.0.1:1,127.0.0.1:{}", server.port()));
    assert_eq!((found(&told, "reach").0, found(&told, "majority").0), ("remark", "ok"), "{told}");
}
