//! `leasehold redlock move`: another list of nodes, and no lock that both lists grant.

use crate::support::leasehold::{code, text};
use crate::support::nodes::{MAX_TTL, Nodes, RUN};
use crate::support::wait_for;
use test_support::RedisServer;

#[test]
fn three_nodes_become_five() {
    let mut nodes = Nodes::founded(3);
    let old = nodes.url();
    let before = nodes.token(&old);
    nodes.servers.extend((0..2).map(|_| RedisServer::start()));
    let new = nodes.url();
    for round in 0..2 {
        let output = nodes.redlock("move", &[old.clone(), new.clone()]);
        assert_eq!(code(output.status), 0, "{}", text(&output.stderr));
        let said = text(&output.stdout);
        assert!(said.contains("5 nodes and grants its first lock in") && said.contains("s at most"), "{round}: {said}");
    }
    assert!(nodes.refused(&format!("-n {RUN} {old} a"), 78).contains("belongs to a deployment of other nodes"));
    assert!(nodes.refused(&format!("-n {RUN} {new} a"), 69).contains("0 of 5 nodes vote"));
    let output = nodes.leasehold.run(&format!("-w 25s {RUN} {new} a"), "echo $LEASEHOLD_FENCE");
    assert_eq!(code(output.status), 0, "{}", text(&output.stderr));
    let after: u64 = text(&output.stdout).trim().parse().unwrap();
    assert!(after > before, "{after} after {before}");
    assert_eq!(nodes.states(), ["votes"; 5]);
    // Moving once more moves nothing and stops nobody.
    let output = nodes.redlock("move", &[old.clone(), new.clone()]);
    assert!(text(&output.stdout).contains("already moved"), "{}", text(&output.stdout));
    assert!(nodes.token(&new) > after);
    nodes.refused(&format!("-n {RUN} {old} a"), 78);
}

#[test]
fn a_move_that_would_lead_astray_is_refused_and_changes_nothing() {
    let mut nodes = Nodes::founded(3);
    let old = nodes.url();
    nodes.servers.extend((0..2).map(|_| RedisServer::start()));
    let new = nodes.url();
    let shorter = new.replace(MAX_TTL, "3s");
    let others = Nodes::founded(3);
    let foreign = format!("{},{}?max_ttl={MAX_TTL}", old.split('?').next().unwrap(), others.address(0));
    nodes.servers[4].kill();
    for (to, expected, words) in [
        (&old, 64, "the same deployment"),
        (&new, 69, nodes.address(4).as_str()),
        (&foreign, 78, "belongs to another deployment"),
    ] {
        let output = nodes.redlock("move", &[old.clone(), to.clone()]);
        let said = text(&output.stderr);
        assert!(code(output.status) == expected && said.contains(words), "{to}: {said}");
    }
    nodes.servers[4].restart_empty();
    let output = nodes.redlock("move", &[old.clone(), shorter]);
    assert_eq!(code(output.status), 78);
    assert!(text(&output.stderr).contains("max_ttl is shorter"), "{}", text(&output.stderr));
    nodes.token(&old);
    nodes.servers[0].kill();
    nodes.servers[1].kill();
    let output = nodes.redlock("move", &[old, new]);
    assert!(text(&output.stderr).contains("too few"), "{}", text(&output.stderr));
}

/// When the last leases have ended, the moving process is the first to find the new nodes voting.
#[test]
fn the_first_run_after_a_move_does_not_warn_of_clocks_while_the_kept_nodes_remember() {
    let mut nodes = Nodes::founded(3);
    let old = nodes.url();
    nodes.token(&old);
    nodes.servers.extend((0..2).map(|_| RedisServer::start()));
    let new = nodes.url();
    assert_eq!(code(nodes.redlock("move", &[old, new.clone()]).status), 0);
    wait_for("the new nodes to vote", || {
        let output = nodes.leasehold.run(&format!("-n {RUN} {new} a"), "true");
        assert!(!text(&output.stderr).contains("clock"), "{}", text(&output.stderr));
        output.status.success().then_some(())
    });
}

