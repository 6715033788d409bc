//! Moves of deployments, and the nodes that are left behind.

use std::time::Duration;

use lock_core::{Answer, BlockingBackend, ErrorKind};
use lock_memory::faults::Fault;
use lock_memory::node::MemoryNode;
use lock_redlock::quorum::{Purpose, Recovery};

use crate::support::{MAX_TTL, Rig, WITHIN, acquire, claim, granted, release, votes, watch};

const AWAY: Fault = Fault::Refused(ErrorKind::Unreachable);

/// Three nodes that were moved to five. The third node was away and is as it was.
fn left_behind() -> (Rig, Rig) {
    let old = Rig::founded(3);
    let new = old.with_more(2);
    old.faults[2].fail_everything(AWAY);
    old.client().pass(Purpose::Move(new.membership()), WITHIN).unwrap();
    old.faults[2].heal_everything();
    (old, new)
}

#[test]
fn three_nodes_become_five_after_a_wait() {
    let old = Rig::founded(3);
    let lease = granted(acquire(&old.connected(), &claim(1)));
    let new = old.with_more(2);
    let stale = old.connected();
    let error = new.client().pass(Purpose::TakeOver(old.membership()), WITHIN).unwrap_err();
    assert!(error.to_string().contains("belongs to a deployment of other nodes"), "{error}");
    old.client().pass(Purpose::Move(new.membership()), WITHIN).unwrap();
    // A client that still uses the old list is refused.
    assert!(acquire(&stale, &claim(2)).is_err());
    assert!(old.client().pass(Purpose::Watch, WITHIN).is_err());
    let client = new.client();
    client.pass(Purpose::TakeOver(old.membership()), WITHIN).unwrap();
    assert_eq!(acquire(&client, &claim(2)).unwrap_err().kind(), ErrorKind::Unavailable);
    old.clock.advance(MAX_TTL + Duration::from_secs(2));
    assert_eq!(votes(&watch(&client)), [true; 5]);
    assert!(granted(acquire(&client, &claim(2))).tokens.low() > lease.tokens.high());
    assert!(acquire(&stale, &claim(3)).is_err());
}

/// One that was moved restarts without its data. A client of the old deployment must not make a majority of that and of
/// the one that was left behind.
#[test]
fn a_node_that_was_moved_and_forgot_is_not_taken_back() {
    let (old, new) = left_behind();
    let client = new.client();
    // It cannot reach the one that was left behind.
    new.faults[2].fail_everything(AWAY);
    client.pass(Purpose::TakeOver(old.membership()), WITHIN).unwrap();
    old.clock.advance(MAX_TTL + Duration::from_secs(2));
    watch(&client);
    let lease = granted(acquire(&client, &claim(1)));
    new.faults[2].heal_everything();
    new.nodes[0].forget();
    let stale = old.client();
    for _ in 0..20 {
        let told = stale.pass(Purpose::Watch, WITHIN).map(|report| votes(&report));
        let error = told.expect_err("a blank node and one that votes are no majority");
        assert!(error.to_string().contains("belongs to a deployment of other nodes"), "{error}");
        assert!(!matches!(acquire(&stale, &claim(2)), Ok(Answer::Granted { .. })), "two holders");
        old.clock.advance(Duration::from_secs(20));
    }
    assert!(new.nodes[0].store().view(new.nodes[0].clock(), &new.nodes[0].run()).marked_for.is_none());
    drop(lease);
    // The new deployment's clients bring it back, and fetch the one that was left behind.
    watch(&client);
    old.clock.advance(MAX_TTL + Duration::from_secs(2));
    assert_eq!(votes(&watch(&client)), [true; 5]);
}

/// A client that does not see the moved nodes marks the one that forgot. Then no client can use it for another list.
#[test]
fn a_mark_of_another_deployment_is_respected() {
    let rig = Rig::blank(4);
    watch(&rig.client_of(&[0, 1, 2]));
    let error = rig.client_of(&[0, 1, 3]).pass(Purpose::Watch, WITHIN).unwrap_err();
    assert!(error.to_string().contains("belongs to a deployment of other nodes: node-0, node-1, node-2"), "{error}");
    assert!(rig.nodes[3].store().view(rig.nodes[3].clock(), &rig.nodes[3].run()).marked_for.is_none());
    // A client that declares everything new declares these nodes new, too.
    assert_eq!(votes(&rig.client_of(&[0, 1, 3]).pass(Purpose::Init, WITHIN).unwrap()), [true; 3]);
}

