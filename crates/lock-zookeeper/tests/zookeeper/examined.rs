//! The findings for operators.

use lock_core::StoreConfig;
use lock_core::examine::{Check, Verdict};
use test_support::bounds::wait_for;
use test_support::{ZookeeperOptions, ZookeeperServer};

use crate::support::{Client, LONG, at, config, server, url};

/// What is said about something, once the servers that run have answered.
#[track_caller]
fn about(url: &str, running: usize, check: &str) -> Vec<Check> {
    let checks = wait_for("an answer of each server", || {
        let checks = config(url).examine().unwrap();
        let reached = checks.iter().filter(|told| told.check == "reach" && told.verdict == Verdict::Ok).count();
        if reached == running { Ok(checks) } else { Err(format!("{checks:?}")) }
    });
    checks.into_iter().filter(|told| told.check == check).collect()
}

#[track_caller]
fn says(checks: &[Check], verdict: Verdict, message: &str) {
    let [check] = checks else { panic!("{checks:?}") };
    assert_eq!(check.verdict, verdict, "{check:?}");
    assert!(check.message.contains(message), "{check:?}");
    assert_eq!(check.remedy.is_some(), verdict != Verdict::Ok || message.contains("not encrypted"), "{check:?}");
}

#[test]
fn a_server_that_does_not_answer_is_named() {
    let server = server();
    let named = format!("{},{}", at(1), server.address());
    let reached = about(&url(&named, LONG), 1, "reach");
    let verdicts: Vec<_> = reached.iter().map(|check| (check.server.as_deref(), check.verdict)).collect();
    let address = server.address();
    assert_eq!(verdicts, [(Some(&*at(1)), Verdict::Remark), (Some(&*address), Verdict::Ok)]);
}

#[test]
fn sessions_that_differ_between_servers_endanger_locks() {
    let longest =
        |millis: &str| ZookeeperOptions::default().volatile().settings(&[&format!("maxSessionTimeout={millis}")]);
    let (one, other) = (ZookeeperServer::start_with(longest("8000")), ZookeeperServer::start_with(longest("4000")));
    let both = url(&format!("{},{}", one.address(), other.address()), LONG);
    says(&about(&both, 2, "session"), Verdict::Finding, "from 4s to 8s");
    says(&about(&url(&one.address(), LONG), 1, "session"), Verdict::Remark, "do not agree to 60s");
    says(&about(&url(&server().address(), LONG), 1, "session"), Verdict::Ok, "sessions of 60s");
}

#[test]
fn who_may_use_the_nodes_and_who_may_listen_is_told() {
    let server = server();
    let at = |login: &str, options: &str| {
        format!("zookeeper://{login}{}/?session=10s&tick=500ms{options}", server.address())
    };
    says(&about(&at("", ""), 1, "access"), Verdict::Remark, "anybody who can connect");
    says(&about(&at("app:sesame@", "&acl=open"), 1, "access"), Verdict::Remark, "anybody who can connect");
    says(&about(&at("app:sesame@", ""), 1, "access"), Verdict::Ok, "only clients with this login");
    says(&about(&at("app:sesame@", ""), 1, "encryption"), Verdict::Remark, "learns the password");
    says(&about(&at("", ""), 1, "majority"), Verdict::Ok, "a majority");
    says(&about(&at("", ""), 1, "base"), Verdict::Ok, "the same tokens");
}

#[test]
fn a_session_of_few_ticks_leaves_little_of_each_lease() {
    let url = format!("zookeeper://{}/?session=3s&tick=1s", server().address());
    says(&about(&url, 1, "session"), Verdict::Finding, "short for ticks of 1s");
}

#[test]
fn servers_of_two_ensembles_are_told_apart() {
    let start = || ZookeeperServer::start_with(ZookeeperOptions::default().volatile());
    let (one, other) = (start(), start());
    for server in [&one, &other] {
        Client::new(&url(&server.address(), LONG));
    }
    let both = url(&format!("{},{}", one.address(), other.address()), LONG);
    says(&about(&both, 2, "base"), Verdict::Finding, "not one ensemble");
}

/// A client without a login was there first.
#[test]
fn a_base_that_everybody_can_change_is_told() {
    let server = ZookeeperServer::start_with(ZookeeperOptions::default().volatile());
    Client::new(&url(&server.address(), LONG));
    let login = format!("zookeeper://app:sesame@{}/?session=10s&tick=500ms", server.address());
    says(&about(&login, 1, "base"), Verdict::Remark, "everybody can change /leasehold-base");
}
