//! `leasehold` on one Redis that may have forgotten leases, and on a cluster.

use crate::support::leasehold::{Leasehold, code, text};
use test_support::sentinels::PASSWORDS;
use test_support::{Cluster, Finish, RedisServer};

#[test]
fn a_new_server_says_why_it_grants_nothing_until_it_is_declared_new() {
    let (server, leasehold) = (RedisServer::start(), Leasehold::new());
    let url = format!("{}?failover=dwell&max_ttl=20s&prefix=shop", server.url());
    let refused = leasehold.run(&format!("-n --url {url} job"), "true");
    let said = text(&refused.stderr);
    assert_eq!(code(refused.status), 69, "{said}");
    for words in ["may have forgotten locks", "at most", "`leasehold redis init`"] {
        assert!(said.contains(words), "{words}: {said}");
    }
    for expected in ["declared new: clients with failover=dwell are granted free locks at once", "nothing to do"] {
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
    assert!(
        said.contains("cannot declare the server new: the lock")
            && said.contains("shop:job")
            && said.contains("nothing was changed"),
        "{said}"
    );
    server.command::<()>(&["DEL", "shop:job"]);
    let output = leasehold.command(&format!("redis init --json {url}")).finish();
    let report: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(report["max_ttl_ms"], 60_000);
    assert!(report["dwell_ms"].as_u64().unwrap() > 60_000, "{report}");
    server.command::<()>(&["FLUSHDB"]);
    leasehold.run(&format!("-n --url {url} job"), "true");
    let output = leasehold.command(&format!("redis init {url}&max_ttl=20s")).finish();
    let said = text(&output.stdout);
    assert!(said.contains("the longest ttl is 1m, which another client has set, although this URL says 20s"), "{said}");
}

#[test]
fn what_is_no_redis_is_not_initialised() {
    let leasehold = Leasehold::new();
    let refused = leasehold.command("redis init sqlite:/tmp/x.db").finish();
    let said = text(&refused.stderr);
    assert_eq!(code(refused.status), 78, "{said}");
    assert!(said.contains("this store is not Redis, and needs no init"), "{said}");
    for command in ["redis init", "redlock init", "redlock status"] {
        let refused = leasehold.command(&format!("{command} --url redis://h")).finish();
        let said = text(&refused.stderr);
        assert!(code(refused.status) == 64 && said.contains("tip: the URL stands alone, without --url"), "{said}");
    }
    let tips = [
        ("--url redis://h ls", "tip: --url comes after the command"),
        ("man --url redis://h", "Usage"),
        ("unlock report", "tip: `run` releases its lock itself"),
        ("status", "tip: `leasehold ls` lists locks"),
    ];
    for (line, tip) in tips {
        let said = text(&leasehold.command(line).finish().stderr);
        assert!(said.contains(tip) && !said.contains("stands alone"), "{said}");
    }
}

#[test]
fn commands_hold_locks_at_all_primaries_of_a_cluster() {
    let (cluster, leasehold) = (Cluster::start(), Leasehold::new());
    let url = cluster.url();
    let names = [0, 1, 2].map(|server| cluster.name_at(server, "job"));
    let held: Vec<_> = names
        .iter()
        .map(|name| leasehold.start(&format!("--url {url} {name}"), "echo > $LEASEHOLD_NAME; sleep 60", name))
        .collect();
    for name in &names {
        let busy = leasehold.run(&format!("-n --url {url} {name}"), "true");
        assert_eq!(code(busy.status), 75, "{}", text(&busy.stderr));
    }
    let listed = leasehold.json(&format!("ls --url {url}"));
    let mut listed: Vec<_> = listed.as_array().unwrap().iter().map(|lock| lock["name"].as_str().unwrap()).collect();
    listed.sort_unstable();
    let mut expected = names.each_ref().map(String::as_str);
    expected.sort_unstable();
    assert_eq!(listed, expected);
    drop(held);
    wrong_urls_are_refused(&leasehold, &cluster);
}

fn wrong_urls_are_refused(leasehold: &Leasehold, cluster: &Cluster) {
    let (standalone, url) = (RedisServer::start(), cluster.url());
    let port = standalone.port();
    for (url, expected, words) in [
        (format!("redis+cluster://127.0.0.1:{port}"), 78, "redis://"),
        (cluster.servers[0].url(), 78, "redis+cluster://"),
        (url.replace(PASSWORDS.0, "wrong"), 77, "refused user and password"),
        (url.replace('?', "/1?"), 78, "database"),
        ("redis+cluster://127.0.0.1:1".to_owned(), 69, "127.0.0.1:1 refused"),
        (url.replace("?failover=grant", ""), 69, "may have forgotten locks"),
    ] {
        let refused = leasehold.run(&format!("-n --url {url} a"), "true");
        let said = text(&refused.stderr);
        assert_eq!(code(refused.status), expected, "{url}: {said}");
        assert!(said.contains(words) && !said.contains(PASSWORDS.0), "{url}: {said}");
    }
}
