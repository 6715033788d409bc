//! Moves of deployments, and the nodes that are left behind.

use std::sync::Arc;
use std::time::Duration;

use lock_core::node::{Ask, BlockingQuorumNode as _, Epoch, Membership};
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
        Arc::new(to)
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

/// What may be left of moves from one deployment: a few requests arrived. Returns how many lists grant in the end.
fn grants_after(size: usize, moves: &[(&[usize], &[usize])], take_over: bool) -> usize {
    let old = Rig::founded(size);
    let new = old.with_more(4);
    let list =
        |nodes: &[usize]| Arc::new(Membership::new(nodes.iter().map(|node| format!("node-{node}")).collect(), MAX_TTL));
    let seen = old.membership();
    for (number, (to, reached)) in moves.iter().enumerate() {
        for node in *reached {
            let epoch = Epoch::from_random(u64::try_from(10 * number + node).unwrap() + 300);
            let (membership, predecessor) = (list(to), Arc::clone(&seen));
            let ask = Ask::Move { epoch, seen: Some(Arc::clone(&seen)), membership, predecessor, moves: 1 };
            new.nodes[*node].ask(&ask, WITHIN).unwrap();
        }
    }
    let clients: Vec<_> = moves.iter().map(|(to, _)| new.client_of(to)).chain([old.client()]).collect();
    for _ in 0..6 {
        for client in &clients {
            if take_over {
                _ = client.pass(Purpose::TakeOver(Arc::clone(&seen)), WITHIN);
            }
            _ = client.pass(Purpose::Watch, WITHIN);
        }
        old.clock.advance(MAX_TTL * 6);
    }
    let claims = (7..).map(claim);
    clients
        .iter()
        .zip(claims)
        .filter(|(client, claim)| matches!(acquire(client, claim), Ok(Answer::Granted { .. })))
        .count()
}

/// New nodes alone could be a majority of the new list.
#[test]
fn a_move_that_was_interrupted_leaves_one_list_that_grants() {
    for (size, to, reached) in [
        (3, &[0, 3, 4][..], &[0][..]),
        (5, &[0, 1, 5, 6, 7], &[0, 1]),
        (3, &[0, 1, 3, 4, 5], &[0]),
        (4, &[0, 1, 4, 5, 6], &[0]),
    ] {
        for take_over in [false, true] {
            assert_eq!(grants_after(size, &[(to, reached)], take_over), 1, "{size} to {to:?}, {take_over}");
        }
    }
}

#[test]
fn of_two_moves_that_cross_one_list_grants_at_most() {
    for (size, one, other, settled) in [
        (3, (&[0, 3, 4][..], &[0][..]), (&[1, 2, 5][..], &[1, 2][..]), 1),
        (4, (&[0, 1, 4], &[0, 1]), (&[2, 3, 5], &[2, 3]), 1),
        (4, (&[0, 1, 4, 5, 6], &[0, 1]), (&[2, 3, 7], &[2, 3]), 1),
        (5, (&[0, 1, 2], &[0, 1]), (&[2, 3, 4, 5, 6], &[2, 3]), 0),
    ] {
        for take_over in [false, true] {
            let grants = grants_after(size, &[one, other], take_over);
            assert_eq!(grants, settled, "{size} to {one:?} and {other:?}, {take_over}");
        }
    }
}

/// Nobody has voted in the second deployment. The first one still has a majority.
#[test]
fn a_deployment_that_never_voted_is_not_moved_on() {
    let old = Rig::founded(5);
    let new = old.with_more(1);
    let (next, last) =
        (new.client_of(&[0, 1, 2]), Membership::new(vec!["node-0".into(), "node-1".into(), "node-5".into()], MAX_TTL));
    let list = Arc::new(Membership::new((0..3).map(|node| format!("node-{node}")).collect(), MAX_TTL));
    for node in 0..2 {
        let (seen, predecessor) = (Some(old.membership()), old.membership());
        let ask = Ask::Move {
            epoch: Epoch::from_random(node + 300),
            seen,
            membership: Arc::clone(&list),
            predecessor,
            moves: 1,
        };
        new.nodes[usize::try_from(node).unwrap()].ask(&ask, WITHIN).unwrap();
    }
    let error = next.pass(Purpose::Move(Arc::new(last)), WITHIN).unwrap_err();
    assert!(error.to_string().contains("too few of the nodes that answer have voted"), "{error}");
}

/// A kept node loses its data before the move reaches it, or after that. It counts once it is moved, blank as it is.
#[test]
fn a_move_finishes_where_a_kept_node_lost_its_data_and_is_repeated_if_that_was_later() {
    let old = Rig::founded(3);
    let new = old.with_more(1);
    let lists = [0, 1, 3];
    let to = Arc::new(Membership::new(lists.iter().map(|node| format!("node-{node}")).collect(), MAX_TTL));
    new.nodes[1].forget();
    let is_moved = || {
        new.nodes[1].store().view(new.nodes[1].clock(), &new.nodes[1].run()).membership == Some(Membership::clone(&to))
    };
    old.client().pass(Purpose::Move(Arc::clone(&to)), WITHIN).unwrap();
    assert!(is_moved(), "the others were there");
    new.nodes[1].forget();
    let client = new.client_of(&lists);
    let settle = || {
        for _ in 0..6 {
            _ = client.pass(Purpose::TakeOver(old.membership()), WITHIN);
            old.clock.advance(MAX_TTL * 6);
        }
        votes(&watch(&client))
    };
    assert_eq!(settle(), [false; 3], "one of the three nodes was moved and is on the list");
    old.client().pass(Purpose::Move(Arc::clone(&to)), WITHIN).unwrap();
    assert!(is_moved());
    assert_eq!(settle(), [true; 3]);
}
