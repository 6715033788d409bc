//! A minority of unsuitable nodes does not count: it is reported, and blocks nobody.

use std::sync::Arc;
use std::time::Duration;

use lock_core::{Answer, BlockingBackend, ErrorKind, Renewed};
use lock_memory::faults::Fault;
use lock_memory::node::MemoryNode;
use lock_redlock::quorum::Purpose;

use crate::support::{MAX_TTL, Rig, WITHIN, acquire, claim, granted, votes, watch};

/// The rig with another server behind the address of one node.
fn with_server(rig: &Rig, node: usize, server: &MemoryNode) -> Rig {
    let mut nodes = rig.nodes.clone();
    nodes[node] = server.listed_as(format!("node-{node}"));
    Rig { nodes, faults: rig.faults.clone(), clock: rig.clock.clone() }
}

/// As a replica, or a node of a cluster.
#[test]
fn an_unsuitable_node_stops_nobody_while_a_majority_is_left() {
    let rig = Rig::founded(3);
    let running = rig.connected();
    let lease = granted(acquire(&running, &claim(1)));
    running.flush(WITHIN);
    rig.faults[0].fail_everything(Fault::Refused(ErrorKind::Config));
    let client = rig.client();
    let report = watch(&client);
    report.check_reached().unwrap();
    assert_eq!(votes(&report), [false, true, true]);
    assert!(report.warnings()[0].contains("node-0 does not count"), "{:?}", report.warnings());
    assert!(matches!(acquire(&client, &claim(2)).unwrap(), Answer::Busy { .. }));
    assert!(matches!(running.renew(&[lease], WITHIN).unwrap()[..], [Renewed::Renewed { .. }]));
    rig.faults[1].fail_everything(Fault::Refused(ErrorKind::Unreachable));
    let error = watch(&rig.client()).check_reached().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unreachable, "it may come back: {error}");
    rig.faults[1].fail_everything(Fault::Refused(ErrorKind::Config));
    let error = rig.client().pass(Purpose::Watch, WITHIN).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Config);
}

/// The address of a dead node now leads to another node.
#[test]
fn one_server_under_two_addresses_counts_once() {
    for order in [[0, 1, 2], [2, 1, 0]] {
        let rig = Rig::founded(3);
        let running = rig.connected();
        let lease = granted(acquire(&running, &claim(1)));
        running.flush(WITHIN);
        let twice = with_server(&rig, 2, &rig.nodes[0]);
        let client = twice.client_of(&order);
        let report = watch(&client);
        assert_eq!(report.nodes.iter().filter(|node| node.view.is_ok()).count(), 2, "{order:?}");
        let told = report.warnings().join(" ");
        assert!(told.contains("node-0") && told.contains("node-2") && told.contains("are the same server"), "{told}");
        assert!(matches!(acquire(&client, &claim(2)).unwrap(), Answer::Busy { .. }));
        assert!(matches!(client.renew(&[lease], WITHIN).unwrap()[..], [Renewed::Renewed { .. }]), "{order:?}");
    }
}

/// Its own address is the one under which the others know it.
#[test]
fn of_two_addresses_the_one_counts_that_was_recorded() {
    let rig = Rig::founded(3);
    rig.nodes[2].forget();
    watch(&rig.client());
    rig.clock.advance(MAX_TTL * 6);
    assert_eq!(votes(&watch(&rig.client())), [true; 3]);
    let twice = with_server(&rig, 2, &rig.nodes[0]);
    for (order, counted) in [([0, 1, 2], [true, true, false]), ([2, 1, 0], [false, true, true])] {
        assert_eq!(votes(&watch(&twice.client_of(&order))), counted, "{order:?}");
    }
}

/// The server of the second address comes back, and nobody has taken its place meanwhile.
#[test]
fn a_server_that_was_reached_under_a_second_address_is_not_recorded_there() {
    let rig = Rig::founded(3);
    rig.clock.advance(MAX_TTL);
    let twice = with_server(&rig, 2, &rig.nodes[0]);
    rig.nodes[0].restart();
    watch(&twice.client());
    rig.clock.advance(MAX_TTL * 2);
    assert_eq!(votes(&watch(&twice.client())), [true, true, false]);
    assert_eq!(votes(&watch(&rig.client())), [true; 3]);
}

