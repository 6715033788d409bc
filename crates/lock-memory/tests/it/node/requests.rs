//! Grants, fences and releases at one node.

use lock_core::node::{Ask, NodeTime, Told};
use lock_core::{Effect, ErrorKind, Fenced, FencingToken, Holder, ReleaseRequest, Released, Terms, Ttl};

use super::*;

#[test]
fn a_grant_draws_above_the_counter_the_wish_and_the_floor() {
    struct Row(&'static str, u64, usize, u64, Option<u64>, u64);
    let rows = [
        Row("the counter and the width", 10, 1, 1, None, 11),
        Row("all tokens of the width", 10, 4, 1, None, 14),
        Row("the wish", 10, 1, 50, None, 50),
        Row("a wish that is too low for the width", 10, 4, 13, None, 14),
        Row("a wish that has just room for the width", 10, 4, 14, None, 14),
        Row("the floor and the width", 10, 4, 1, Some(40), 44),
        Row("the wish above the floor", 10, 4, 50, Some(40), 50),
        Row("a wish a second above the clock", 10, 1, 6_000_000, None, 6_000_000),
        Row("a wish more than that above the clock", 10, 1, 6_000_001, None, 6_000_000),
        Row("a counter ahead of the clock", 9_000_000, 2, 9_500_000, None, 9_000_002),
        Row("a floor ahead of the clock", 10, 2, 9_500_000, Some(9_000_000), 9_000_002),
        Row("a floor a day above the clock", 10, 2, 1, Some(86_405_000_000), 86_405_000_002),
        Row("a floor more than that above the clock", 10, 2, 1, Some(FencingToken::MAX.get()), 86_405_000_002),
    ];
    for Row(what, counter, width, wish, floor, expected) in rows {
        let mut node = Node::empty();
        node.view(at(0), &mark(EPOCH));
        node.view(at(0), &install(EPOCH, counter));
        let claim = Claim { floor: floor.map(token), ..wide(1, width) };
        let told = node.ask(at(5), &acquire(claim, wish));
        assert_eq!(told, Told::Granted { token: token(expected), clock: NodeTime(5_000_000) }, "{what}");
        assert_eq!(node.store.counter(), expected, "F becomes f: {what}");
        let hold = node.store.holder(&name("invoice:42"), at(5)).unwrap();
        assert_eq!(hold.tokens.high().get(), expected, "f is kept with the grant: {what}");
        assert_eq!(hold.tokens.low().get(), expected + 1 - width as u64, "{what}");
    }
}

#[test]
fn one_counter_serves_all_locks() {
    let mut node = Node::voting();
    assert_eq!(node.grant(at(1), claim(1), 1), 1);
    assert_eq!(node.grant(at(1), Claim { name: name("another"), ..claim(2) }, 1), 2);
    assert_eq!(node.store.holds(at(1)).map(|(name, _)| name.as_str()).collect::<Vec<_>>(), ["another", "invoice:42"]);
    assert_eq!(node.store.holds(at(31)).count(), 0);
}

#[test]
fn an_owner_that_holds_gets_its_stored_token_and_its_full_ttl() {
    let mut node = Node::voting();
    assert_eq!(node.grant(at(1), claim(1), 7), 7);
    assert_eq!(node.grant(at(21), Claim { floor: Some(token(90)), ..wide(1, 3) }, 100), 7);
    assert_eq!((node.store.counter(), node.grant(at(50), claim(1), 100)), (7, 7));
}

#[test]
fn a_claim_on_a_held_lock_names_the_holder_and_changes_nothing() {
    let mut node = Node::voting();
    node.grant(at(1), wide(1, 3), 1);
    let told = node.ask(at(11), &acquire(claim(2), 50));
    let holder = Holder::Leasehold { tokens: lease(1, 1, 3).tokens, note: claim(1).note };
    assert_eq!(told, Told::Held { holder, remaining: Some(seconds(20)) });
    assert_eq!(node.store.counter(), 3);
    assert_eq!(node.store.holder(&name("invoice:42"), at(11)).unwrap().until, at(31));
}

#[test]
fn a_lease_ends_by_the_nodes_clock_at_the_moment_it_ends() {
    let mut node = Node::voting();
    node.grant(at(1), claim(1), 1);
    assert!(matches!(node.ask(at(31) - TICK, &acquire(claim(2), 1)), Told::Held { .. }));
    assert_eq!(node.grant(at(31), claim(2), 1), 2);
}

#[test]
fn an_owner_that_was_given_up_is_refused_for_the_ttl_of_the_release() {
    let short = Ttl::MIN;
    for (ttl, life) in [(Ttl::new(TTL).unwrap(), TTL), (short, seconds(10))] {
        let mut node = Node::voting();
        assert_eq!(
            node.release(at(1), ReleaseRequest { terms: Terms::exclusive(ttl), ..unsure_release(1) }),
            Released::NotHeld
        );
        let error = node.try_ask(at(1) + life - TICK, &acquire(claim(1), 1)).unwrap_err();
        assert_eq!((error.kind(), error.effect()), (ErrorKind::Protocol, Effect::None));
        assert_eq!(node.store.counter(), 0);
        assert_eq!(node.clone().grant(at(1), claim(2), 1), 1, "others are not meant");
        assert_eq!(node.grant(at(1) + life, claim(1), 1), 1);
    }
}

#[test]
fn a_release_whose_claims_were_all_answered_leaves_no_tombstone() {
    let mut node = Node::voting();
    node.grant(at(1), claim(1), 1);
    assert!(format!("{:?}", node.store).contains("invoice:42"));
    assert_eq!(node.release(at(2), release_of(1)), Released::Released);
    assert!(!format!("{:?}", node.store).contains("invoice:42"), "nothing is kept of a lock that nobody uses");
    assert_eq!(node.grant(at(2), claim(1), 1), 2);
}

#[test]
fn a_release_of_unknown_certainty_ends_the_hold_and_leaves_a_tombstone() {
    let mut node = Node::voting();
    node.grant(at(1), claim(1), 1);
    assert_eq!(node.release(at(2), unsure_release(1)), Released::Released);
    assert!(node.store.holder(&name("invoice:42"), at(2)).is_none());
    assert!(node.try_ask(at(2), &acquire(claim(1), 1)).is_err());
}

#[test]
fn a_release_ends_only_the_owners_own_live_hold() {
    let mut node = Node::voting();
    node.grant(at(1), claim(1), 1);
    assert_eq!(node.release(at(2), release_of(2)), Released::NotHeld);
    assert!(node.store.holder(&name("invoice:42"), at(2)).is_some());
    assert_eq!(node.release(at(31), release_of(1)), Released::NotHeld);
}

#[test]
fn a_fence_is_acknowledged_up_to_the_leases_highest_token() {
    for (high, expected) in [(11, Fenced::Acknowledged), (10, Fenced::Acknowledged), (9, Fenced::Higher(token(10)))] {
        let mut node = Node::voting();
        node.grant(at(1), claim(1), 10);
        assert_eq!(node.fence(at(2), lease(1, 1, high)), expected, "{high}");
        assert_eq!(node.store.counter(), high.max(10), "{high}");
    }
}

#[test]
fn an_acknowledged_lease_is_stored_and_its_full_ttl_is_rearmed() {
    let mut node = Node::voting();
    node.grant(at(1), claim(1), 10);
    assert_eq!(node.fence(at(21), lease(1, 18, 20)), Fenced::Acknowledged);
    let hold = node.store.holder(&name("invoice:42"), at(50)).unwrap();
    assert_eq!((hold.tokens, hold.until), (lease(1, 18, 20).tokens, at(51)));
    assert_eq!(node.grant(at(50), claim(1), 1), 20);
    assert_eq!(node.fence(at(50), lease(1, 10, 10)), Fenced::Higher(token(20)), "the grant's own token has risen");
}

#[test]
fn a_refused_fence_leaves_the_grant_unchanged() {
    let mut node = Node::voting();
    node.grant(at(1), claim(1), 10);
    assert_eq!(node.fence(at(21), lease(1, 9, 9)), Fenced::Higher(token(10)));
    assert_eq!(node.fence(at(21), lease(2, 50, 50)), Fenced::NotHeld);
    let hold = node.store.holder(&name("invoice:42"), at(21)).unwrap();
    assert_eq!((hold.owner, hold.tokens, hold.until), (owner(1), lease(1, 10, 10).tokens, at(31)));
}

#[test]
fn a_fence_creates_nothing() {
    let mut node = Node::voting();
    assert_eq!(node.fence(at(1), lease(1, 10, 10)), Fenced::NotHeld);
    node.grant(at(1), claim(1), 20);
    assert_eq!(node.fence(at(31), lease(1, 20, 20)), Fenced::NotHeld, "it has ended");
    assert_eq!(node.store.holds(at(31)).count(), 0);
}

#[test]
fn the_counter_is_raised_to_the_highest_token_of_all_leases_whatever_the_answers() {
    let mut node = Node::voting();
    node.grant(at(1), claim(1), 10);
    let told = node.ask(at(2), &fence([lease(1, 10, 10), lease(2, 40, 70), lease(3, 30, 30)]));
    assert_eq!(told, Told::Fenced(vec![Fenced::Acknowledged, Fenced::NotHeld, Fenced::NotHeld]));
    assert_eq!(node.store.counter(), 70);
    node.fence(at(2), lease(1, 12, 12));
    assert_eq!((node.ask(at(2), &fence([])), node.store.counter()), (Told::Fenced(vec![]), 70), "it never falls");
}

#[test]
fn a_fence_succeeds_although_other_locks_raised_the_counter() {
    let mut node = Node::voting();
    node.grant(at(1), claim(1), 10);
    node.grant(at(1), Claim { name: name("another"), ..claim(2) }, 50);
    assert_eq!(node.fence(at(1), lease(1, 11, 11)), Fenced::Acknowledged);
    assert_eq!(node.store.counter(), 50);
}

#[test]
fn used_up_tokens_are_an_error_that_changes_nothing() {
    let mut node = Node::voting();
    node.fence(at(1), lease(9, FencingToken::MAX.get() - 1, FencingToken::MAX.get() - 1));
    let error = node.try_ask(at(1), &acquire(wide(1, 2), 1)).unwrap_err();
    assert_eq!((error.kind(), error.effect()), (ErrorKind::Protocol, Effect::None));
    assert_eq!((node.store.counter(), node.store.holds(at(1)).count()), (FencingToken::MAX.get() - 1, 0));
    assert_eq!(node.grant(at(1), claim(1), 1), FencingToken::MAX.get());
}

#[test]
fn a_node_knows_the_longest_ttl_that_was_granted_or_announced() {
    let mut node = Node::voting();
    let longest = |node: &mut Node| node.view(at(1), &Ask::Look).longest;
    assert_eq!(longest(&mut node), Duration::ZERO);
    node.grant(at(1), for_ttl(1, seconds(60)), 1);
    node.ask(at(1), &acquire(for_ttl(2, seconds(90)), 1));
    assert_eq!(longest(&mut node), seconds(60), "a claim that is put off is no grant");
    node.release(at(1), release_of(1));
    node.grant(at(1), for_ttl(2, seconds(20)), 10);
    assert_eq!(longest(&mut node), seconds(60), "it never falls");
    node.grant(at(1), for_ttl(2, seconds(70)), 1);
    assert_eq!(longest(&mut node), seconds(70), "an owner that asks again");
    let renewal =
        |byte, high, ttl| Lease { terms: Terms::exclusive(Ttl::new(seconds(ttl)).unwrap()), ..lease(byte, 1, high) };
    assert_eq!(node.fence(at(1), renewal(2, 10, 80)), Fenced::Acknowledged);
    assert_eq!(longest(&mut node), seconds(80), "a renewal");
    assert_eq!(node.fence(at(1), renewal(2, 9, 100)), Fenced::Higher(token(10)));
    assert_eq!(longest(&mut node), seconds(100), "it is not armed, but may be elsewhere");
    assert_eq!(node.fence(at(1), renewal(3, 1, 110)), Fenced::NotHeld);
    assert_eq!(longest(&mut node), seconds(110), "an announcement");
}
