//! `leasehold break`.

use std::time::{Duration, Instant};

use leasehold::LockName;
use test_support::{Finish, RedisServer};

use crate::support::leasehold::{Leasehold, Running, code, text};
use crate::support::nodes::Nodes;
use crate::support::session::Session;
use crate::support::wait_for;

/// A lease of the default ttl is renewed no sooner than this.
const RENEWED_AFTER: Duration = Duration::from_secs(9);

/// Holds a lock until it is ended.
fn hold(me: &str) -> String {
    format!("echo held > {me}; exec sleep 60")
}

/// The default store, and a Redis as options of a command line.
fn stores(server: &RedisServer) -> [String; 2] {
    [String::new(), format!("--url {}", server.url())]
}

/// Runs `leasehold break` and returns what it said on standard output and standard error.
fn break_it(leasehold: &Leasehold, line: &str, expected: i32) -> [String; 2] {
    let output = leasehold.command(&format!("break {line}")).finish();
    let said = [text(&output.stdout), text(&output.stderr)];
    assert_eq!(code(output.status), expected, "{line}: {said:?}");
    said
}

#[test]
fn only_the_token_of_the_holder_breaks_a_lock_and_the_holder_hears_of_the_operator() {
    let server = RedisServer::start();
    for url in stores(&server) {
        let leasehold = Leasehold::new();
        let holder = leasehold.start(&format!("{url} --ttl 3s --why nightly a"), &hold("held"), "held");
        let token = leasehold.json(&format!("show {url} a"))["token"].as_u64().unwrap();
        let [_, said] = break_it(&leasehold, &format!("{url} a --yes --token {}", token + 1), 1);
        assert!(said.contains(&format!("with token {token}")) && said.contains("nothing was changed"), "{said}");
        let [_, said] = break_it(&leasehold, &format!("{url} a --token {token}"), 64);
        assert!(said.contains("--yes"), "{said}");
        let [_, said] = break_it(&leasehold, &format!("{url} a"), 64);
        assert!(said.contains("--yes") && said.contains("--token"), "{said}");
        assert_eq!(leasehold.json(&format!("show {url} a"))["token"], token);
        let [told, _] = break_it(&leasehold, &format!("{url} a --yes --why stuck --token {token}"), 0);
        assert!(told.contains("nightly") && told.contains(&format!("token {token}")), "{told}");
        assert_eq!(code(leasehold.run(&format!("{url} -n a"), "true").status), 0, "the lock is free");
        let output = holder.end();
        let said = text(&output.stderr);
        assert_eq!(code(output.status), 76, "{said}");
        assert!(said.contains("an operator ended it") && said.contains("stuck"), "{said}");
        let [_, said] = break_it(&leasehold, &format!("{url} a --yes --token {token}"), 1);
        assert!(said.contains("a is not held"), "{said}");
        assert_eq!(leasehold.json(&format!("ls {url}")), serde_json::json!([]), "nothing is left that is listed");
    }
}

/// The lock was free, so nobody has waited, and the next renewal is ten seconds away.
#[test]
fn a_command_under_a_lock_of_the_default_ttl_hears_of_the_operator_soon() {
    let (server, leasehold, began) = (RedisServer::start(), Leasehold::new(), Instant::now());
    let url = format!("--url {}", server.url());
    let holder = leasehold.start(&format!("{url} a"), &hold("held"), "held");
    let mut leader = leasehold.command(&format!("elect {url} b -- sh -c"));
    leader.arg("echo term >> terms; exec sleep 60");
    let _leader = Running::spawn(leader);
    let terms = || std::fs::read_to_string(leasehold.scratch.file("terms")).unwrap_or_default().lines().count();
    wait_for("the first term", || terms() == 1);
    for name in ["a", "b"] {
        let token = leasehold.json(&format!("show {url} {name}"))["token"].as_u64().unwrap();
        break_it(&leasehold, &format!("{url} {name} --yes --why stuck --token {token}"), 0);
    }
    let output = holder.end();
    let said = text(&output.stderr);
    assert_eq!(code(output.status), 76, "{said}");
    assert!(said.contains("an operator ended it") && said.contains("stuck"), "{said}");
    wait_for("the second term", || terms() == 2);
    assert!(began.elapsed() < RENEWED_AFTER, "they were told by renewals");
}

#[test]
fn the_holder_hears_of_the_operator_where_ttls_are_short() {
    let (server, leasehold) = (RedisServer::start(), Leasehold::new());
    let url = format!("--url {}?failover=dwell&max_ttl=6s", server.url());
    let init = leasehold.command(&format!("redis init {}", url.trim_start_matches("--url "))).finish();
    assert_eq!(code(init.status), 0, "{}", text(&init.stderr));
    let holder = leasehold.start(&format!("{url} --ttl 3s a"), &hold("held"), "held");
    let token = leasehold.json(&format!("show {url} a"))["token"].as_u64().unwrap();
    break_it(&leasehold, &format!("{url} a --yes --why stuck --token {token}"), 0);
    let said = text(&holder.end().stderr);
    assert!(said.contains("an operator ended it") && said.contains("stuck"), "{said}");
}

