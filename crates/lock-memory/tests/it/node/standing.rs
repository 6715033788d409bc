//! Whether a node votes: epochs, marks, records, installs and moves.

use lock_core::node::{Ask, NodeState, NodeTime};

use super::*;

/// Neither request may have changed anything.
fn assert_abstains(node: &mut Node, clock: Moment) {
    let before = node.view(clock, &Ask::Look);
    assert_eq!(node.ask(clock, &acquire(claim(2), 500)), Told::Abstains);
    assert_eq!(node.ask(clock, &fence([lease(1, 900, 900)])), Told::Abstains);
    assert_eq!(node.view(clock, &Ask::Look), before);
}

#[test]
fn a_node_that_was_never_installed_counts_as_forgetful() {
    let mut node = Node::empty();
    let view = node.view(at(7), &Ask::Look);
    let expected = View {
        run: RunId("first".into()),
        state: NodeState::Forgetful,
        counter: 0,
        longest: Duration::ZERO,
        membership: None,
        marked_for: None,
        predecessor: None,
        has_voted: false,
        moves: 0,
        clock: NodeTime(7_000_000),
        evicts: None,
    };
    assert_eq!(view, expected);
    assert_abstains(&mut node, at(7));
}

#[test]
fn a_marked_forgetful_node_abstains_from_then_on() {
    let mut node = Node::empty();
    let abstaining = |since| NodeState::Abstaining { epoch: EPOCH, since: seconds(since) };
    assert_eq!(node.view(at(1), &mark(EPOCH)).state, abstaining(0));
    assert_abstains(&mut node, at(5));
    assert_eq!(node.view(at(9), &mark(LATER_EPOCH)).state, abstaining(8), "the first mark stays");
    assert_eq!(node.view(at(11), &mark(EPOCH)).state, abstaining(10), "and so does its time");
}

#[test]
fn a_mark_does_nothing_to_a_node_that_votes() {
    let mut node = Node::voting();
    assert_eq!(node.view(at(1), &mark(LATER_EPOCH)).state, NodeState::Voting(EPOCH));
    assert_eq!(node.grant(at(1), claim(1), 1), 1);
}

#[test]
fn an_install_begins_only_the_epoch_that_was_marked() {
    let mut node = Node::empty();
    assert_eq!(node.view(at(1), &install(EPOCH, 40)).state, NodeState::Forgetful, "it was not marked");
    node.view(at(1), &mark(EPOCH));
    let refused = node.view(at(2), &install(LATER_EPOCH, 40));
    assert_eq!(refused.state, NodeState::Abstaining { epoch: EPOCH, since: seconds(1) });
    assert_eq!((refused.counter, refused.membership), (0, None));
    let voting = node.view(at(2), &install(EPOCH, 40));
    assert_eq!((voting.state, voting.membership), (NodeState::Voting(EPOCH), Some(membership())));
    let late = node.view(at(3), &install(EPOCH, 9_000_000));
    assert_eq!(late.counter, voting.counter, "one that comes a second time changes nothing");
}

#[test]
fn an_install_raises_the_counter_to_the_given_value_and_to_the_nodes_clock() {
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
        node.view(at(0), &mark(LATER_EPOCH));
        let view = node.view(at(clock), &install(LATER_EPOCH, given));
        assert_eq!(view.counter, expected, "{stored} {given} {clock}");
    }
}

#[test]
fn an_install_raises_the_longest_ttl_to_the_given_one() {
    for (given, expected) in [(20, 30), (40, 40)] {
        let mut node = Node::voting();
        node.grant(at(0), claim(1), 1);
        node.restart();
        node.view(at(0), &mark(LATER_EPOCH));
        let membership = Arc::new(membership());
        let ask = Ask::Install { moves: 0, epoch: LATER_EPOCH, counter: 0, longest: seconds(given), membership };
        assert_eq!(node.view(at(0), &ask).longest, seconds(expected));
    }
}

#[test]
fn a_node_votes_in_its_epoch_only() {
    let mut node = Node::voting();
    node.restart();
    node.view(at(0), &mark(LATER_EPOCH));
    node.view(at(0), &install(LATER_EPOCH, 0));
    assert_abstains(&mut node, at(0));
}