#[test]
fn a_move_that_lasts_does_not_warn_of_clocks_while_the_kept_nodes_remember() {
    let mut nodes = Nodes::founded(3);
    let old = nodes.url();
    nodes.token(&old);
    nodes.servers.extend((0..2).map(|_| RedisServer::start()));
    let new = nodes.url();
    wait_for("the new nodes to vote", || {
        let output = nodes.redlock("move", &[old.clone(), new.clone()]);
        let said = text(&output.stderr);
        assert!(code(output.status) == 0 && !said.contains("clock"), "{said}");
        text(&output.stdout).contains("already moved").then_some(())
    });
}

/// Two of three nodes of a deployment are moved to a list of five; the third one hangs meanwhile.
fn moved_without_the_third() -> (Nodes, String, String) {
    let mut nodes = Nodes::founded(3);
    let old = nodes.url();
    nodes.servers.extend((0..2).map(|_| RedisServer::start()));
    let new = nodes.url();
    nodes.servers[2].stop();
    let output = nodes.redlock("move", &[old.clone(), new.clone()]);
    assert_eq!(code(output.status), 0, "{}", text(&output.stderr));
    assert!(text(&output.stderr).contains(&format!("{} was not moved; the next client", nodes.address(2))));
    (nodes, old, new)
}

#[test]
fn an_old_node_that_was_away_during_the_move_is_moved_by_the_next_client() {
    let (nodes, old, new) = moved_without_the_third();
    let output = nodes.leasehold.run(&format!("-w 25s {RUN} {new} a"), "true");
    assert_eq!(code(output.status), 0, "{}", text(&output.stderr));
    nodes.servers[2].resume();
    wait_for("the node to answer", || (nodes.states()[2] == "refused").then_some(()));
    wait_for("all to vote", || {
        nodes.token(&new);
        nodes.states().iter().all(|state| state == "votes").then_some(())
    });
    nodes.refused(&format!("-n {RUN} {old} a"), 78);
}

/// A possible majority of the old list: the node that was left behind, and one that forgot that it was moved.
#[test]
fn a_node_that_was_moved_and_forgot_is_not_taken_back() {
    let (mut nodes, old, new) = moved_without_the_third();
    nodes.leasehold.run(&format!("-w 25s {RUN} {new} a"), "true");
    nodes.servers[2].resume();
    nodes.servers[0].restart_empty();
    wait_for("the restarted node to answer", || (nodes.states()[0] == "empty").then_some(()));
    let said = nodes.refused(&format!("-n {RUN} {old} a"), 78);
    assert!(said.contains("belongs to a deployment of other nodes"), "{said}");
    nodes.refused(&format!("-w 6s {RUN} {old} a"), 78);
    let keys: Vec<String> = nodes.servers[0].command(&["KEYS", "*"]);
    let marked: Option<String> = nodes.servers[0].command(&["HGET", "leasehold:node", "marked_members"]);
    assert!(keys.is_empty() && marked.is_none(), "somebody marked it: {keys:?} {marked:?}");
    nodes.token(&new);
}

/// Two moves from the same three nodes were in progress at the same time: these nodes followed the first, the others the second one.
/// Returns the three lists.
fn moved_at_once(firsts: &[usize]) -> (Nodes, [String; 3]) {
    let mut nodes = Nodes::founded(3);
    nodes.servers.extend((0..4).map(|_| RedisServer::start()));
    let lists = [&[0, 1, 2][..], &[0, 1, 2, 3, 4], &[0, 1, 2, 5, 6]];
    let urls = lists.map(|list| nodes.url_of(list.iter().copied()));
    let [from, one, other] = lists.map(|list| {
        let mut members: Vec<_> = list.iter().map(|node| nodes.address(*node)).collect();
        members.sort_unstable();
        members.join(" ")
    });
    for node in 0..3 {
        let to = if firsts.contains(&node) { &one } else { &other };
        let command = ["HSET", "leasehold:node", "members", to, "predecessor", &from, "predecessor_max_ttl", "4000"];
        let server = &nodes.servers[node];
        server.command::<()>(&command);
        let seal: String = server.command(&["HGET", "leasehold:node", "seal"]);
        let seconds: u64 = server.command::<Vec<u64>>(&["TIME"])[0];
        server.command::<()>(&["HSET", "leasehold:node", "pending", &seal, "since", &format!("{seconds}000000")]);
        server.command::<()>(&["HDEL", "leasehold:node", "seal"]);
    }
    (nodes, urls)
}

