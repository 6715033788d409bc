//! The restart guard.

use std::time::Duration;

use lock_core::node::Standing;
use lock_core::{Answer, ErrorKind, Ttl};
use lock_memory::faults::Fault;
use lock_redlock::quorum::{Purpose, Recovery};

use crate::support::{MAX_TTL, Rig, WITHIN, acquire, claim, eventually, granted, release, votes, watch};

const MOMENT: Duration = Duration::from_millis(100);

#[test]
fn a_new_deployment_waits_for_the_longest_lease_that_it_allows() {
    let rig = Rig::blank(3);
    let client = rig.connected();
    let error = acquire(&client, &claim(1)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable);
    let text = error.to_string();
    assert!(text.contains("0 of 3 nodes vote, 2 are needed") && text.contains("redlock init URL"), "{text}");
    rig.clock.advance(MAX_TTL - MOMENT);
    assert_eq!(votes(&watch(&client)), [false; 3]);
    rig.clock.advance(MOMENT * 10);
    let report = watch(&client);
    assert_eq!(votes(&report), [true; 3]);
    assert!(report.nodes.iter().all(|node| node.recovery == Some(Recovery::ByClock)), "{report:?}");
    granted(acquire(&client, &claim(1)));
}

#[test]
fn only_a_deployment_that_nobody_knows_can_be_declared_new() {
    let rig = Rig::blank(3);
    // Somebody was there before it was declared.
    watch(&rig.client());
    assert_eq!(votes(&rig.client().pass(Purpose::Found, WITHIN).unwrap()), [true; 3]);
    granted(acquire(&rig.connected(), &claim(1)));
    rig.nodes[0].forget();
    rig.nodes[1].forget();
    let error = rig.client().pass(Purpose::Found, WITHIN).unwrap_err();
    assert!(error.to_string().contains("node-2 knows this deployment"), "{error}");
}

#[test]
fn a_node_that_forgot_abstains_until_the_longest_lease_in_use_is_over() {
    let rig = Rig::founded(3);
    let client = rig.connected();
    let lease = granted(acquire(&client, &claim(1)));
    rig.nodes[0].forget();
    assert!(matches!(acquire(&client, &claim(2)).unwrap(), Answer::Busy { .. }));
    let report = watch(&client);
    assert_eq!(votes(&report), [false, true, true]);
    rig.clock.advance(Ttl::DEFAULT.get() - MOMENT);
    assert_eq!(votes(&watch(&client)), [false, true, true]);
    rig.clock.advance(MOMENT * 10);
    let report = watch(&client);
    assert_eq!(votes(&report), [true; 3]);
    assert_eq!(report.nodes[0].recovery, Some(Recovery::FromOthers));
    let counter = report.nodes[0].view.as_ref().unwrap().counter;
    assert!(counter >= lease.tokens.high().get(), "its counter was recovered");
}

#[test]
fn clients_that_live_for_a_moment_bring_a_node_back_between_them() {
    let rig = Rig::founded(3);
    granted(acquire(&rig.connected(), &claim(1)));
    rig.nodes[0].restart();
    let mut passes = 0;
    while !votes(&watch(&rig.client()))[0] {
        rig.clock.advance(Duration::from_secs(5));
        passes += 1;
    }
    // 30 s and some drift: none of them saw more than a moment of it.
    assert!((6..=8).contains(&passes), "{passes}");
}

#[test]
fn a_node_that_forgets_again_begins_to_wait_again() {
    let rig = Rig::founded(3);
    granted(acquire(&rig.connected(), &claim(1)));
    rig.nodes[0].forget();
    watch(&rig.client());
    rig.clock.advance(Duration::from_secs(25));
    rig.nodes[0].forget();
    watch(&rig.client());
    rig.clock.advance(Duration::from_secs(25));
    assert_eq!(votes(&watch(&rig.client())), [false, true, true]);
    rig.clock.advance(Duration::from_secs(10));
    assert_eq!(votes(&watch(&rig.client())), [true; 3]);
}

#[test]
fn a_majority_that_forgot_comes_back_by_the_clock_and_is_told_of() {
    let rig = Rig::founded(3);
    let client = rig.connected();
    let lease = granted(acquire(&client, &claim(1)));
    for node in [0, 1] {
        rig.nodes[node].forget();
        rig.nodes[node].restart();
    }
    assert_eq!(votes(&watch(&client)), [false, false, true]);
    assert_eq!(acquire(&client, &claim(2)).unwrap_err().kind(), ErrorKind::Unavailable);
    rig.clock.advance(Ttl::DEFAULT.get() * 2 - MOMENT);
    assert_eq!(votes(&watch(&client)), [false, false, true], "nobody knows how long its leases were");
    rig.clock.advance(Duration::from_secs(1));
    let report = watch(&client);
    assert_eq!(votes(&report), [true; 3]);
    assert!(report.warnings().iter().any(|warning| warning.contains("its clock alone")), "{:?}", report.warnings());
    assert!(granted(acquire(&client, &claim(2))).tokens.low() > lease.tokens.high());
}