#[test]
fn another_run_counts_as_forgetful_whatever_data_it_has() {
    let mut node = Node::voting();
    node.grant(at(1), claim(1), 10);
    node.restart();
    let view = node.view(at(1), &Ask::Look);
    assert_eq!((view.state, view.counter, view.longest), (NodeState::Forgetful, 10, TTL));
    assert_eq!(view.membership, Some(membership()));
    assert_abstains(&mut node, at(1));
    assert!(node.store.holder(&name("invoice:42"), at(1)).is_some());
}

#[test]
fn an_epoch_that_another_run_was_marked_with_is_not_installed() {
    let mut node = Node::empty();
    node.view(at(1), &mark(EPOCH));
    node.restart();
    assert_eq!(node.view(at(2), &install(EPOCH, 0)).state, NodeState::Forgetful);
    let marked = node.view(at(2), &mark(LATER_EPOCH)).state;
    assert_eq!(marked, NodeState::Abstaining { epoch: LATER_EPOCH, since: Duration::ZERO });
}

#[test]
fn a_mark_changes_neither_the_counter_nor_the_longest_ttl() {
    let mut node = Node::voting();
    node.grant(at(1), claim(1), 10);
    node.restart();
    let view = node.view(at(1), &mark(LATER_EPOCH));
    assert_eq!((view.counter, view.longest, view.membership), (10, TTL, Some(membership())));
}

#[test]
fn a_release_works_on_a_node_that_abstains() {
    let mut node = Node::voting();
    node.grant(at(1), claim(1), 1);
    node.restart();
    assert_eq!(node.release(at(2), release_of(1)), Released::Released, "it has forgotten");
    node.view(at(2), &mark(EPOCH));
    assert_eq!(node.release(at(2), unsure_release(2)), Released::NotHeld);
    node.view(at(2), &install(EPOCH, 0));
    assert!(node.try_ask(at(2), &acquire(claim(2), 1)).is_err(), "the tombstone is there");
    let mut node = Node::empty();
    assert_eq!(node.release(at(2), unsure_release(1)), Released::NotHeld);
    node.view(at(2), &mark(EPOCH));
    node.view(at(2), &install(EPOCH, 0));
    assert!(node.try_ask(at(2), &acquire(claim(1), 1)).is_err(), "so it is on one that was never installed");
}

#[test]
fn a_move_makes_a_voting_node_abstain_in_another_deployment() {
    let mut node = Node::voting();
    node.grant(at(1), claim(1), 10);
    let other = Membership { members: vec!["one".into()], max_ttl: seconds(60) };
    let (membership, predecessor) = (Arc::new(other.clone()), Arc::new(membership()));
    let seen = Some(Arc::clone(&predecessor));
    let moving = Ask::Move { epoch: LATER_EPOCH, seen, membership, predecessor: Arc::clone(&predecessor), moves: 1 };
    let view = node.view(at(2), &moving);
    assert_eq!(view.state, NodeState::Abstaining { epoch: LATER_EPOCH, since: Duration::ZERO });
    assert_eq!((view.membership, view.counter, view.longest), (Some(other), 10, TTL));
    assert_eq!(view.predecessor.as_ref(), Some(&*predecessor));
    assert_abstains(&mut node, at(2));
    let voting = node.view(at(3), &install(LATER_EPOCH, 0));
    assert_eq!((voting.state, voting.predecessor), (NodeState::Voting(LATER_EPOCH), Some((*predecessor).clone())));
}

#[test]
fn a_node_that_abstains_names_the_deployment_that_marked_it() {
    let mut node = Node::empty();
    let other = Membership { members: vec!["one".into()], max_ttl: seconds(60) };
    let marked = node.view(at(1), &Ask::Mark { epoch: EPOCH, membership: Arc::new(other.clone()) });
    assert_eq!((marked.membership, marked.marked_for.as_ref()), (None, Some(&other)), "it belongs to nobody yet");
    assert_eq!(node.view(at(2), &mark(LATER_EPOCH)).marked_for.as_ref(), Some(&other), "the first mark stays");
    node.restart();
    assert_eq!(node.view(at(2), &Ask::Look).marked_for, None, "another run was not marked");
    assert_eq!(node.view(at(3), &mark(LATER_EPOCH)).marked_for, Some(membership()));
    assert_eq!(node.view(at(4), &install(LATER_EPOCH, 0)).marked_for, None);
}

