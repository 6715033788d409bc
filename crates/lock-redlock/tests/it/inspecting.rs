//! What operators see of a quorum, and how they end leases.

use std::collections::BTreeSet;
use std::time::Duration;

use lock_core::inspect::{Cursor, Query, Revoked};
use lock_core::node::{Ask, BlockingQuorumNode, Inspection, NodeState, Revocation, Told};
use lock_core::{
    BackendError, BlockingBackend, Claim, Effect, ErrorKind, FencingToken, Holder, Lease, LockName, Note, Operation,
    Renewed,
};
use lock_memory::faults::{Fault, Faults};
use lock_redlock::blocking::Redlock;

use crate::support::{Node, Rig, WITHIN, acquire, claim, eventually, granted};

pub(crate) const AWAY: Fault = Fault::Refused(ErrorKind::Unreachable);
/// The node answers, but does not grant.
pub(crate) const FULL: Fault = Fault::Refused(ErrorKind::Unavailable);

/// What a node answers.
pub(crate) fn ask(rig: &Rig, node: usize, ask: &Ask) -> Result<Told, BackendError> {
    BlockingQuorumNode::ask(&rig.nodes[node], ask, WITHIN)
}

/// A claim for a node by itself.
pub(crate) fn claim_at(rig: &Rig, node: usize, claim: Claim, wish: FencingToken) -> Ask {
    let Ok(Told::View(view)) = ask(rig, node, &Ask::Look) else { panic!("it answers") };
    let NodeState::Voting(epoch) = view.state else { panic!("it votes: {view:?}") };
    Ask::Acquire { claim: claim.into(), wish, epoch }
}

pub(crate) fn named(name: &str, owner: u8) -> Claim {
    Claim { name: name.parse().unwrap(), ..claim(owner) }
}

/// A client whose connections break apart from those of others.
pub(crate) fn apart(rig: &Rig) -> Rig {
    let faults = rig.faults.iter().map(|_| Faults::new()).collect();
    Rig { nodes: rig.nodes.clone(), faults, clock: rig.clock.clone() }
}

pub(crate) fn revoke(client: &Redlock<Node>, lease: &Lease) -> Result<Revoked, BackendError> {
    client.revoke(&lease.name, lease.tokens.low(), &by(), WITHIN)
}

pub(crate) fn by() -> Note {
    Note::from_wire("7@ops stuck")
}

pub(crate) fn renewed(client: &Redlock<Node>, lease: &Lease) -> Renewed {
    client.renew(std::slice::from_ref(lease), WITHIN).unwrap().remove(0)
}

/// All pages of a listing.
pub(crate) fn listed(client: &Redlock<Node>, limit: u32) -> Vec<String> {
    let (mut query, mut names) = (Query::all().limit(limit), Vec::new());
    for _ in 0..100 {
        let page = client.list(&query, WITHIN).unwrap();
        names.extend(page.entries.into_iter().map(|entry| entry.name.to_string()));
        match page.next {
            Some(next) => query = query.after(next),
            None => return names,
        }
    }
    panic!("a listing without an end");
}

#[test]
fn a_lease_is_shown_for_as_long_as_a_majority_has_it_with_their_votes() {
    let rig = Rig::in_use(3);
    let client = rig.connected();
    let name: LockName = "a".parse().unwrap();
    rig.faults[2].fail_next(Operation::Acquire, FULL);
    let lease = granted(acquire(&client, &claim(1)));
    eventually(|| rig.faults[1].ran(Operation::Acquire) == 1);
    rig.clock.advance(Duration::from_secs(10));
    rig.faults[1].fail_next(Operation::Fence, AWAY);
    rig.faults[2].fail_next(Operation::Fence, AWAY);
    _ = client.renew(std::slice::from_ref(&lease), WITHIN);
    let watcher = apart(&rig);
    let entry = watcher.connected().holder(&name, WITHIN).unwrap().expect("two of three have it");
    let votes = entry.votes.unwrap();
    assert_eq!(votes.to_string(), "2 of 3: node-0, node-1 (node-2: not held)");
    assert_eq!(entry.remaining, Some(lease.terms.ttl.get() - Duration::from_secs(10)), "what the second one says");
    assert!(matches!(entry.holder, Holder::Leasehold { tokens, .. } if tokens == lease.tokens));
    let without_last = apart(&rig);
    without_last.faults[2].fail_everything(AWAY);
    let entry = without_last.connected().holder(&name, WITHIN).unwrap().expect("two of the two that answer have it");
    assert_eq!(entry.remaining, Some(lease.terms.ttl.get()), "the silent one may keep it for as long");
    watcher.faults[1].fail_everything(AWAY);
    let looker = watcher.connected();
    let entry = looker.holder(&name, WITHIN).unwrap().expect("the silent one may have it");
    assert_eq!(
        entry.votes.unwrap().to_string(),
        "possibly held, 1 of 3: node-0 (node-2: not held, node-1: unreachable)"
    );
    assert_eq!(entry.remaining, Some(lease.terms.ttl.get()), "the silent one may keep it for as long");
    watcher.faults[0].fail_everything(AWAY);
    let error = looker.holder(&name, WITHIN).unwrap_err();
    assert!(["node-0", "node-1"].iter().all(|node| error.to_string().contains(node)), "{error}");
}