#[test]
fn a_node_that_cannot_be_reached_for_ever_does_not_keep_the_others_from_voting() {
    let rig = Rig::founded(3);
    granted(acquire(&rig.connected(), &claim(1)));
    rig.faults[2].fail_everything(Fault::Refused(ErrorKind::Unreachable));
    rig.nodes[0].forget();
    let client = rig.connected();
    rig.clock.advance(MAX_TTL + Duration::from_secs(2));
    assert_eq!(votes(&watch(&client)), [true, true, false]);
    granted(acquire(&client, &claim(2)));
}

#[test]
fn a_node_that_restarted_with_its_data_waits_too() {
    let rig = Rig::founded(3);
    let client = rig.connected();
    let lease = granted(acquire(&client, &claim(1)));
    release(&client, &lease).unwrap();
    rig.nodes[1].restart();
    granted(acquire(&client, &claim(2)));
    assert_eq!(votes(&watch(&client)), [true, false, true]);
    assert!(matches!(watch(&client).nodes[1].view.as_ref().unwrap().standing, Standing::Abstaining { .. }));
}

#[test]
fn other_nodes_and_other_limits_than_the_deployments_are_refused() {
    let rig = Rig::founded(4);
    let error = rig.client_of(&[0, 1, 2]).pass(Purpose::Watch, WITHIN).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Config);
    assert!(error.to_string().contains("belongs to a deployment of other nodes"), "{error}");
    let error = rig.client_allowing(MAX_TTL / 2).pass(Purpose::Watch, WITHIN).unwrap_err();
    assert!(error.to_string().contains("max_ttl is 1m, and the URL says 30s; write ?max_ttl=1m"), "{error}");
}

#[test]
fn one_server_under_two_addresses_is_refused() {
    let rig = Rig::blank(3);
    let twice = Rig { nodes: vec![rig.nodes[0].clone(), rig.nodes[1].clone(), rig.nodes[0].listed_as("alias")], ..rig };
    let error = twice.client().pass(Purpose::Watch, WITHIN).unwrap_err();
    assert!(error.to_string().contains("node-0 and alias are one and the same server"), "{error}");
}

#[test]
fn three_nodes_become_five_after_a_wait() {
    let old = Rig::founded(3);
    let lease = granted(acquire(&old.connected(), &claim(1)));
    let mut nodes = old.nodes.clone();
    for index in 3..5 {
        let clock = std::sync::Arc::new(old.clock.clone());
        nodes.push(lock_memory::node::MemoryNode::new(format!("node-{index}"), clock));
    }
    let new = Rig { nodes, faults: Rig::blank(5).faults, clock: old.clock.clone() };
    let stale = old.connected();
    let members = (0..5).map(|index| format!("node-{index}")).collect();
    let membership = std::sync::Arc::new(lock_core::node::Membership { members, max_ttl: MAX_TTL });
    old.client().pass(Purpose::Move(membership), WITHIN).unwrap();
    // Whoever still uses the old list is refused.
    assert!(acquire(&stale, &claim(2)).is_err());
    assert!(old.client().pass(Purpose::Watch, WITHIN).is_err());
    let client = new.connected();
    assert_eq!(acquire(&client, &claim(2)).unwrap_err().kind(), ErrorKind::Unavailable);
    old.clock.advance(MAX_TTL + Duration::from_secs(2));
    assert_eq!(votes(&watch(&client)), [true; 5]);
    assert!(granted(acquire(&client, &claim(2))).tokens.low() > lease.tokens.high());
    assert!(acquire(&stale, &claim(3)).is_err());
}

#[test]
fn a_pass_for_something_else_that_was_refused_stops_nobody() {
    let rig = Rig::founded(3);
    let client = rig.connected();
    assert!(client.pass(Purpose::Found, WITHIN).is_err());
    granted(acquire(&client, &claim(1)));
}

#[test]
fn one_node_that_refuses_this_client_is_told_of_and_does_not_count() {
    let rig = Rig::founded(3);
    rig.faults[0].fail_everything(Fault::Refused(ErrorKind::Denied));
    let client = rig.client();
    let report = watch(&client);
    assert_eq!(votes(&report), [false, true, true]);
    assert!(report.warnings()[0].contains("node-0 does not count"), "{:?}", report.warnings());
    granted(acquire(&client, &claim(1)));
    rig.faults[1].fail_everything(Fault::Refused(ErrorKind::Denied));
    assert_eq!(watch(&rig.client()).check_reached().unwrap_err().kind(), ErrorKind::Denied);
}

#[test]
fn looking_often_keeps_nobody_from_watching() {
    let rig = Rig::founded(3);
    let client = rig.connected();
    rig.nodes.iter().for_each(lock_memory::node::MemoryNode::forget);
    assert!(acquire(&client, &claim(1)).is_err());
    eventually(|| {
        rig.clock.advance(Duration::from_millis(100));
        client.pass(Purpose::Look, WITHIN).unwrap();
        acquire(&client, &claim(2)).is_err_and(|error| error.to_string().contains("at most"))
    });
}