#[test]
fn a_move_marks_a_node_that_knew_a_deployment_and_forgot() {
    let other = Membership { members: vec!["one".into()], max_ttl: seconds(60) };
    let moving_on = |epoch, from: &Membership, to: &Membership| {
        let (seen, membership) = (Some(Arc::new(from.clone())), Arc::new(to.clone()));
        Ask::Move { epoch, seen, membership, predecessor: Arc::new(from.clone()), moves: 1 }
    };
    let moving = |epoch, to: &Membership| moving_on(epoch, &membership(), to);
    let mut node = Node::empty();
    node.view(at(1), &mark(EPOCH));
    assert_eq!(node.view(at(1), &moving(LATER_EPOCH, &other)).marked_for, None, "it knew none");
    let mut node = Node::voting();
    assert_eq!(node.view(at(1), &moving(LATER_EPOCH, &other)).marked_for, None, "it remembers");
    assert_eq!(node.view(at(1), &moving(EPOCH, &other)).marked_for, None, "it remembers since it was moved");
    let mut node = Node::voting();
    node.restart();
    assert_eq!(node.view(at(1), &moving(EPOCH, &other)).marked_for.as_ref(), Some(&other));
    let moved_on = node.view(at(1), &moving_on(LATER_EPOCH, &other, &membership()));
    assert_eq!((moved_on.marked_for.as_ref(), moved_on.membership), (Some(&other), Some(membership())));
    assert_eq!(node.view(at(1), &install(LATER_EPOCH, 0)).marked_for, None);
    let mut node = Node::voting();
    node.restart();
    node.view(at(1), &mark(EPOCH));
    assert_eq!(node.view(at(1), &moving(LATER_EPOCH, &other)).marked_for, Some(membership()), "the mark stays");
}

#[test]
fn a_repeated_move_changes_nothing() {
    let mut node = Node::voting();
    let move_to = |epoch, max_ttl| {
        let membership = Arc::new(Membership { members: vec!["one".into()], max_ttl: seconds(max_ttl) });
        Ask::Move {
            epoch,
            seen: Some(self::membership().into()),
            membership: Arc::clone(&membership),
            predecessor: membership,
            moves: 1,
        }
    };
    let before = node.view(at(1), &Ask::Look);
    assert_eq!(node.view(at(1), &move_to(EPOCH, 60)), before, "it votes in that epoch");
    let moved = node.view(at(2), &move_to(LATER_EPOCH, 60));
    let again = node.view(at(4), &move_to(LATER_EPOCH, 90));
    assert_eq!(again.state, NodeState::Abstaining { epoch: LATER_EPOCH, since: seconds(2) });
    assert_eq!(again.membership, moved.membership);
    node.view(at(4), &install(LATER_EPOCH, 0));
    assert_eq!(node.view(at(5), &move_to(LATER_EPOCH, 60)).state, NodeState::Voting(LATER_EPOCH));
    node.restart();
    let restarted = node.view(at(6), &move_to(LATER_EPOCH, 60)).state;
    assert!(matches!(restarted, NodeState::Abstaining { .. }), "the same epoch of another run");
}

/// A move compares what was seen of the node: its deployment, or the one that marked it if it knows none.
#[test]
fn a_move_that_finds_another_deployment_changes_nothing() {
    let named = |name: &str, max_ttl| Membership { members: vec![name.into()], max_ttl };
    let (ours, longer) = (membership(), Membership { max_ttl: seconds(600), ..membership() });
    let to = |seen: Option<&Membership>| {
        let (membership, predecessor) = (named("two", seconds(60)).into(), membership().into());
        Ask::Move { epoch: LATER_EPOCH, seen: seen.cloned().map(Arc::new), membership, predecessor, moves: 1 }
    };
    type Make = fn() -> Node;
    let marked: Make = || {
        let mut node = Node::empty();
        node.view(at(1), &mark(EPOCH));
        node
    };
    let forgot: Make = || {
        let mut node = Node::voting();
        node.restart();
        node.view(
            at(1),
            &Ask::Mark { epoch: EPOCH, membership: Membership::new(vec!["two".into()], seconds(60)).into() },
        );
        node
    };
    for (make, seen, moves) in [
        (Node::voting as Make, Some(&ours), true),
        (Node::voting, Some(&longer), false),
        (Node::voting, Some(&named("other", ours.max_ttl)), false),
        (Node::voting, None, false),
        (Node::empty, None, true),
        (Node::empty, Some(&ours), false),
        (marked, Some(&ours), true),
        (marked, None, false),
        (forgot, Some(&ours), true),
        (forgot, Some(&named("two", seconds(60))), false),
    ] {
        let mut node = make();
        let before = node.view(at(2), &Ask::Look);
        let after = node.view(at(2), &to(seen));
        assert_eq!(after != before, moves, "{seen:?}: {before:?} became {after:?}");
    }
}

