//! Whether a node votes: epochs, marks, notes, installs and moves.

use lock_core::node::{Ask, NodeTime, Standing};

use super::*;

/// Neither request may have changed anything.
fn assert_abstains(node: &mut Node, clock: Moment) {
    let before = node.view(clock, &Ask::Look);
    assert_eq!(node.ask(clock, &acquire(claim(2), 500)), Told::Abstains);
    assert_eq!(node.ask(clock, &fence([lease(1, 900, 900)])), Told::Abstains);
    assert_eq!(node.view(clock, &Ask::Look), before);
}

#[test]
fn a_node_that_was_never_installed_has_forgotten() {
    let mut node = Node::empty();
    let view = node.view(at(7), &Ask::Look);
    let expected = View {
        run: RunId("first".into()),
        standing: Standing::Forgetful,
        counter: 0,
        longest: Duration::ZERO,
        membership: None,
        clock: NodeTime(7_000_000),
        evicts: None,
    };
    assert_eq!(view, expected);
    assert_abstains(&mut node, at(7));
}

#[test]
fn a_mark_makes_a_forgetful_node_abstain_since_then() {
    let mut node = Node::empty();
    let abstaining = |since| Standing::Abstaining { epoch: EPOCH, since: seconds(since) };
    assert_eq!(node.view(at(1), &Ask::Mark(EPOCH)).standing, abstaining(0));
    assert_abstains(&mut node, at(5));
    assert_eq!(node.view(at(9), &Ask::Mark(LATER_EPOCH)).standing, abstaining(8), "the first mark stays");
    assert_eq!(node.view(at(11), &Ask::Mark(EPOCH)).standing, abstaining(10), "and so does its time");
}

#[test]
fn a_mark_does_nothing_to_a_node_that_votes() {
    let mut node = Node::voting();
    assert_eq!(node.view(at(1), &Ask::Mark(LATER_EPOCH)).standing, Standing::Voting(EPOCH));
    assert_eq!(node.grant(at(1), claim(1), 1), 1);
}

#[test]
fn an_install_begins_the_epoch_that_was_marked_and_no_other() {
    let mut node = Node::empty();
    assert_eq!(node.view(at(1), &install(EPOCH, 40)).standing, Standing::Forgetful, "it was not marked");
    node.view(at(1), &Ask::Mark(EPOCH));
    let refused = node.view(at(2), &install(LATER_EPOCH, 40));
    assert_eq!(refused.standing, Standing::Abstaining { epoch: EPOCH, since: seconds(1) });
    assert_eq!((refused.counter, refused.membership), (0, None));
    let voting = node.view(at(2), &install(EPOCH, 40));
    assert_eq!((voting.standing, voting.membership), (Standing::Voting(EPOCH), Some(membership())));
    let late = node.view(at(3), &install(EPOCH, 9_000_000));
    assert_eq!(late.counter, voting.counter, "one that comes a second time changes nothing");
}

#[test]
fn an_install_raises_the_counter_to_what_is_given_and_to_the_nodes_clock() {
    for (stored, given, clock, expected) in [
        (7, 3, 0, 7),
        (7, 30, 0, 30),
        (7, 30, 2, 2_000_000),
        (7, 3_000_000, 2, 3_000_000),
        (5_000_000, 30, 2, 5_000_000),
    ] {
        let mut node = Node::voting();
        node.fence(at(0), lease(1, stored, stored));
        node.restart();
        node.view(at(0), &Ask::Mark(LATER_EPOCH));
        let view = node.view(at(clock), &install(LATER_EPOCH, given));
        assert_eq!(view.counter, expected, "{stored} {given} {clock}");
    }
}

#[test]
fn an_install_raises_the_longest_ttl_to_what_is_given() {
    for (given, expected) in [(20, 30), (40, 40)] {
        let mut node = Node::voting();
        node.grant(at(0), claim(1), 1);
        node.restart();
        node.view(at(0), &Ask::Mark(LATER_EPOCH));
        let membership = Arc::new(membership());
        let ask = Ask::Install { epoch: LATER_EPOCH, counter: 0, longest: seconds(given), membership };
        assert_eq!(node.view(at(0), &ask).longest, seconds(expected));
    }
}

#[test]
fn a_node_votes_in_its_epoch_only() {
    let mut node = Node::voting();
    node.restart();
    node.view(at(0), &Ask::Mark(LATER_EPOCH));
    node.view(at(0), &install(LATER_EPOCH, 0));
    assert_abstains(&mut node, at(0));
}

#[test]
fn another_run_has_forgotten_whatever_data_came_with_it() {
    let mut node = Node::voting();
    node.grant(at(1), claim(1), 10);
    node.restart();
    let view = node.view(at(1), &Ask::Look);
    assert_eq!((view.standing, view.counter, view.longest), (Standing::Forgetful, 10, TTL));
    assert_eq!(view.membership, Some(membership()));
    assert_abstains(&mut node, at(1));
    assert!(node.store.holder(&name("invoice:42"), at(1)).is_some());
}