#[test]
fn a_node_that_was_left_behind_is_fetched_by_the_next_client() {
    let (old, new) = left_behind();
    let client = new.client();
    client.pass(Purpose::TakeOver(old.membership()), WITHIN).unwrap();
    let view = |node: usize| new.nodes[node].store().view(new.nodes[node].clock(), &new.nodes[node].run());
    assert_eq!(view(2).membership.as_ref(), Some(&*new.membership()));
    assert_eq!(view(2).predecessor.as_ref(), Some(&*old.membership()));
    old.clock.advance(MAX_TTL + Duration::from_secs(2));
    assert_eq!(votes(&watch(&client)), [true; 5]);
    assert!(old.client().pass(Purpose::Watch, WITHIN).is_err());
}

/// It never answers a client of the new deployment, which must not need it.
#[test]
fn after_a_move_the_wait_is_no_longer_where_a_node_was_left_behind() {
    let (old, new) = left_behind();
    new.faults[2].fail_everything(AWAY);
    let client = new.client();
    client.pass(Purpose::TakeOver(old.membership()), WITHIN).unwrap();
    old.clock.advance(MAX_TTL - Duration::from_secs(1));
    assert_eq!(votes(&watch(&client)), [false; 5]);
    old.clock.advance(Duration::from_secs(3));
    assert_eq!(votes(&watch(&client)), [true, true, false, true, true]);
    granted(acquire(&client, &claim(1)));
}

/// The deployment was moved on to a third one. Clients of the second must not fetch nodes back.
#[test]
fn a_deployment_that_was_moved_on_fetches_nobody() {
    let (old, new) = left_behind();
    let client = new.client();
    client.pass(Purpose::TakeOver(old.membership()), WITHIN).unwrap();
    old.clock.advance(MAX_TTL + Duration::from_secs(2));
    assert_eq!(votes(&watch(&client)), [true; 5]);
    // Back to the three: the two others of the five are away, and stay as they are.
    (3..5).for_each(|node| new.faults[node].fail_everything(AWAY));
    new.client().pass(Purpose::Move(old.membership()), WITHIN).unwrap();
    (3..5).for_each(|node| new.faults[node].heal_everything());
    assert!(new.client().pass(Purpose::Watch, WITHIN).is_err());
    for node in &new.nodes[..3] {
        let view = node.store().view(node.clock(), &node.run());
        assert_eq!(view.membership.as_ref(), Some(&*old.membership()));
    }
    old.clock.advance(MAX_TTL + Duration::from_secs(2));
    assert_eq!(votes(&watch(&old.client())), [false; 3], "nobody had recorded that they were moved");
    old.clock.advance(MAX_TTL + Duration::from_secs(2));
    assert_eq!(votes(&watch(&old.client())), [true; 3]);
}

#[test]
fn a_move_can_lengthen_max_ttl_but_not_shorten_it() {
    let rig = Rig::founded(3);
    let other = |max_ttl| {
        let mut to = (*rig.membership()).clone();
        to.max_ttl = max_ttl;
        std::sync::Arc::new(to)
    };
    let error = rig.client().pass(Purpose::Move(other(MAX_TTL / 2)), WITHIN).unwrap_err();
    assert!(error.to_string().contains("max_ttl is shorter"), "{error}");
    granted(acquire(&rig.connected(), &claim(1)));
    rig.client().pass(Purpose::Move(other(MAX_TTL * 2)), WITHIN).unwrap();
    let client = rig.client_allowing(MAX_TTL * 2);
    watch(&client);
    rig.clock.advance(MAX_TTL * 2 + Duration::from_secs(3));
    assert_eq!(votes(&watch(&client)), [true; 3]);
}

/// Two of three come back with older data, and are moved while the third one is away.
#[test]
fn nodes_that_forgot_before_a_move_do_not_count_as_ones_that_remember() {
    let old = Rig::founded(3);
    let before: Vec<_> = old.nodes.iter().map(MemoryNode::store).collect();
    let client = old.connected();
    for id in 1..50 {
        release(&client, &granted(acquire(&client, &claim(id)))).unwrap();
    }
    client.flush(WITHIN);
    for (node, before) in old.nodes.iter().zip(before).take(2) {
        // As when an append-only file loses the last writes.
        node.put_back(before);
        node.restart();
    }
    old.faults[2].fail_everything(AWAY);
    let new = old.with_more(2);
    old.client().pass(Purpose::Move(new.membership()), WITHIN).unwrap();
    let client = new.client();
    client.pass(Purpose::TakeOver(old.membership()), WITHIN).unwrap();
    old.clock.advance(MAX_TTL + Duration::from_secs(2));
    let report = watch(&client);
    assert_eq!(votes(&report), [true, true, false, true, true]);
    assert_eq!(report.nodes[0].recovery, Some(Recovery::ByClock), "only the third knows the last tokens");
    assert!(!report.warnings().is_empty(), "{report:?}");
}