#[test]
fn of_two_moves_at_once_the_one_with_a_majority_of_the_old_nodes_ends_when_it_is_repeated() {
    let (nodes, [old, one, other]) = moved_at_once(&[0, 2]);
    let output = nodes.redlock("move", &[old.clone(), other.clone()]);
    let said = text(&output.stderr);
    assert_eq!(code(output.status), 78, "{said}");
    for words in ["another move", "leasehold redlock move URL_OF_THAT_DEPLOYMENT", &nodes.address(4), "max_ttl=4s"] {
        assert!(said.contains(words), "no {words}: {said}");
    }
    let output = nodes.redlock("move", &[old.clone(), one.clone()]);
    assert_eq!(code(output.status), 0, "{}", text(&output.stderr));
    let output = nodes.leasehold.run(&format!("-w 25s {RUN} {one} a"), "true");
    assert_eq!(code(output.status), 0, "{}", text(&output.stderr));
    nodes.refused(&format!("-n {RUN} {old} a"), 78);
    // The advice to the other one works as well.
    let output = nodes.redlock("move", &[one.clone(), other.clone()]);
    assert_eq!(code(output.status), 0, "{}", text(&output.stderr));
    let output = nodes.leasehold.run(&format!("-w 25s {RUN} {other} a"), "true");
    assert_eq!(code(output.status), 0, "{}", text(&output.stderr));
    nodes.refused(&format!("-n {RUN} {one} a"), 78);
}

#[test]
fn a_move_that_can_still_get_a_majority_of_the_old_nodes_says_that_it_is_to_be_repeated() {
    let (nodes, [old, one, _]) = moved_at_once(&[0]);
    let command = ["HSET", "leasehold:node", "members", &{
        let mut members: Vec<_> = (0..3).map(|node| nodes.address(node)).collect();
        members.sort_unstable();
        members.join(" ")
    }];
    // The last one has heard of no move, and hangs.
    nodes.servers[2].command::<()>(&command);
    nodes.servers[2].stop();
    let output = nodes.redlock("move", &[old.clone(), one.clone()]);
    assert_eq!(code(output.status), 69, "{}", text(&output.stderr));
    assert!(text(&output.stderr).contains("run this command again"), "{}", text(&output.stderr));
    nodes.servers[2].resume();
    let output = nodes.redlock("move", &[old, one.clone()]);
    assert_eq!(code(output.status), 0, "{}", text(&output.stderr));
    let output = nodes.leasehold.run(&format!("-w 25s {RUN} {one} a"), "true");
    assert_eq!(code(output.status), 0, "{}", text(&output.stderr));
}

/// A kept node hangs: the move leaves the old list without a majority, and the new one without enough of its nodes.
#[test]
fn a_move_that_reaches_too_few_kept_nodes_says_that_nothing_grants_and_ends_when_it_is_repeated() {
    let mut nodes = Nodes::founded(3);
    let old = nodes.url();
    nodes.servers.push(RedisServer::start());
    let new = nodes.url_of([0, 1, 3]);
    nodes.servers[1].stop();
    let output = nodes.redlock("move", &[old.clone(), new.clone()]);
    let said = text(&output.stderr);
    assert_eq!(code(output.status), 69, "{said}");
    let warning = format!("{} was not moved; run this command again when it is reachable", nodes.address(1));
    for words in [&warning, "no deployment can grant locks until more", "redis-cli DEL leasehold:node"] {
        assert!(said.contains(words), "no {words}: {said}");
    }
    let status = text(&nodes.redlock("status", std::slice::from_ref(&new)).stderr);
    assert!(status.contains("the move was interrupted or nodes have lost their data since"), "{status}");
    nodes.servers[1].resume();
    let output = nodes.redlock("move", &[old, new.clone()]);
    assert_eq!(code(output.status), 0, "{}", text(&output.stderr));
    let output = nodes.leasehold.run(&format!("-w 25s {RUN} {new} a"), "true");
    assert_eq!(code(output.status), 0, "{}", text(&output.stderr));
}

