//! `leasehold` on one Redis that may have forgotten leases.

#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, reason = "a test stops where it cannot go on")]

mod support;

use support::leasehold::{Leasehold, code, text};
use test_support::{Finish, RedisServer};

#[test]
fn a_new_server_says_why_it_grants_nothing_until_it_is_declared_new() {
    let (server, leasehold) = (RedisServer::start(), Leasehold::new());
    let url = format!("{}?failover=dwell&max_ttl=20s&prefix=shop", server.url());
    let refused = leasehold.run(&format!("-n --url {url} job"), "true");
    let said = text(&refused.stderr);
    assert_eq!(code(refused.status), 69, "{said}");
    for words in ["may have forgotten locks", "at most", "leasehold redis init URL"] {
        assert!(said.contains(words), "{words}: {said}");
    }
    for expected in ["the server is new: free locks are granted at once", "nothing to do"] {
        let output = leasehold.command(&format!("redis init {url}")).finish();
        assert_eq!(code(output.status), 0, "{}", text(&output.stderr));
        assert!(text(&output.stdout).contains(expected), "{}", text(&output.stdout));
    }
    let granted = leasehold.run(&format!("-n --url {url} job"), "true");
    assert_eq!(code(granted.status), 0, "{}", text(&granted.stderr));
}

#[test]
fn a_server_with_a_lock_is_not_new() {
    let (server, leasehold) = (RedisServer::start(), Leasehold::new());
    let url = format!("{}?failover=dwell", server.url());
    let value = format!("lh1:{}:7:7:1@here", "0a".repeat(16));
    server.command::<()>(&["SET", "shop:job", &value, "PX", "60000"]);
    let refused = leasehold.command(&format!("redis init --json {url}")).finish();
    let said = text(&refused.stderr);
    assert_eq!(code(refused.status), 78, "{said}");
    assert!(said.contains("shop:job") && said.contains("nothing was changed"), "{said}");
    server.command::<()>(&["DEL", "shop:job"]);
    let output = leasehold.command(&format!("redis init --json {url}")).finish();
    let report: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(report["max_ttl_ms"], 60_000);
    assert!(report["dwell_ms"].as_u64().unwrap() > 60_000, "{report}");
}

#[test]
fn what_is_no_redis_is_not_initialised() {
    let leasehold = Leasehold::new();
    let refused = leasehold.command("redis init sqlite:/tmp/x.db").finish();
    assert_eq!(code(refused.status), 78, "{}", text(&refused.stderr));
}
