//! The verbs over all nodes.

use std::slice::from_ref;
use std::time::Duration;

use lock_core::{Answer, BlockingBackend, Effect, ErrorKind, Fenced, Operation, Released, Renewed, Terms, Ttl, Width};
use lock_memory::faults::{Asked, Fault, Faults};

use crate::support::{Rig, WITHIN, acquire, claim, eventually, granted, release};

#[test]
fn one_round_is_enough_where_all_draw_what_was_wished_for() {
    let rig = Rig::founded(5);
    let client = rig.connected();
    let mut last = None;
    for owner in 1..20 {
        rig.clock.advance(Duration::from_millis(1));
        let lease = granted(acquire(&client, &claim(owner)));
        assert!(last < Some(lease.tokens), "{last:?} {lease:?}");
        last = Some(lease.tokens);
        release(&client, &lease).unwrap();
    }
    assert!(fences(&rig) <= 5, "the ttl was announced, and nothing besides");
}

/// Nodes that would draw three different tokens: another client drew tokens at two of them, and more at one than at the other.
fn uneven() -> Rig {
    let rig = Rig::in_use(3);
    for (owner, node, width) in [(7, 0, 1), (8, 0, 64), (9, 1, 1)] {
        let others = rig.connected();
        rig.only(node);
        assert!(acquire(&others, &wide(owner, width)).is_err());
        others.flush(WITHIN);
        rig.faults.iter().for_each(Faults::heal_everything);
        assert_eq!(rig.asked(&Asked::Acquire(claim(owner).owner)).len(), 3, "it was more than announced");
    }
    rig
}

#[test]
fn nodes_that_drew_different_tokens_are_brought_together_by_a_second_round() {
    let rig = uneven();
    let client = rig.connected();
    // The two others are the first to answer.
    rig.faults[2].hold(Operation::Acquire);
    let lease = granted(acquire(&client, &claim(2)));
    rig.faults[2].let_go(Operation::Acquire);
    client.flush(WITHIN);
    let highest = rig.asked(&Asked::Fence(vec![claim(2).owner]));
    assert_eq!(highest, [1, 2], "the one that drew the highest has it");
    assert_eq!(client.fence(&lease, WITHIN).unwrap(), Fenced::Acknowledged);
    let known = rig.nodes.iter().filter(|node| node.store().counter() >= lease.tokens.high().get()).count();
    assert_eq!(known, 3, "all that answered know the token");
}

#[test]
fn a_token_that_is_not_acknowledged_by_a_majority_is_given_back() {
    for fault in [Fault::LostReply, Fault::Refused(ErrorKind::Timeout), Fault::Refused(ErrorKind::Unreachable)] {
        let rig = uneven();
        let client = rig.connected();
        for node in [1, 2] {
            rig.faults[node].fail_all(Operation::Fence, fault);
        }
        let error = acquire(&client, &claim(2)).unwrap_err();
        assert_eq!(error.effect(), Effect::Unknown, "{fault:?}: {error}");
        // Which ones depends on the order of the answers.
        eventually(|| rig.asked(&Asked::Fence(vec![claim(2).owner])).len() == 2);
        eventually(|| rig.asked(&Asked::Release(claim(2).owner)) == [0, 1, 2]);
        let now = lock_host::Clock::now(&rig.clock);
        eventually(|| rig.nodes.iter().all(|node| node.store().holds(now).next().is_none()));
        rig.faults.iter().for_each(Faults::heal_everything);
        granted(acquire(&rig.connected(), &claim(3)));
    }
}

fn fences(rig: &Rig) -> u64 {
    rig.faults.iter().map(|faults| faults.calls(Operation::Fence)).sum()
}

fn wide(owner: u8, width: usize) -> lock_core::Claim {
    lock_core::Claim { width: Width::for_waiters(width), ..claim(owner) }
}

#[test]
fn a_held_lock_is_busy_and_nothing_of_the_claim_remains() {
    let rig = Rig::founded(3);
    let (one, other) = (rig.connected(), rig.connected());
    let lease = granted(acquire(&one, &claim(1)));
    let busy = acquire(&other, &claim(2)).unwrap();
    assert!(matches!(&busy, Answer::Busy { remaining: Some(left), .. } if *left <= Ttl::DEFAULT.get()), "{busy:?}");
    assert_eq!(release(&one, &lease).unwrap(), Released::Released);
    let now = lock_host::Clock::now(&rig.clock);
    eventually(|| rig.nodes.iter().all(|node| node.store().holds(now).next().is_none()));
    granted(acquire(&other, &claim(3)));
}