/// The lease is valid until it ends, although only one node has it by now.
#[test]
fn a_node_that_abstains_may_have_forgotten_a_lease() {
    let rig = Rig::in_use(3);
    let client = rig.connected();
    rig.faults[2].fail_next(Operation::Acquire, FULL);
    let lease = granted(acquire(&client, &claim(1)));
    client.flush(WITHIN);
    rig.nodes[1].forget();
    let watcher = apart(&rig).client();
    let entry = watcher.holder(&lease.name, WITHIN).unwrap().expect("the node that abstains may have had it");
    assert_eq!(
        entry.votes.unwrap().to_string(),
        "possibly held, 1 of 3: node-0 (node-2: not held, node-1: may have forgotten it)"
    );
    assert_eq!(entry.remaining, Some(lease.terms.ttl.get()), "it may have been the one that keeps it longest");
    rig.clock.advance(lease.terms.ttl.get());
    assert_eq!(watcher.holder(&lease.name, WITHIN).unwrap(), None);
}

#[test]
fn grants_of_two_owners_with_one_token_are_no_majority() {
    let rig = Rig::in_use(3);
    let client = rig.connected();
    let name: LockName = "a".parse().unwrap();
    let wish = FencingToken::new(rig.nodes[0].clock().as_nanos() / 1000 + 500_000).unwrap();
    for (owner, node) in [(1, 0), (2, 1)] {
        // Both wish for the same token, and each gets it from another node.
        let told = ask(&rig, node, &claim_at(&rig, node, claim(owner), wish)).unwrap();
        assert!(matches!(told, Told::Granted { token, .. } if token == wish), "{told:?}");
    }
    assert_eq!(client.holder(&name, WITHIN).unwrap(), None);
}

#[test]
fn a_listing_has_each_lock_that_may_be_held_whatever_the_nodes_have_and_in_whatever_pages() {
    for away in [None, Some(0), Some(1), Some(2)] {
        let rig = Rig::in_use(3);
        let client = rig.connected();
        let mut held = BTreeSet::new();
        for number in 0..12_u8 {
            // Each is at another majority.
            let missing = usize::from(number % 4);
            let name = format!("{number:02}");
            if missing < 3 {
                rig.faults[missing].fail_next(Operation::Acquire, FULL);
            }
            granted(acquire(&client, &named(&name, number + 1)));
            client.flush(WITHIN);
            held.insert(name);
        }
        let watcher = apart(&rig);
        if let Some(away) = away {
            watcher.faults[away].fail_everything(AWAY);
        }
        let looker = watcher.connected();
        for limit in [1, 2, 5, 100] {
            let names = listed(&looker, limit);
            assert_eq!(names.into_iter().collect::<BTreeSet<_>>(), held, "{away:?} by {limit}");
        }
    }
}

