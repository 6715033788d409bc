//! What a pass reports to operators.

use std::sync::Arc;
use std::time::Duration;

use lock_core::node::{Ask, BlockingQuorumNode, Epoch, NodeState};
use lock_core::{ErrorKind, FencingToken, Lease, Moment, TokenRange};
use lock_host::Clock;
use lock_memory::faults::Fault;
use lock_memory::node::MemoryNode;
use lock_redlock::quorum::{Purpose, Report};

use crate::support::{Rig, WITHIN, claim, watch};

fn refuse(rig: &Rig, nodes: &[usize], kind: ErrorKind) {
    nodes.iter().for_each(|node| rig.faults[*node].fail_everything(Fault::Refused(kind)));
}

fn look(rig: &Rig) -> Report {
    rig.client().pass(Purpose::Look, WITHIN).unwrap()
}

#[test]
fn a_majority_that_did_not_answer_may_come_back_unless_too_many_refuse_for_good() {
    for (denied, expected) in [(2, ErrorKind::Unreachable), (3, ErrorKind::Denied)] {
        let rig = Rig::founded(5);
        refuse(&rig, &[0, 1, 2], ErrorKind::Unreachable);
        refuse(&rig, &[0, 1, 2][..denied], ErrorKind::Denied);
        let error = look(&rig).check_reached().unwrap_err();
        assert_eq!(error.kind(), expected, "{denied} of 5 refuse: {error}");
        assert!(error.to_string().contains("only 2 of 5 nodes answer, but 3 are needed"), "{error}");
    }
    let rig = Rig::founded(5);
    refuse(&rig, &[0, 1], ErrorKind::Denied);
    look(&rig).check_reached().unwrap();
}

#[test]
fn only_a_deployment_that_no_node_knows_is_blank() {
    assert!(look(&Rig::blank(3)).is_blank());
    assert!(!look(&Rig::founded(3)).is_blank());
    let rig = Rig::blank(3);
    refuse(&rig, &[0], ErrorKind::Unreachable);
    assert!(!look(&rig).is_blank(), "it may know one");
}

#[test]
fn a_node_that_cannot_be_one_is_a_stranger_and_one_that_is_away_is_none() {
    let rig = Rig::founded(3);
    assert!(!look(&rig).has_strangers());
    refuse(&rig, &[0], ErrorKind::Unreachable);
    let report = look(&rig);
    assert!(!report.has_strangers() && report.warnings().is_empty(), "{:?}", report.warnings());
    refuse(&rig, &[0], ErrorKind::Config);
    assert!(look(&rig).has_strangers());
}

/// It answers correctly, and blocks nobody.
#[test]
fn a_node_of_another_deployment_is_no_stranger() {
    let (rig, others) = (Rig::founded(3), Rig::founded(5));
    let mut nodes = rig.nodes.clone();
    nodes[2] = others.nodes[2].listed_as("node-2");
    let report = watch(&Rig { nodes, faults: rig.faults.clone(), clock: rig.clock.clone() }.client());
    assert_eq!(report.nodes[2].view.as_ref().unwrap_err().kind(), ErrorKind::Config);
    assert!(!report.has_strangers());
}

/// Raises a node's counter above its clock by this much.
fn raise(node: &MemoryNode, now: Moment, ahead: Duration) {
    let NodeState::Voting(epoch) = node.store().view(node.clock(), &node.run()).state else { panic!("it votes") };
    let high = now + ahead;
    let token = FencingToken::new(high.as_nanos() / 1000).unwrap();
    fence(node, epoch, TokenRange::new(token, token).unwrap());
}

fn fence(node: &MemoryNode, epoch: Epoch, tokens: TokenRange) {
    let leases: Arc<[Lease]> = Arc::from([claim(1).lease(tokens)]);
    BlockingQuorumNode::ask(node, &Ask::Fence { leases, epoch }, WITHIN).unwrap();
}

#[test]
fn a_counter_that_is_far_ahead_of_its_clock_is_reported() {
    let rig = Rig::founded(3);
    let now = rig.clock.now();
    raise(&rig.nodes[0], now, Duration::from_secs(10));
    assert!(look(&rig).warnings().is_empty(), "clocks are never quite right");
    raise(&rig.nodes[0], now, Duration::from_micros(10_000_001));
    let warnings = look(&rig).warnings();
    assert_eq!(warnings, ["the token counter of node-0 is 10s 1us ahead of its clock: some clock was wrong"]);
}

/// Two of five that remember a `max_ttl` may have been left behind by a move that raised it.
#[test]
fn nodes_that_wait_for_longer_than_max_ttl_are_reported_with_the_reason_and_the_time() {
    for (forgetting, is_told) in [(2, false), (3, true), (5, false)] {
        let rig = Rig::founded(5);
        rig.nodes[..forgetting].iter().for_each(MemoryNode::forget);
        for (passed, left) in [(0, "5m 4s"), (100, "3m 24s")] {
            rig.clock.advance(Duration::from_secs(passed));
            let report = if passed == 0 { watch(&rig.client()) } else { look(&rig) };
            let warnings = report.warnings();
            let told = warnings.iter().find(|warning| warning.contains("which max_ttl applied"));
            assert_eq!(told.is_some(), is_told, "{forgetting} of 5 forgot: {warnings:?}");
            for words in ["node-0, node-1, node-2", "5m 4s in all", left] {
                assert!(told.is_none_or(|told| told.contains(words)), "no {words}: {told:?}");
            }
        }
    }
    // With their data they know which max_ttl applied.
    let rig = Rig::founded(5);
    rig.nodes[..3].iter().for_each(MemoryNode::restart);
    let report = watch(&rig.client());
    assert!(report.nodes[0].votes_in.is_some() && report.warnings().is_empty(), "{report:?}");
}
