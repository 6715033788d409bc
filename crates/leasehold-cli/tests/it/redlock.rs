//! `leasehold` on a quorum of real servers: what `redlock` prints and does, and what `run` does meanwhile.

use std::time::{Duration, Instant};

use crate::support::leasehold::{Running, code, text};
use crate::support::nodes::{MAX_TTL, Nodes, RUN};
use crate::support::wait_for;
use test_support::{Fault, Finish, Proxy};

/// Holds a lock until the file `done` is there.
const HOLD: &str = "echo held > held; while [ ! -e done ]; do sleep 0.02; done";

#[test]
fn a_new_deployment_says_why_it_grants_nothing_until_it_is_declared_new() {
    let nodes = Nodes::blank(3);
    let url = nodes.url();
    assert_eq!(nodes.states(), ["empty"; 3]);
    let said = nodes.refused(&format!("-n {RUN} {url} a"), 69);
    for words in ["0 of 3 nodes vote", "at most", "leasehold redlock init URL"] {
        assert!(said.contains(words), "{words}: {said}");
    }
    for expected in ["the deployment is new", "nothing to do"] {
        let output = nodes.redlock("init", std::slice::from_ref(&url));
        assert_eq!(code(output.status), 0, "{}", text(&output.stderr));
        assert!(text(&output.stdout).contains(expected), "{}", text(&output.stdout));
    }
    assert!(nodes.token(&url) > 0);
}

#[test]
fn a_waiter_learns_what_it_waits_for_and_is_served_when_the_quorum_votes() {
    let nodes = Nodes::founded(3);
    nodes.all_forget_to_vote();
    let options = format!("-v -w 25s {RUN} {} a", nodes.url());
    let output = nodes.leasehold.run(&options, "exit 5");
    let said = text(&output.stderr);
    assert_eq!(code(output.status), 5, "{said}");
    assert!(said.contains("waiting for a, 0 of 3 nodes vote, 2 are needed; expected within"), "{said}");
    let impatient = Nodes::blank(3);
    let said = impatient.refused(&format!("-w 100ms {RUN} {} a", impatient.url()), 69);
    assert!(said.contains("0 of 3 nodes vote"), "{said}");
}

/// The text says how long it lasts at most, which is less each second.
#[test]
fn a_waiter_is_told_once_that_the_nodes_abstain() {
    let nodes = Nodes::blank(3);
    let said = nodes.refused(&format!("-w 8s {RUN} {} a", nodes.url()), 69);
    let told: Vec<_> = said.lines().filter(|line| line.contains("still waiting for a, but")).collect();
    assert!(matches!(told[..], [line] if line.contains("abstaining") && line.contains("at most")), "{said}");
}

#[test]
fn only_unused_nodes_can_be_declared_new() {
    let mut nodes = Nodes::founded(3);
    nodes.servers[0].restart_empty();
    nodes.servers[1].restart_empty();
    let output = nodes.redlock("init", &[nodes.url()]);
    assert_eq!(code(output.status), 78);
    assert!(text(&output.stderr).contains(&format!("{} already knows this deployment", nodes.address(2))));
    let mut nodes = Nodes::blank(3);
    nodes.servers[2].kill();
    let output = nodes.redlock("init", &[nodes.url()]);
    assert_eq!(code(output.status), 69);
    assert!(text(&output.stderr).contains(&nodes.address(2)), "{}", text(&output.stderr));
}

#[test]
fn two_runs_exclude_each_other_and_tokens_rise() {
    let nodes = Nodes::founded(3);
    let url = nodes.url();
    let first = nodes.token(&url);
    let holder = nodes.leasehold.start(&format!("--why nightly {RUN} {url} a"), HOLD, "held");
    assert!(nodes.refused(&format!("-n {RUN} {url} a"), 75).contains("nightly"));
    assert!(nodes.refused(&format!("-w 3s {RUN} {url} a"), 75).contains("nightly"));
    let waiter = Running::spawn(nodes.leasehold.script(&format!("{RUN} {url} a"), "echo $LEASEHOLD_FENCE"));
    std::fs::write(nodes.leasehold.scratch.file("done"), "").unwrap();
    assert_eq!(code(holder.end().status), 0);
    let output = waiter.end();
    assert_eq!(code(output.status), 0, "{}", text(&output.stderr));
    assert!(text(&output.stdout).trim().parse::<u64>().unwrap() > first + 1);
}

