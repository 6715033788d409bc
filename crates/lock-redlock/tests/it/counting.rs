//! How answers are counted when nodes disagree, and what is reported about it.

use std::slice::from_ref;
use std::sync::Arc;
use std::time::Duration;

use lock_core::node::{Ask, BlockingQuorumNode};
use lock_core::{
    BlockingBackend, Certainty, Claim, ErrorKind, Evidence, Fenced, Lease, Operation, ReleaseRequest, Released,
    Renewed, Terms, Ttl,
};
use lock_memory::faults::Fault;
use lock_memory::node::MemoryNode;

use crate::support::{MAX_TTL, Rig, WITHIN, acquire, claim, eventually, granted, release};

/// Ends a lease at some nodes only.
fn lose_at(rig: &Rig, nodes: &[usize], lease: &Lease) {
    let Lease { name, owner, terms, .. } = lease.clone();
    let request = Arc::new(ReleaseRequest {
        name,
        owner,
        terms,
        certainty: Certainty::Answered,
        keep: None,
        evidence: Evidence::Nothing,
    });
    for node in nodes {
        BlockingQuorumNode::ask(&rig.nodes[*node], &Ask::Release(Arc::clone(&request)), WITHIN).unwrap();
    }
}

fn refuse(rig: &Rig, nodes: &[usize], kind: ErrorKind) {
    nodes.iter().for_each(|node| rig.faults[*node].fail_everything(Fault::Refused(kind)));
}

#[test]
fn a_lease_is_lost_only_where_no_majority_can_have_it() {
    let rig = Rig::in_use(5);
    let client = rig.connected();
    let lease = granted(acquire(&client, &claim(1)));
    client.flush(WITHIN);
    lose_at(&rig, &[0, 1], &lease);
    assert!(matches!(client.renew(from_ref(&lease), WITHIN).unwrap()[..], [Renewed::Renewed { .. }]));
    refuse(&rig, &[2], ErrorKind::Unreachable);
    let renewed = client.renew(from_ref(&lease), WITHIN).unwrap();
    assert!(matches!(renewed[..], [Renewed::Unsure(_)]), "the third may have it: {renewed:?}");
    assert!(client.fence(&lease, WITHIN).is_err());
    rig.faults[2].heal_everything();
    rig.clock.advance(Duration::from_secs(2));
    lose_at(&rig, &[2], &lease);
    // The first request to the third is a probe, which is not waited for.
    eventually(|| client.renew(from_ref(&lease), WITHIN).unwrap() == [Renewed::NotHeld]);
    assert_eq!(client.fence(&lease, WITHIN).unwrap(), Fenced::NotHeld);
    let next = granted(acquire(&rig.connected(), &claim(2)));
    let fenced = client.fence(&lease, WITHIN).unwrap();
    assert!(matches!(fenced, Fenced::Higher(token) if token >= next.tokens.high()), "{fenced:?} {next:?}");
}

#[test]
fn nodes_that_forgot_a_lease_say_no_to_its_renewal() {
    let rig = Rig::in_use(3);
    let client = rig.connected();
    let lease = granted(acquire(&client, &claim(1)));
    client.flush(WITHIN);
    rig.nodes[..2].iter().for_each(MemoryNode::forget);
    assert_eq!(client.renew(from_ref(&lease), WITHIN).unwrap(), [Renewed::NotHeld]);
}

#[test]
fn to_renew_nothing_needs_no_answer() {
    let rig = Rig::in_use(3);
    let client = rig.connected();
    refuse(&rig, &[0, 1, 2], ErrorKind::Unreachable);
    assert_eq!(client.renew(&[], WITHIN).unwrap(), []);
}

#[test]
fn a_lease_counts_as_held_although_a_minority_did_not_know_its_release() {
    for (lost, expected) in [(2, Released::Released), (3, Released::NotHeld)] {
        let rig = Rig::in_use(5);
        let client = rig.connected();
        let lease = granted(acquire(&client, &claim(1)));
        client.flush(WITHIN);
        lose_at(&rig, &[0, 1, 2][..lost], &lease);
        // The first three answers decide.
        rig.faults[3..].iter().for_each(|faults| faults.hold(Operation::Release));
        assert_eq!(release(&client, &lease).unwrap(), expected, "{lost} of 5 did not know it");
        rig.faults[3..].iter().for_each(|faults| faults.let_go(Operation::Release));
    }
}

/// Transient errors may be retried, unless so many nodes refuse permanently that there is no majority without them.
#[test]
fn errors_of_many_nodes_are_one_error() {
    for (denied, away, expected) in
        [(2, 1, ErrorKind::Unreachable), (3, 0, ErrorKind::Denied), (3, 2, ErrorKind::Denied)]
    {
        let rig = Rig::in_use(5);
        let client = rig.connected();
        for (node, faults) in rig.faults.iter().enumerate().take(denied + away) {
            let kind = if node < denied { ErrorKind::Denied } else { ErrorKind::Unreachable };
            faults.fail_all(Operation::Acquire, Fault::Refused(kind));
        }
        let error = acquire(&client, &claim(1)).unwrap_err();
        assert_eq!(error.kind(), expected, "{denied} refuse and {away} are away: {error}");
    }
}

#[test]
fn silent_nodes_are_named_with_a_remedy() {
    let rig = Rig::in_use(3);
    refuse(&rig, &[0, 2], ErrorKind::Unreachable);
    let error = acquire(&rig.connected(), &claim(1)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unreachable);
    let told =
        "1 of 3 nodes vote, 2 are needed; not answering: node-0, node-2; check that a majority of the nodes runs";
    assert!(error.to_string().ends_with(told), "{error}");

    let rig = Rig::in_use(3);
    rig.nodes[..2].iter().for_each(MemoryNode::forget);
    let error = acquire(&rig.connected(), &claim(1)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable);
    let told = error.to_string();
    assert!(told.contains("abstaining: node-0, node-1, until"), "{told}");
    assert!(told.ends_with("s at most; wait until they vote again"), "{told}");
    assert!(!told.contains("not answering"), "{told}");
}

#[test]
fn the_longest_ttl_that_a_deployment_allows_is_granted() {
    let rig = Rig::in_use(3);
    let longest = Claim { terms: Terms::exclusive(Ttl::new(MAX_TTL).unwrap()), ..claim(1) };
    assert_eq!(granted(acquire(&rig.connected(), &longest)).terms.ttl.get(), MAX_TTL);
}