#[test]
fn a_minority_that_is_away_is_not_waited_for_and_a_majority_is_missed() {
    let rig = Rig::founded(5);
    let client = rig.connected();
    for node in [1, 3] {
        rig.faults[node].fail_everything(Fault::Refused(ErrorKind::Unreachable));
    }
    let lease = granted(acquire(&client, &claim(1)));
    assert!(matches!(client.renew(from_ref(&lease), WITHIN).unwrap()[..], [Renewed::Renewed { .. }]));
    rig.faults[0].fail_everything(Fault::Refused(ErrorKind::Timeout));
    assert!(matches!(client.renew(from_ref(&lease), WITHIN).as_deref(), Ok([Renewed::Unsure(_)]) | Err(_)));
    assert!(!matches!(acquire(&client, &claim(2)), Ok(Answer::Granted { .. })));
    rig.faults[0].heal_everything();
    assert_eq!(release(&client, &lease).unwrap(), Released::Released);
}

#[test]
fn a_grant_without_a_majority_is_given_back() {
    let rig = Rig::in_use(3);
    let client = rig.connected();
    for node in [0, 1] {
        rig.faults[node].fail_everything(Fault::LostReply);
    }
    let error = acquire(&client, &claim(1)).unwrap_err();
    assert_eq!((error.kind(), error.effect()), (ErrorKind::Timeout, Effect::Unknown));
    assert_eq!(rig.asked(&Asked::Acquire(claim(1).owner)), [0, 1, 2], "it was more than announced");
    eventually(|| rig.asked(&Asked::Release(claim(1).owner)) == [0, 1, 2]);
    rig.faults.iter().for_each(Faults::heal_everything);
    // What a node missed is sent with the next request that it answers.
    let lease = granted(acquire(&client, &claim(2)));
    let now = lock_host::Clock::now(&rig.clock);
    eventually(|| {
        let stores: Vec<_> = rig.nodes.iter().map(lock_memory::node::MemoryNode::store).collect();
        stores.iter().all(|store| store.holder(&lease.name, now).is_none_or(|hold| hold.owner == lease.owner))
    });
}

#[test]
fn a_lease_that_a_majority_forgot_is_not_renewed_and_one_that_it_cannot_tell_is_asked_for_again() {
    let rig = Rig::founded(3);
    let client = rig.connected();
    let lease = granted(acquire(&client, &claim(1)));
    client.flush(WITHIN);
    rig.nodes[0].forget();
    rig.faults[1].fail_everything(Fault::Refused(ErrorKind::Unreachable));
    let renewed = client.renew(from_ref(&lease), WITHIN).unwrap();
    assert!(
        matches!(&renewed[..], [Renewed::Unsure(error)] if error.to_string().contains("too few nodes")),
        "{renewed:?}"
    );
    assert!(client.fence(&lease, WITHIN).is_err());
    rig.faults[1].heal_everything();
    assert!(matches!(client.renew(from_ref(&lease), WITHIN).unwrap()[..], [Renewed::Renewed { .. }]));
    rig.clock.advance(lease.terms.ttl.get());
    assert_eq!(client.renew(from_ref(&lease), WITHIN).unwrap(), [Renewed::NotHeld]);
    assert_eq!(client.fence(&lease, WITHIN).unwrap(), Fenced::NotHeld);
}

#[test]
fn a_ttl_that_is_too_long_is_refused_before_anything_is_touched() {
    let rig = Rig::founded(3);
    let client = rig.connected();
    let long = lock_core::Claim { terms: Terms::exclusive(Ttl::new(Duration::from_secs(61)).unwrap()), ..claim(1) };
    let error = acquire(&client, &long).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Config);
    assert!(error.to_string().contains("longer than this deployment allows, which is 1m"), "{error}");
    assert!(rig.faults.iter().all(|faults| faults.calls(Operation::Acquire) == 0));
}

/// Programs that live for a moment would otherwise leave their locks on the nodes that were slower than the majority.
#[test]
fn a_client_that_has_ended_left_nothing_to_do() {
    let rig = Rig::founded(5);
    let now = lock_host::Clock::now(&rig.clock);
    for owner in 0..200 {
        let client = rig.connected();
        let lease = granted(acquire(&client, &claim(owner)));
        release(&client, &lease).unwrap();
        drop(client);
        assert!(rig.nodes.iter().all(|node| node.store().holds(now).next().is_none()), "after {owner}");
    }
}

/// The lock was granted by the others meanwhile, so its owner knows of no claim that may be in flight.
#[test]
fn a_node_that_never_answered_a_claim_refuses_it_after_the_release() {
    let rig = Rig::founded(3);
    let client = rig.connected();
    release(&client, &granted(acquire(&client, &claim(7)))).unwrap();
    client.flush(WITHIN);
    rig.faults[2].fail_everything(Fault::Refused(ErrorKind::Timeout));
    let mine = claim(1);
    let lease = granted(acquire(&client, &mine));
    eventually(|| rig.faults[2].calls(Operation::Acquire) == 2);
    rig.faults[2].heal_everything();
    assert_eq!(release(&client, &lease).unwrap(), Released::Released);
    drop(client);
    let late = rig.client_of(&[0, 1, 2]);
    late.pass(lock_redlock::quorum::Purpose::Watch, WITHIN).unwrap();
    for node in [0, 1] {
        rig.faults[node].fail_everything(Fault::Refused(ErrorKind::Unreachable));
    }
    eventually(|| acquire(&late, &mine).unwrap_err().to_string().contains("given up"));
}