#[test]
fn a_run_that_ends_leaves_nothing_at_a_node_that_is_slower() {
    let nodes = Nodes::blank(3);
    let proxy = Proxy::start(nodes.servers[2].port());
    let url = nodes.url().replace(&nodes.address(2), &format!("127.0.0.1:{}", proxy.port()));
    assert_eq!(code(nodes.redlock("init", std::slice::from_ref(&url)).status), 0);
    proxy.set(Fault::Delay(Duration::from_millis(10)));
    for _ in 0..5 {
        nodes.token(&url);
    }
    assert!(proxy.fired() > 0);
    assert!(nodes.servers.iter().all(|server| server.command::<u8>(&["EXISTS", "a"]) == 0));
}

#[test]
fn the_status_tells_of_each_node() {
    let mut nodes = Nodes::founded(3);
    nodes.token(&nodes.url());
    let status = nodes.status();
    assert_eq!((&status["voting"], &status["majority"], &status["spare"]), (&3.into(), &2.into(), &1.into()));
    let () = nodes.servers[2].command(&["CONFIG", "SET", "maxmemory", "100mb", "maxmemory-policy", "allkeys-lru"]);
    nodes.servers[0].restart_empty();
    assert_eq!(nodes.states(), ["empty", "votes", "votes"]);
    nodes.token(&nodes.url());
    nodes.servers[1].kill();
    let status = nodes.status();
    assert_eq!((&status["can_grant"], &status["voting"]), (&false.into(), &1.into()));
    let [back, dead, voting] = [0, 1, 2].map(|node| &status["nodes"][node]);
    assert_eq!(
        (&back["state"], &dead["state"], &voting["state"]),
        (&"abstains".into(), &"away".into(), &"votes".into())
    );
    let wait = back["votes_in_ms"].as_u64().unwrap();
    assert!((1..=303_100).contains(&wait), "{status}");
    assert!(dead["error"].as_str().unwrap().contains(&nodes.address(1)), "{status}");
    assert_eq!((&voting["longest_ttl_ms"], &voting["evicts"]), (&3000.into(), &"allkeys-lru".into()));
    assert!(voting["clock"].as_u64() >= voting["counter"].as_u64());
    let warnings = status["warnings"].as_array().unwrap();
    for what in ["know no deployment (they are new, or lost their data)", "noeviction"] {
        assert!(warnings.iter().any(|warning| warning.as_str().unwrap().contains(what)), "{what}: {status}");
    }

    let output = nodes.redlock("status", &[nodes.url()]);
    assert_eq!(code(output.status), 69);
    let shown = text(&output.stdout);
    let lines: Vec<_> = shown.lines().collect();
    assert!(lines[0].trim_start().starts_with("NODE") && lines[1].contains("abstains, "), "{shown}");
    assert!(lines[2].contains("away") && lines[3].contains("evicts: allkeys-lru"), "{shown}");
    let column = |line: &str, word: &str| line.find(word).unwrap();
    assert_eq!(column(lines[0], "STATE"), column(lines[3], "votes"));
    assert!(shown.contains("no lock can be granted now: 1 of 3 nodes votes, 2 are needed"), "{shown}");
    assert!(!shown.contains('\x1b'), "colour is for terminals");
    assert!(text(&output.stderr).contains("maxmemory-policy is allkeys-lru"));
}

#[test]
fn runs_that_last_for_a_moment_bring_a_node_back_between_them() {
    let mut nodes = Nodes::founded(3);
    let url = nodes.url();
    let mut last = nodes.token(&url);
    nodes.servers[0].restart_empty();
    let restarted = Instant::now();
    wait_for("the node to vote again", || {
        let token = nodes.token(&url);
        assert!(token > last, "{token} after {last}");
        last = token;
        (nodes.states()[0] == "votes").then_some(())
    });
    assert!(restarted.elapsed() >= Duration::from_secs(3), "leases that it forgot may have lasted so long");
    // Now it makes the majority with any other.
    nodes.servers[1].kill();
    assert!(nodes.token(&url) > last);
}

#[test]
fn a_node_that_hangs_is_in_nobodys_way() {
    let nodes = Nodes::founded(3);
    let url = nodes.url();
    let first = nodes.token(&url);
    let running = nodes.leasehold.start(&format!("{RUN} {url} b"), "echo held > held; sleep 5", "held");
    nodes.servers[1].stop();
    let second = nodes.token(&url);
    assert_eq!(code(running.end().status), 0, "it outlived its ttl by renewals");
    nodes.servers[1].resume();
    assert!(second > first && nodes.token(&url) > second);
}