#[test]
fn two_addresses_of_one_server_are_refused_where_no_majority_is_left() {
    let rig = Rig::founded(3);
    let twice = with_server(&with_server(&rig, 2, &rig.nodes[0]), 1, &rig.nodes[0]);
    let error = twice.client().pass(Purpose::Watch, WITHIN).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Config);
    assert!(error.to_string().contains("are the same server"), "{error}");
    let blank = Rig::blank(3);
    let error = with_server(&blank, 2, &blank.nodes[0]).client().pass(Purpose::Init, WITHIN).unwrap_err();
    assert!(error.to_string().contains("node-0 and node-2 are the same server"), "{error}");
}

/// A name leads to another server while clients are connected to the first one, which keeps running.
#[test]
fn two_servers_behind_one_address_do_not_both_count() {
    let rig = Rig::founded(3);
    let first = rig.connected();
    let lease = granted(acquire(&first, &claim(1)));
    first.flush(WITHIN);
    let elsewhere = MemoryNode::new("elsewhere", Arc::new(rig.clock.clone()));
    let moved = with_server(&rig, 0, &elsewhere);
    let others = moved.client();
    watch(&others);
    for _ in 0..7 {
        rig.clock.advance(Duration::from_secs(5));
        assert!(matches!(first.renew(std::slice::from_ref(&lease), WITHIN).unwrap()[..], [Renewed::Renewed { .. }]));
    }
    assert_eq!(votes(&watch(&others)), [true; 3]);
    // A minority forgets, so every client looks again.
    rig.nodes[2].forget();
    let report = watch(&first);
    assert_eq!(votes(&report), [false, true, false]);
    assert!(report.warnings().join(" ").contains("node-0 now leads to a different server"), "{:?}", report.warnings());
    watch(&others);
    rig.clock.advance(Duration::from_secs(32));
    assert_eq!(votes(&watch(&others)), [true; 3]);
    let renewed = first.renew(std::slice::from_ref(&lease), WITHIN);
    assert!(!matches!(&renewed, Ok(answers) if matches!(answers[..], [Renewed::Renewed { .. }])), "{renewed:?}");
    granted(acquire(&others, &claim(2)));
}

/// A record that was made while its node was away and another majority knew better.
#[test]
fn a_record_that_is_out_of_date_deposes_nobody() {
    let rig = Rig::founded(3);
    rig.nodes[0].restart();
    watch(&rig.client());
    rig.clock.advance(MAX_TTL);
    watch(&rig.client());
    rig.faults[2].fail_everything(Fault::Refused(ErrorKind::Unreachable));
    rig.nodes[0].restart();
    watch(&rig.client());
    rig.clock.advance(MAX_TTL * 2);
    assert_eq!(votes(&watch(&rig.client())), [true, true, false]);
    rig.faults[2].heal_everything();
    rig.nodes[1].forget();
    assert_eq!(votes(&watch(&rig.client())), [true, false, true], "the third records an epoch that is over");
}

/// A node of another deployment answers, and one that knows of none. The second may belong to the other deployment, until a
/// majority votes here.
#[test]
fn while_a_stranger_answers_a_blank_node_waits_for_a_majority() {
    let rig = Rig::founded(5);
    let others = Rig::founded(3);
    let mixed = with_server(&rig, 4, &others.nodes[2]);
    (0..3).for_each(|node| rig.nodes[node].restart());
    rig.nodes[3].forget();
    let marked = || rig.nodes[3].store().view(rig.nodes[3].clock(), &rig.nodes[3].run()).marked_for.is_some();
    let client = mixed.client();
    assert_eq!(votes(&watch(&client)), [false; 5]);
    assert!(!marked(), "it may be the others'");
    // Nodes that know this deployment belong to no other.
    rig.clock.advance(MAX_TTL + Duration::from_secs(2));
    assert_eq!(votes(&watch(&client)), [true, true, true, false, false]);
    watch(&client);
    assert!(marked());
    rig.clock.advance(MAX_TTL + Duration::from_secs(2));
    assert_eq!(votes(&watch(&client)), [true, true, true, true, false]);
}
