//! What operators see, and can do, while not every node answers.

use std::slice::from_ref;
use std::sync::Arc;
use std::time::{Duration, Instant};

use lock_core::inspect::{Query, Revoked};
use lock_core::{AsyncBackend, BlockingBackend, Claim, Effect, ErrorKind, LockName, Operation, Renewed, Ttl};
use lock_memory::faults::{Fault, Faulty};
use lock_redlock::nonblocking;
use lock_redlock::quorum::Purpose;

use crate::inspecting::{AWAY, FULL, apart, ask, by, claim_at, end_at, named, renewed, revoke};
use crate::support::{MAX_TTL, Rig, WITHIN, acquire, claim, eventually, granted, release};

fn name() -> LockName {
    claim(1).name
}

/// A lease that two nodes granted. The claim is still in flight to the second one.
fn at_first_and_last(rig: &Rig) -> (lock_redlock::blocking::Redlock<crate::support::Node>, lock_core::Lease) {
    let holder = rig.connected();
    rig.faults[1].fail_next(Operation::Acquire, FULL);
    let lease = granted(acquire(&holder, &claim(1)));
    holder.flush(WITHIN);
    (holder, lease)
}

#[test]
fn a_release_that_a_node_is_sent_again_is_not_its_answer_to_an_inspection() {
    let rig = Rig::in_use(3);
    let client = rig.connected();
    let other = granted(acquire(&client, &named("b", 2)));
    granted(acquire(&client, &claim(1)));
    client.flush(WITHIN);
    rig.faults[1].fail_next(Operation::Release, FULL);
    release(&client, &other).unwrap();
    client.flush(WITHIN);
    rig.clock.advance(Duration::from_secs(2));
    rig.faults[2].hold(Operation::Inspect);
    let released = rig.faults[1].calls(Operation::Release);
    let entry = std::thread::scope(|scope| {
        let entry = scope.spawn(|| client.holder(&name(), WITHIN).unwrap());
        eventually(|| rig.faults[1].calls(Operation::Release) > released);
        // Its outcome is there by the time of the next answer.
        std::thread::sleep(Duration::from_millis(100));
        rig.faults[2].let_go(Operation::Inspect);
        entry.join().unwrap().unwrap()
    });
    assert_eq!(entry.votes.unwrap().to_string(), "3 of 3: node-0, node-1, node-2");
}

/// The second node gets the claim after both, and would make a majority with the last one again.
#[test]
fn a_revocation_that_reached_a_minority_is_finished_by_repeating_it_although_nobody_shows_the_lease() {
    for away in [2, 0] {
        let rig = Rig::in_use(3);
        let (holder, lease) = at_first_and_last(&rig);
        end_at(&rig, 0, &lease);
        let operator = apart(&rig);
        operator.faults[away].fail_everything(AWAY);
        revoke(&operator.connected(), &lease).unwrap();
        let late = ask(&rig, 1, &claim_at(&rig, 1, claim(1), lease.tokens.high()));
        assert_eq!(late.unwrap_err().kind(), ErrorKind::Protocol, "without node {away}");
        assert_eq!(renewed(&holder, &lease), Renewed::Revoked { by: by() });
        assert_eq!(revoke(&operator.connected(), &lease).unwrap(), Revoked::NotHeld, "for sure");
    }
}

/// The first node comes to have the lock when it has been listed beyond it, and is then the first that has it.
#[test]
fn a_lock_that_moves_to_a_node_that_was_listed_is_listed_by_the_others() {
    let rig = Rig::in_use(3);
    let client = rig.connected();
    for (owner, lock, missing) in [(1, "a", 0), (2, "b", 0), (3, "c", 1), (4, "d", 1)] {
        rig.faults[missing].fail_next(Operation::Acquire, FULL);
        granted(acquire(&client, &named(lock, owner)));
        client.flush(WITHIN);
    }
    let query = Query::all().limit(1);
    let first = client.list(&query, WITHIN).unwrap();
    let late = Claim { floor: None, ..named("b", 2) };
    ask(&rig, 0, &claim_at(&rig, 0, late, lock_core::FencingToken::new(1).unwrap())).unwrap();
    let second = client.list(&query.after(first.next.unwrap()), WITHIN).unwrap();
    let names: Vec<_> = second.entries.iter().map(|entry| entry.name.as_str()).collect();
    assert!(names.contains(&"b"), "{names:?}");
}