#[test]
fn a_majority_that_hangs_ends_the_command_in_time() {
    let nodes = Nodes::founded(3);
    let running = nodes.leasehold.start(&format!("{RUN} {} a", nodes.url()), HOLD, "held");
    nodes.servers[0].stop();
    nodes.servers[1].stop();
    let output = running.end();
    assert_eq!(code(output.status), 76, "{}", text(&output.stderr));
    assert!(nodes.refused(&format!("-n {RUN} {} a", nodes.url()), 69).contains("no answer from"));
}

#[test]
fn nodes_that_are_no_deployment_are_refused() {
    let nodes = Nodes::founded(4);
    let said = nodes.refused(&format!("-n {RUN} {} a", nodes.url_of(0..3)), 78);
    assert!(said.contains("belongs to a deployment of other nodes"), "{said}");
    let longer = nodes.url().replace(MAX_TTL, "5s");
    assert!(nodes.refused(&format!("-n {RUN} {longer} a"), 78).contains("set ?max_ttl=4s"));
    let blank = Nodes::blank(2);
    let twice = format!("{},localhost:{}", blank.url().split('?').next().unwrap(), blank.servers[0].port());
    assert!(nodes.refused(&format!("-n {RUN} {twice} a"), 69).contains("are the same server"));
    let mixed = format!("{},db3", blank.url().split('?').next().unwrap());
    assert!(nodes.refused(&format!("-n {RUN} {mixed} a"), 78).contains("means a different server on each host"));
    let even = nodes.leasehold.run(&format!("-n {RUN} {} a", nodes.url()), "true");
    assert_eq!(code(even.status), 0);
    assert_eq!(text(&even.stderr).matches("use an odd number").count(), 1, "{}", text(&even.stderr));
    for (url, words) in [
        ("redlock://:sesame@a,b", "2 node(s)"),
        ("redlock://?node=redis://:sesame@a/x&node=redis://b&node=redis://c", "not a number"),
        ("redlock://?node=sqlite:/x&node=redis://b&node=redis://c", "names no host"),
        ("redlok://:sesame@a,b,c", "did you mean redlock:"),
    ] {
        let said = nodes.refused(&format!("--url {url} a"), 78);
        assert!(said.contains(words) && !said.contains("sesame"), "{url}: {said}");
    }
    assert!(
        nodes.refused(&format!("-n --ttl 10s --url {} a", nodes.url()), 78).contains("longer than this deployment")
    );
}

#[test]
fn a_replica_does_not_count_and_stops_nobody_while_a_majority_is_left() {
    let nodes = Nodes::founded(3);
    let first = nodes.token(&nodes.url());
    let primary = nodes.servers[0].port().to_string();
    let become_replica = |node: usize| nodes.servers[node].command::<()>(&["REPLICAOF", "127.0.0.1", &primary]);
    become_replica(2);
    let output = nodes.leasehold.run(&format!("-n {RUN} {} a", nodes.url()), "echo $LEASEHOLD_FENCE");
    assert_eq!(code(output.status), 0, "{}", text(&output.stderr));
    assert!(text(&output.stderr).contains("is a replica; list a primary"), "{}", text(&output.stderr));
    assert!(text(&output.stdout).trim().parse::<u64>().unwrap() > first);
    assert_eq!(nodes.states(), ["votes", "votes", "refused"]);
    assert_eq!(code(nodes.redlock("status", &[nodes.url()]).status), 78);
    become_replica(1);
    let said = nodes.refused(&format!("-n {RUN} {} a", nodes.url()), 78);
    assert!(said.contains("is a replica; list a primary"), "{said}");
}