/// A minority had drawn higher tokens for other locks. It backs the lease all the same, so any minority may fail.
#[test]
fn nodes_that_drew_higher_tokens_renew_the_lease_too() {
    for away in 0..5 {
        let rig = Rig::in_use(5);
        let client = rig.connected();
        for node in [3, 4] {
            let others = rig.connected();
            rig.only(node);
            assert!(acquire(&others, &wide(9, 64)).is_err());
            others.flush(WITHIN);
            rig.faults.iter().for_each(Faults::heal_everything);
        }
        // The others agree before these answer.
        rig.faults[3..].iter().for_each(|faults| faults.hold(Operation::Acquire));
        let lease = granted(acquire(&client, &claim(1)));
        rig.faults[3..].iter().for_each(|faults| faults.let_go(Operation::Acquire));
        client.flush(WITHIN);
        let higher = rig.nodes.iter().filter(|node| node.store().counter() > lease.tokens.high().get()).count();
        assert_eq!(higher, 2, "they drew for somebody else");
        for node in [away, (away + 1) % 5] {
            rig.faults[node].fail_everything(Fault::Refused(ErrorKind::Unreachable));
        }
        let renewed = client.renew(from_ref(&lease), WITHIN).unwrap();
        assert!(matches!(renewed[..], [Renewed::Renewed { .. }]), "without {away} and the next: {renewed:?}");
    }
}

/// A node that loads its data, or has no room, answers with an error.
#[test]
fn a_release_that_a_node_refused_is_said_again() {
    let rig = Rig::founded(3);
    let client = rig.connected();
    let lease = granted(acquire(&client, &claim(1)));
    client.flush(WITHIN);
    rig.faults[0].fail_next(Operation::Release, Fault::Refused(ErrorKind::Unavailable));
    release(&client, &lease).unwrap();
    client.flush(WITHIN);
    rig.clock.advance(Duration::from_secs(1));
    client.pass(lock_redlock::quorum::Purpose::Watch, WITHIN).unwrap();
    let now = lock_host::Clock::now(&rig.clock);
    eventually(|| rig.nodes.iter().all(|node| node.store().holds(now).next().is_none()));
}

#[test]
fn busy_is_not_said_where_most_nodes_are_away() {
    let rig = Rig::in_use(3);
    let client = rig.connected();
    granted(acquire(&rig.connected(), &claim(1)));
    rig.only(0);
    let error = acquire(&client, &claim(2)).unwrap_err();
    assert_eq!((error.kind(), error.effect()), (ErrorKind::Unreachable, Effect::None));
    assert_eq!(rig.asked(&Asked::Acquire(claim(2).owner)), [0, 1, 2], "it was more than announced");
    client.flush(WITHIN);
    assert!(rig.asked(&Asked::Release(claim(2).owner)).is_empty(), "nothing was granted, and nothing may come late");
}

/// Two of three nodes hold it, so it is busy whatever the third one answers.
#[test]
fn busy_is_said_with_the_lease_that_has_to_end_first() {
    let rig = Rig::in_use(3);
    granted(acquire(&rig.connected(), &claim(1)));
    let client = rig.connected();
    rig.faults[2].fail_everything(Fault::Refused(ErrorKind::Unreachable));
    let Answer::Busy { remaining, .. } = acquire(&client, &claim(2)).unwrap() else { panic!("it is held") };
    assert_eq!(remaining, Some(Ttl::DEFAULT.get()));
}

#[test]
fn a_release_says_whether_the_lease_was_held_by_a_majority() {
    for (forget, expected) in [(1, Released::Released), (2, Released::NotHeld), (3, Released::NotHeld)] {
        let rig = Rig::in_use(3);
        let client = rig.connected();
        let lease = granted(acquire(&client, &claim(1)));
        client.flush(WITHIN);
        rig.nodes[..forget].iter().for_each(lock_memory::node::MemoryNode::forget);
        // Those that forgot are the first to answer.
        rig.faults[2].hold(Operation::Release);
        assert_eq!(release(&client, &lease).unwrap(), expected, "{forget} of 3 forgot");
        rig.faults[2].let_go(Operation::Release);
    }
    let rig = Rig::in_use(3);
    let client = rig.connected();
    let lease = granted(acquire(&client, &claim(1)));
    for node in [0, 1] {
        rig.faults[node].fail_everything(Fault::Refused(ErrorKind::Unreachable));
    }
    let error = release(&client, &lease).unwrap_err();
    assert_eq!((error.kind(), error.effect()), (ErrorKind::Unreachable, Effect::Unknown), "most cannot be told");
}
