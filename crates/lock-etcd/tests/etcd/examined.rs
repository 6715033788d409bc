//! The findings for operators, and what transactions of users compare.

use lock_core::examine::{Check, Verdict};
use lock_core::{Certainty, StoreConfig};
use lock_etcd::{EtcdConfig, blocking};
use test_support::EtcdServer;
use test_support::bounds::wait_for;

use crate::support::{Client, claim, server, waiting};

/// What is said about something, once the servers that run have answered.
#[track_caller]
fn about(url: &str, running: usize, check: &str) -> Vec<Check> {
    let checks = wait_for("an answer of each server", || {
        let checks = EtcdConfig::from_url(url).unwrap().examine().unwrap();
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
    let address = format!("127.0.0.1:{}", server.port());
    let reached = about(&format!("etcd://127.0.0.1:1,{address}"), 1, "reach");
    let verdicts: Vec<_> = reached.iter().map(|check| (check.server.as_deref(), check.verdict)).collect();
    assert_eq!(verdicts, [(Some("127.0.0.1:1"), Verdict::Remark), (Some(&*address), Verdict::Ok)]);
    assert!(reached[1].message.contains("the leader"), "{reached:?}");
    says(&about("etcd://127.0.0.1:1", 0, "majority"), Verdict::Failed, "no request was carried out");
}

#[test]
fn servers_of_two_clusters_are_told_apart() {
    let (server, other) = (server(), EtcdServer::start());
    let _clients = [server.url(), other.url()].map(|url| Client::new(&url));
    says(&about(&server.url(), 1, "cluster"), Verdict::Ok, "of one cluster");
    let both = format!("{},127.0.0.1:{}", server.url(), other.port());
    says(&about(&both, 2, "cluster"), Verdict::Finding, "different clusters");
}

#[test]
fn who_may_use_the_keys_and_which_version_it_is_is_told() {
    let server = server();
    says(&about(&server.url(), 1, "access"), Verdict::Remark, "anybody who can connect");
    says(&about(&server.url(), 1, "version"), Verdict::Finding, "have different data");
    says(&about(&server.url(), 1, "majority"), Verdict::Ok, "a majority");
    says(&about(&server.url(), 1, "alarms"), Verdict::Ok, "none");
}

#[test]
fn a_base_that_is_no_number_is_told() {
    let server = server();
    let url = format!("{}/odd", server.url());
    assert!(about(&url, 1, "base").is_empty(), "the first client writes it");
    server.run(&["put", "odd/leasehold-base", "soon"]);
    says(&about(&url, 1, "base"), Verdict::Failed, "holds no number");
}

#[test]
fn a_server_that_hangs_is_no_majority() {
    let server = EtcdServer::start();
    server.stop();
    says(&about(&server.url(), 0, "majority"), Verdict::Failed, "no answer within");
    server.resume();
    says(&about(&server.url(), 1, "majority"), Verdict::Ok, "a majority");
}

/// The key that stands for a hold is that of the lease with this token, and of no other.
#[test]
fn the_key_of_a_hold_is_found_by_its_token() {
    let server = server();
    let url = format!("{}/found", server.url());
    let [one, two] = [(); 2].map(|()| Client::new(&url));
    let (first, next) = (claim("a"), waiting("a"));
    let held = one.take(&first);
    two.queue(&next, 1);
    let find = |token| blocking::held_key(&EtcdConfig::from_url(&url).unwrap(), &first.name, token).unwrap();
    let found = find(held.tokens.low()).unwrap();
    assert!(found.key.starts_with("found/a/") && found.create_revision > 0, "{found:?}");
    one.release(&first, Certainty::Answered);
    let later = two.wait_for_grant(&next);
    assert_eq!(find(held.tokens.low()), None);
    let after = find(later.tokens.low()).unwrap();
    assert!(after.create_revision > found.create_revision, "{after:?}");
}