/// A dead node is replaced, and a kept one restarts empty before the new list votes.
#[test]
fn a_move_that_succeeded_survives_the_loss_of_a_kept_node() {
    let mut nodes = Nodes::founded(3);
    let old = nodes.url();
    nodes.servers.push(RedisServer::start());
    let new = nodes.url_of([0, 1, 3]);
    nodes.servers[2].kill();
    assert_eq!(code(nodes.redlock("move", &[old.clone(), new.clone()]).status), 0);
    nodes.servers[1].restart_empty();
    let output = nodes.redlock("move", &[old, new.clone()]);
    assert_eq!(code(output.status), 0, "{}", text(&output.stderr));
    let output = nodes.leasehold.run(&format!("-w 25s {RUN} {new} a"), "true");
    assert_eq!(code(output.status), 0, "{}", text(&output.stderr));
}

/// Two moves crossed, and the node that would decide has lost its data.
#[test]
fn where_no_list_can_win_the_last_resort_is_named_and_helps() {
    let (mut nodes, [old, one, other]) = moved_at_once(&[0]);
    nodes.servers[2].restart_empty();
    for to in [&one, &other] {
        let output = nodes.redlock("move", &[old.clone(), to.clone()]);
        let said = text(&output.stderr);
        assert_eq!(code(output.status), 78, "{said}");
        for words in ["no list can get enough", "at least 5 minutes", "redis-cli DEL leasehold:node"] {
            assert!(said.contains(words), "no {words}: {said}");
        }
        assert_eq!(code(nodes.redlock("init", std::slice::from_ref(to)).status), 78, "a node knows a deployment");
        nodes.refused(&format!("-n {RUN} {to} a"), 78);
    }
    // Nobody has a lock, so there is nothing to wait for.
    nodes.servers.iter().for_each(|server| server.command::<()>(&["DEL", "leasehold:node"]));
    let output = nodes.redlock("init", std::slice::from_ref(&one));
    assert_eq!(code(output.status), 0, "{}", text(&output.stderr));
    nodes.token(&one);
}

#[test]
fn a_node_that_missed_two_moves_is_fetched_by_a_move_from_its_list() {
    let (mut nodes, first, second) = moved_without_the_third();
    let run = |nodes: &Nodes, url: &str| {
        let output = nodes.leasehold.run(&format!("-w 25s {RUN} {url} a"), "true");
        assert_eq!(code(output.status), 0, "{}", text(&output.stderr));
    };
    run(&nodes, &second);
    nodes.servers.push(RedisServer::start());
    let third = nodes.url();
    let output = nodes.redlock("move", &[second, third.clone()]);
    let said = text(&output.stderr);
    assert_eq!(code(output.status), 0, "{said}");
    assert!(
        said.contains("if it missed an earlier move as well, run `leasehold redlock move ITS_URL NEW_URL`"),
        "{said}"
    );
    run(&nodes, &third);
    nodes.servers[2].resume();
    wait_for("the node to answer", || (nodes.states()[2] == "refused").then_some(()));
    nodes.token(&third);
    assert_eq!(nodes.states()[2], "refused", "nobody knows where it belongs");
    let output = nodes.redlock("move", &[first.clone(), third.clone()]);
    assert_eq!(code(output.status), 0, "{}", text(&output.stderr));
    wait_for("all to vote", || {
        nodes.token(&third);
        nodes.states().iter().all(|state| state == "votes").then_some(())
    });
    nodes.refused(&format!("-n {RUN} {first} a"), 78);
}