#[test]
fn the_last_epoch_that_began_at_a_member_is_stored_for_the_requested_time() {
    let mut node = Node::empty();
    let mut asked = |clock, member: &str, recording, keep| {
        let seen = Arc::new([Sighting { member: member.into(), recording }]);
        let told = node.ask(clock, &Ask::Record { seen, keep: seconds(keep) });
        let Told::Records(answers) = told else { panic!("not recorded: {told:?}") };
        let [answer] = answers[..] else { panic!("not one answer: {answers:?}") };
        answer.map(|recorded| (recorded.epoch, recorded.age.as_secs()))
    };
    let [begins, later] = [EPOCH, LATER_EPOCH].map(Recording::Begins);
    assert_eq!(asked(at(0), "one", Recording::Nothing, 10), None, "looking writes nothing");
    assert_eq!(asked(at(1), "one", begins, 10), Some((EPOCH, 0)));
    assert_eq!(asked(at(4), "two", begins, 100), Some((EPOCH, 0)), "each member for itself");
    assert_eq!(asked(at(6), "one", begins, 100), Some((EPOCH, 5)), "it is recorded once");
    assert_eq!(asked(at(7), "one", Recording::Nothing, 100), Some((EPOCH, 6)));
    assert_eq!(asked(at(11), "one", Recording::Nothing, 10), None, "it was forgotten as it was told to be");
    assert_eq!(asked(at(12), "two", later, 100), Some((LATER_EPOCH, 0)), "the last writer wins");
    assert_eq!(asked(at(14), "two", Recording::BeginsAnew(LATER_EPOCH), 100), Some((LATER_EPOCH, 0)));
    assert_eq!(asked(at(15), "two", later, 100), Some((LATER_EPOCH, 1)));
    // The clock is set back.
    assert_eq!(asked(at(3), "two", Recording::Nothing, 100), Some((LATER_EPOCH, 0)));
    assert_eq!(asked(at(4), "two", later, 100), Some((LATER_EPOCH, 0)));
    assert_eq!(asked(at(6), "two", later, 100), Some((LATER_EPOCH, 2)), "a time that had not come yet is replaced");
}

#[test]
fn a_clock_beyond_all_tokens_raises_no_counter() {
    let mut node = Node::empty();
    let beyond = at(FencingToken::MAX.get() / 1_000_000 + 2);
    node.view(beyond, &mark(EPOCH));
    assert_eq!(node.view(beyond, &install(EPOCH, 40)).counter, 40);
    assert_eq!(node.grant(beyond, claim(1), 50), 50, "its tokens are not used up");
}

#[test]
fn old_data_that_is_put_back_under_the_same_run_is_not_noticed() {
    let mut node = Node::voting();
    let before = node.store.clone();
    node.grant(at(1), claim(1), 10);
    node.store = before;
    assert_eq!(node.grant(at(1), claim(2), 1), 1, "which is why servers have to start as another run");
}

/// The deployment is the one that was seen, because it was moved away and back meanwhile.
#[test]
fn a_move_that_a_later_one_overtook_changes_nothing() {
    let to = |moves| {
        let (membership, predecessor) = (Arc::new(membership()), Arc::new(membership()));
        Ask::Move { epoch: LATER_EPOCH, seen: Some(Arc::clone(&membership)), membership, predecessor, moves }
    };
    let install = |epoch, moves| {
        let membership = Arc::new(membership());
        Ask::Install { epoch, counter: 0, longest: Duration::ZERO, moves, membership }
    };
    for (installed, moved, expected) in [(0, 1, 1), (2, 2, 2), (2, 3, 3), (2, 1, 2)] {
        let mut node = Node::empty();
        node.view(at(1), &mark(EPOCH));
        assert_eq!(node.view(at(1), &install(EPOCH, installed)).moves, installed);
        let after = node.view(at(2), &to(moved));
        assert_eq!((after.moves, after.votes()), (expected, moved < installed), "{moved} after {installed}");
        node.view(at(3), &install(LATER_EPOCH, 0));
        assert_eq!(node.view(at(3), &Ask::Look).moves, expected, "an installation lowers nothing");
    }
}