#[test]
fn locks_are_shown_with_the_votes_of_the_nodes() {
    let mut nodes = Nodes::founded(3);
    let url = format!("--url {}", nodes.url());
    let holder = nodes.leasehold.start(&format!("--why nightly {RUN} {} a", nodes.url()), HOLD, "held");
    // What a minority has is left over: of a lease that this node did not hear the end of.
    let left = "lh1:abababababababababababababababab:7:7:1@gone left";
    let () = nodes.servers[0].command(&["SET", "left", left, "PX", "60000"]);
    let names = |listed: &serde_json::Value| {
        let rows = listed.as_array().unwrap().iter();
        rows.map(|row| row["name"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    let all = nodes.leasehold.json(&format!("ls {url}"));
    assert_eq!(names(&all), ["a"], "{all}");
    assert!(!all.to_string().contains("lh1:"), "{all}");
    assert_eq!(nodes.leasehold.json(&format!("show {url} left"))["held"], false);
    let shown = nodes.leasehold.json(&format!("show {url} a"));
    let addresses: Vec<_> = (0..3).map(|node| nodes.address(node)).collect();
    assert_eq!((&shown["why"], &shown["votes"]["held"]), (&"nightly".into(), &serde_json::json!(addresses)), "{shown}");

    nodes.servers[2].kill();
    let output = nodes.leasehold.command(&format!("show {url} a")).finish();
    let said = text(&output.stdout);
    let votes = format!("votes    2 of 3: {}, {} ({}: unreachable)", addresses[0], addresses[1], addresses[2]);
    assert!(said.contains("nightly") && said.contains(&votes), "{said}");
    assert_eq!(names(&nodes.leasehold.json(&format!("ls {url}"))), ["a", "left"], "the silent node may have it");
    let output = nodes.leasehold.command(&format!("show {url} left")).finish();
    let votes =
        format!("possibly held, 1 of 3: {} ({}: not held, {}: unreachable)", addresses[0], addresses[1], addresses[2]);
    assert!(text(&output.stdout).contains(&votes), "{}", text(&output.stdout));
    nodes.servers[1].kill();
    for line in ["ls", "show a"] {
        let output = nodes.leasehold.command(&format!("{line} {url}")).finish();
        let said = text(&output.stderr);
        assert_eq!(code(output.status), 69, "{said}");
        assert!(said.contains(&addresses[1]) && said.contains(&addresses[2]), "{line}: {said}");
    }
    drop(holder);
}

/// The first try reached one node. No node that answers shows the lease any more, and one that does not answer may have it.
#[test]
fn a_break_that_reached_a_minority_is_finished_although_no_node_shows_the_lease() {
    let mut nodes = Nodes::founded(3);
    let url = format!("--url {}", nodes.url());
    let owner = "abababababababababababababababab";
    let digest: String = nodes.servers[0].command(&["EVAL", "return redis.sha1hex(ARGV[1])", "0", owner]);
    let () = nodes.servers[0].command(&["SADD", "leasehold:{a}:o:7", &digest[..32]]);
    nodes.servers[2].kill();
    assert_eq!(nodes.leasehold.json(&format!("show {url} a"))["held"], false);
    let output = nodes.leasehold.command(&format!("break {url} --yes --token 7 a")).finish();
    let said = text(&output.stderr);
    assert_eq!(code(output.status), 1, "{said}");
    assert!(said.contains("not held"), "for sure: {said}");
    let barred = format!("leasehold:{{a}}:r:{}", &digest[..32]);
    for server in &nodes.servers[..2] {
        assert_eq!(server.command::<u8>(&["EXISTS", &barred]), 1, "a late claim is refused");
    }
}

#[test]
fn a_look_leaves_nodes_as_they_are() {
    let mut nodes = Nodes::founded(3);
    nodes.servers[0].restart_empty();
    for line in ["ls", "show a"] {
        let output = nodes.leasehold.command(line).args(["--url", &nodes.url()]).finish();
        assert_eq!(code(output.status), 0, "{}", text(&output.stderr));
    }
    assert_eq!(nodes.servers[0].command::<u8>(&["EXISTS", "leasehold:node"]), 0, "{:?}", nodes.states());
}

#[test]
fn a_node_that_is_used_alone_is_warned_of_and_looking_at_it_is_not() {
    let nodes = Nodes::founded(3);
    let alone = format!("redis://{}", nodes.address(0));
    let output = nodes.leasehold.run(&format!("--url {alone} a"), "true");
    assert_eq!(code(output.status), 0);
    assert!(text(&output.stderr).contains("is a node of a quorum"), "{}", text(&output.stderr));
    let looked = nodes.leasehold.command(&format!("ls --url {alone}")).finish();
    assert_eq!((code(looked.status), text(&looked.stderr).as_str()), (0, ""));
    let output = nodes.leasehold.run(&format!("{RUN} {} a", nodes.url()), "true");
    assert!(!text(&output.stderr).contains("is a node of a quorum"), "{}", text(&output.stderr));
}