#[test]
fn a_listing_does_not_go_on_without_a_node_that_was_listed() {
    let rig = Rig::in_use(3);
    let client = rig.connected();
    ["a", "b", "c"].iter().zip(1..).for_each(|(name, owner)| _ = granted(acquire(&client, &named(name, owner))));
    let query = Query::all().limit(1);
    let next = client.list(&query, WITHIN).unwrap().next.unwrap();
    rig.faults[0].fail_everything(AWAY);
    let error = client.list(&query.clone().after(next), WITHIN).unwrap_err();
    assert!(error.to_string().contains("node-0") && error.to_string().contains("list again"), "{error}");
    let error = client.list(&query.after(Cursor("17".to_owned())), WITHIN).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unsupported, "{error}");
    assert_eq!(listed(&client, 1), ["a", "b", "c"], "a majority is left");
}

#[test]
fn a_revocation_needs_a_majority_and_can_be_repeated() {
    let rig = Rig::in_use(3);
    let holder = rig.connected();
    let lease = granted(acquire(&holder, &claim(1)));
    holder.flush(WITHIN);
    let operator = apart(&rig);
    let client = operator.connected();
    for node in 1..3 {
        // They show the lease, and cannot be reached for its end.
        operator.faults[node].fail_next(Operation::Inspect, Fault::LostReply);
    }
    let error = revoke(&client, &lease).unwrap_err();
    assert!(error.to_string().contains("node-1"), "the first look fails: {error}");
    assert_eq!(
        rig.nodes[0].store().holder(&lease.name, rig.nodes[0].clock()).map(|_| ()),
        Some(()),
        "nothing was changed"
    );

    let client = apart(&rig).connected();
    assert_eq!(revoke(&client, &lease).unwrap(), Revoked::Revoked);
    assert_eq!(revoke(&client, &lease).unwrap(), Revoked::NotHeld);
    assert_eq!(renewed(&holder, &lease), Renewed::Revoked { by: by() });
    assert_eq!(client.revoked_by(&lease.name, lease.tokens.high(), WITHIN).unwrap(), Some(by()));
    assert!(granted(acquire(&client, &claim(2))).tokens.low() > lease.tokens.high());
}

#[test]
fn a_revocation_that_reaches_a_minority_is_of_unknown_effect_until_it_is_repeated() {
    let rig = Rig::in_use(3);
    let holder = rig.connected();
    let lease = granted(acquire(&holder, &claim(1)));
    holder.flush(WITHIN);
    end_at(&rig, 0, &lease);
    assert_eq!(renewed(&holder, &lease), Renewed::Renewed { valid_for: lease.terms.ttl.get(), wanted: false });
    let client = apart(&rig).connected();
    assert_eq!(revoke(&client, &lease).unwrap(), Revoked::Revoked);
    assert_eq!(renewed(&holder, &lease), Renewed::Revoked { by: by() });
}

/// Ends the lease at one node, as a revocation does that does not reach the others.
pub(crate) fn end_at(rig: &Rig, node: usize, lease: &Lease) {
    let inspect = |inspection| ask(rig, node, &Ask::Inspect(inspection));
    let Ok(Told::Shown(shown)) = inspect(Inspection::Show([lease.name.clone()].into())) else {
        panic!("it shows its locks")
    };
    let owners = vec![shown[0].clone().unwrap().owner];
    let revocation =
        Revocation { name: lease.name.clone(), token: lease.tokens.low(), owners, by: by(), lasts: WITHIN };
    assert_eq!(inspect(Inspection::Revoke(revocation.into())).unwrap(), Told::Revoked(Revoked::Revoked));
}

/// The third node gets the claim after the revocation, and the operator cannot reach the second. If the third one granted it, the
/// holder would have a majority again.
#[test]
fn a_claim_that_is_late_does_not_undo_a_revocation() {
    let rig = Rig::in_use(3);
    let holder = rig.connected();
    rig.faults[2].fail_next(Operation::Acquire, FULL);
    let lease = granted(acquire(&holder, &claim(1)));
    holder.flush(WITHIN);
    let operator = apart(&rig);
    operator.faults[1].fail_everything(AWAY);
    let client = operator.connected();
    assert_eq!(revoke(&client, &lease).unwrap(), Revoked::Revoked);
    let error = ask(&rig, 2, &claim_at(&rig, 2, claim(1), lease.tokens.high())).unwrap_err();
    assert_eq!((error.kind(), error.effect()), (ErrorKind::Protocol, Effect::None), "{error}");
    assert_eq!(renewed(&holder, &lease), Renewed::Revoked { by: by() });
}