#[test]
fn what_another_run_was_marked_with_is_not_installed() {
    let mut node = Node::empty();
    node.view(at(1), &Ask::Mark(EPOCH));
    node.restart();
    assert_eq!(node.view(at(2), &install(EPOCH, 0)).standing, Standing::Forgetful);
    let marked = node.view(at(2), &Ask::Mark(LATER_EPOCH)).standing;
    assert_eq!(marked, Standing::Abstaining { epoch: LATER_EPOCH, since: Duration::ZERO });
}

#[test]
fn a_mark_leaves_counter_and_longest_as_they_are() {
    let mut node = Node::voting();
    node.grant(at(1), claim(1), 10);
    node.restart();
    let view = node.view(at(1), &Ask::Mark(LATER_EPOCH));
    assert_eq!((view.counter, view.longest, view.membership), (10, TTL, Some(membership())));
}

#[test]
fn a_release_works_on_a_node_that_abstains() {
    let mut node = Node::voting();
    node.grant(at(1), claim(1), 1);
    node.restart();
    assert_eq!(node.release(at(2), parting(1)), Released::Released, "it has forgotten");
    node.view(at(2), &Ask::Mark(EPOCH));
    assert_eq!(node.release(at(2), unsure_parting(2)), Released::NotHeld);
    node.view(at(2), &install(EPOCH, 0));
    assert!(node.try_ask(at(2), &acquire(claim(2), 1)).is_err(), "the tombstone is there");
    let mut node = Node::empty();
    assert_eq!(node.release(at(2), unsure_parting(1)), Released::NotHeld);
    node.view(at(2), &Ask::Mark(EPOCH));
    node.view(at(2), &install(EPOCH, 0));
    assert!(node.try_ask(at(2), &acquire(claim(1), 1)).is_err(), "so it is on one that was never installed");
}

#[test]
fn a_move_makes_a_voting_node_abstain_in_another_deployment() {
    let mut node = Node::voting();
    node.grant(at(1), claim(1), 10);
    let other = Membership { members: vec!["one".into()], max_ttl: seconds(60) };
    let view = node.view(at(2), &Ask::Move { epoch: LATER_EPOCH, membership: Arc::new(other.clone()) });
    assert_eq!(view.standing, Standing::Abstaining { epoch: LATER_EPOCH, since: Duration::ZERO });
    assert_eq!((view.membership, view.counter, view.longest), (Some(other), 10, TTL));
    assert_abstains(&mut node, at(2));
    assert_eq!(node.view(at(3), &install(LATER_EPOCH, 0)).standing, Standing::Voting(LATER_EPOCH));
}

#[test]
fn a_move_that_comes_again_changes_nothing() {
    let mut node = Node::voting();
    let move_to = |epoch, max_ttl| {
        let membership = Arc::new(Membership { members: vec!["one".into()], max_ttl: seconds(max_ttl) });
        Ask::Move { epoch, membership }
    };
    let before = node.view(at(1), &Ask::Look);
    assert_eq!(node.view(at(1), &move_to(EPOCH, 60)), before, "it votes in that epoch");
    let moved = node.view(at(2), &move_to(LATER_EPOCH, 60));
    let again = node.view(at(4), &move_to(LATER_EPOCH, 90));
    assert_eq!(again.standing, Standing::Abstaining { epoch: LATER_EPOCH, since: seconds(2) });
    assert_eq!(again.membership, moved.membership);
    node.view(at(4), &install(LATER_EPOCH, 0));
    assert_eq!(node.view(at(5), &move_to(LATER_EPOCH, 60)).standing, Standing::Voting(LATER_EPOCH));
    node.restart();
    let restarted = node.view(at(6), &move_to(LATER_EPOCH, 60)).standing;
    assert!(matches!(restarted, Standing::Abstaining { .. }), "the same epoch of another run");
}

#[test]
fn an_epoch_is_noted_once_for_as_long_as_was_said() {
    let mut node = Node::empty();
    let mut note = |clock, epoch, keep| {
        let told = node.ask(clock, &Ask::Note { epoch, keep: seconds(keep) });
        let Told::Noted(since) = told else { panic!("not noted: {told:?}") };
        since
    };
    assert_eq!(note(at(1), EPOCH, 10), Duration::ZERO);
    assert_eq!(note(at(4), LATER_EPOCH, 10), Duration::ZERO, "each epoch for itself");
    assert_eq!(note(at(6), EPOCH, 100), seconds(5));
    assert_eq!(note(at(11), EPOCH, 10), Duration::ZERO, "the first time was forgotten as it was told to be");
    assert_eq!(note(at(12), LATER_EPOCH, 10), seconds(8));
}

#[test]
fn old_data_that_is_put_back_under_the_same_run_is_not_noticed() {
    let mut node = Node::voting();
    let before = node.store.clone();
    node.grant(at(1), claim(1), 10);
    node.store = before;
    assert_eq!(node.grant(at(1), claim(2), 1), 1, "which is why servers have to start as another run");
}