#[test]
fn a_client_that_only_inspects_excludes_nodes_of_another_deployment() {
    let (ours, theirs) = (Rig::in_use(3), Rig::in_use(5));
    let rig =
        Rig { nodes: vec![ours.nodes[0].clone(), ours.nodes[1].clone(), theirs.nodes[2].clone()], ..apart(&ours) };
    let client = rig.client();
    assert_eq!(client.holder(&name(), WITHIN).unwrap(), None, "a majority is ours");
    rig.faults[1].fail_everything(AWAY);
    let error = client.holder(&name(), WITHIN).unwrap_err().to_string();
    assert!(error.contains("1 of 3 nodes answered") && error.contains("deployment of other nodes"), "{error}");
    assert!(error.contains("not answering: node-1 ") || error.contains("not answering: node-1)"), "{error}");
}

#[test]
fn a_client_that_goes_on_inspecting_notices_that_a_node_has_another_deployment() {
    let (rig, theirs) = (Rig::in_use(3), Rig::in_use(5));
    let client = rig.client();
    client.holder(&name(), WITHIN).unwrap();
    rig.nodes[2].put_back(theirs.nodes[2].store());
    rig.clock.advance(Duration::from_secs(20));
    client.holder(&name(), WITHIN).unwrap();
    client.flush(WITHIN);
    rig.faults[1].fail_everything(AWAY);
    let error = client.holder(&name(), WITHIN).unwrap_err().to_string();
    assert!(error.contains("deployment of other nodes"), "{error}");
}

#[test]
fn a_node_that_did_not_answer_before_is_told_of_a_revocation_all_the_same() {
    let rig = Rig::in_use(3);
    let holder = rig.connected();
    let lease = granted(acquire(&holder, &claim(1)));
    holder.flush(WITHIN);
    let operator = apart(&rig);
    let client = operator.connected();
    operator.faults[2].fail_next(Operation::Inspect, AWAY);
    client.holder(&name(), WITHIN).unwrap();
    client.flush(WITHIN);
    assert_eq!(revoke(&client, &lease).unwrap(), Revoked::Revoked);
    let now = rig.nodes[2].clock();
    eventually(|| rig.nodes[2].store().holder(&lease.name, now).is_none());
}

#[test]
fn an_inspection_without_an_answer_has_no_effect_and_names_those_that_were_asked() {
    let rig = Rig::in_use(3);
    let client = rig.connected();
    let lease = granted(acquire(&client, &claim(1)));
    client.flush(WITHIN);
    let operator = apart(&rig);
    let client = operator.connected();
    operator.faults[1].fail_next(Operation::Inspect, Fault::LostReply);
    operator.faults[2].fail_next(Operation::Inspect, Fault::LostReply);
    let error = revoke(&client, &lease).unwrap_err();
    assert_eq!((error.kind(), error.effect()), (ErrorKind::Unreachable, Effect::None), "{error}");

    let client = apart(&rig);
    let looker = client.connected();
    granted(acquire(&rig.connected(), &named("b", 2)));
    client.faults[2].fail_everything(AWAY);
    let query = Query::all().limit(1);
    let next = looker.list(&query, WITHIN).unwrap().next.unwrap();
    client.faults[1].fail_everything(AWAY);
    let error = looker.list(&query.after(next), WITHIN).unwrap_err().to_string();
    assert!(error.contains("not answering: node-1 ") || error.contains("not answering: node-1)"), "{error}");
}

/// The nodes hang when they are asked who revoked the lease that is gone.
#[tokio::test]
async fn a_healthy_renewal_is_answered_in_time_although_nobody_knows_who_revoked_another_lease() {
    let rig = Rig::in_use(3);
    let nodes = rig.nodes.iter().zip(&rig.faults).map(|(node, faults)| Faulty::new(node.clone(), faults)).collect();
    let max_ttl = Ttl::new(MAX_TTL).unwrap();
    let client = nonblocking::Redlock::on_clock(nodes, max_ttl, Arc::new(rig.clock.clone())).unwrap();
    client.pass(Purpose::Watch, WITHIN).await.unwrap();
    let mut leases = Vec::new();
    for (owner, lock) in [(1, "a"), (2, "b")] {
        leases.push(granted(client.acquire(&named(lock, owner), WITHIN).await));
    }
    client.flush(WITHIN).await;
    revoke(&apart(&rig).connected(), &leases[0]).unwrap();
    rig.faults.iter().for_each(|faults| faults.hold(Operation::Inspect));
    let (begun, within) = (Instant::now(), Duration::from_secs(8));
    let answers = client.renew(&leases, within).await.unwrap();
    assert!(begun.elapsed() < within, "{:?}", begun.elapsed());
    assert_eq!(answers[0], Renewed::NotHeld);
    assert!(matches!(answers[1], Renewed::Renewed { .. }), "{answers:?}");
    assert!(matches!(client.renew(from_ref(&leases[1]), WITHIN).await.unwrap()[..], [Renewed::Renewed { .. }]));
    rig.faults.iter().for_each(|faults| faults.let_go(Operation::Inspect));
}