#[test]
fn a_name_of_any_length_is_broken() {
    let server = RedisServer::start();
    for url in stores(&server) {
        let (leasehold, name) = (Leasehold::new(), "n".repeat(LockName::BYTES_MAX));
        let holder = leasehold.start(&format!("{url} --ttl 3s {name}"), &hold("held"), "held");
        let token = leasehold.json(&format!("show {url} {name}"))["token"].as_u64().unwrap();
        break_it(&leasehold, &format!("{url} {name} --yes --why stuck --token {token}"), 0);
        let said = text(&holder.end().stderr);
        assert!(said.contains("an operator ended it") && said.contains("stuck"), "{said}");
    }
}

#[test]
fn one_permit_is_broken_and_the_others_stay() {
    let server = RedisServer::start();
    for url in stores(&server) {
        let leasehold = Leasehold::new();
        let first = leasehold.start(&format!("{url} --ttl 3s --slots 2 a"), &hold("first"), "first");
        let token = leasehold.json(&format!("show {url} a"))["token"].as_u64().unwrap();
        let script = "echo held > second; while [ ! -e done ]; do sleep 0.02; done";
        let second = leasehold.start(&format!("{url} --slots 2 a"), script, "second");
        let [_, said] = break_it(&leasehold, &format!("{url} a --yes"), 64);
        assert!(said.contains("2 leases") && said.contains("--token"), "{said}");
        let [told, _] = break_it(&leasehold, &format!("{url} a --yes --json --token {token}"), 0);
        let broken: serde_json::Value = serde_json::from_str(&told).unwrap();
        assert_eq!((&broken["broken"], &broken["lease"]["slots"]), (&true.into(), &serde_json::json!([0])), "{told}");
        assert_eq!(code(first.end().status), 76);
        std::fs::write(leasehold.scratch.file("done"), "").unwrap();
        assert_eq!(code(second.end().status), 0);
    }
}

#[test]
fn a_kept_lock_is_broken_by_the_token_of_its_last_holder() {
    let server = RedisServer::start();
    for url in stores(&server) {
        let leasehold = Leasehold::new();
        assert_eq!(code(leasehold.run(&format!("{url} --at-least 50s a"), "true").status), 0);
        assert_eq!(code(leasehold.run(&format!("{url} -n a"), "true").status), 75);
        let token = leasehold.json(&format!("show {url} a"))["token"].as_u64().unwrap();
        let [told, _] = break_it(&leasehold, &format!("{url} a --yes"), 0);
        assert!(told.contains(&format!("token {token}")), "{told}");
        assert_eq!(code(leasehold.run(&format!("{url} -n a"), "true").status), 0);
    }
}

#[test]
fn a_lock_of_a_quorum_is_broken_by_a_majority_of_its_nodes() {
    let mut nodes = Nodes::founded(3);
    let (leasehold, url) = (&nodes.leasehold, format!("--url {}", nodes.url()));
    let holder = leasehold.start(&format!("{url} --ttl 3s --why nightly a"), &hold("held"), "held");
    let token = leasehold.json(&format!("show {url} a"))["token"].as_u64().unwrap();
    let [_, said] = break_it(leasehold, &format!("{url} a --yes --token {}", token + 1), 1);
    assert!(said.contains(&format!("with token {token}")) && said.contains("nothing was changed"), "{said}");
    nodes.servers[2].kill();
    let leasehold = &nodes.leasehold;
    let [told, _] = break_it(leasehold, &format!("{url} a --yes --why stuck --token {token}"), 0);
    assert!(told.contains("nightly") && told.contains(&format!("token {token}")), "{told}");
    let output = holder.end();
    let said = text(&output.stderr);
    assert_eq!(code(output.status), 76, "{said}");
    assert!(said.contains("an operator ended it") && said.contains("stuck"), "{said}");
    assert!(nodes.token(&nodes.url()) > token, "the lock is free, and tokens rise");
    let [_, said] = break_it(&nodes.leasehold, &format!("{url} a --yes --token {token}"), 1);
    assert!(said.contains("a is not held"), "{said}");
}

#[test]
fn without_a_majority_no_lock_of_a_quorum_is_broken() {
    let mut nodes = Nodes::founded(3);
    let url = format!("--url {}", nodes.url());
    let _holder = nodes.leasehold.start(&format!("{url} --ttl 3s a"), &hold("held"), "held");
    let token = nodes.leasehold.json(&format!("show {url} a"))["token"].as_u64().unwrap();
    (1..3).for_each(|node| nodes.servers[node].kill());
    let [_, said] = break_it(&nodes.leasehold, &format!("{url} a --yes --token {token}"), 69);
    assert!((1..3).all(|node| said.contains(&nodes.address(node))), "{said}");
    assert_eq!(nodes.servers[0].command::<u8>(&["EXISTS", "a"]), 1, "nothing was changed");
}

#[test]
fn a_terminal_is_asked() {
    let mut session = Session::of_script(
        "leasehold run --ttl 3s --why nightly a -- sh -c 'echo h > held; sleep 60' < /dev/null & holder=$!; \
         while [ ! -e held ]; do sleep 0.05; done; \
         leasehold break a; echo code $?; leasehold break a; echo code $?; wait $holder; echo lost $?",
    );
    session.shows("a is held by");
    session.shows("nightly");
    session.shows("it got the lock");
    session.shows("[y/N] ");
    session.types("\n");
    session.shows("nothing was changed");
    session.shows("code 1");
    session.shows("[y/N] ");
    session.types("y\n");
    session.shows("broke a: ");
    session.shows("code 0");
    session.shows("lost 76");
    session.end();
}
