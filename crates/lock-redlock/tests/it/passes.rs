//! What is sent to which node, and what a recovery pass makes of the nodes' views.

use std::sync::Arc;
use std::time::Duration;

use lock_core::node::{Ask, Membership, NodeState, Recording, Told};
use lock_core::{
    BackendError, Certainty, Claim, Effect, ErrorKind, Evidence, FencingToken, Operation, ReleaseRequest, Released,
};
use lock_redlock::quorum::{Outgoing, Purpose, Request};

use crate::script::{Script, failure, is_claim, is_fence, is_install, is_look, is_move, is_release};
use crate::support::{MAX_TTL, claim};

fn release(script: &mut Script, owner: u8) {
    let Claim { name, owner, terms, .. } = claim(owner);
    script.begin(Request::Release(ReleaseRequest {
        name,
        owner,
        terms,
        certainty: Certainty::Answered,
        keep: None,
        evidence: Evidence::Nothing,
    }));
}

/// These nodes did not answer a claim, and nothing is in flight.
fn without(nodes: usize, suspects: &[usize], abstaining: &[usize]) -> Script {
    let mut script = Script::voting(nodes);
    script.begin(Request::Acquire(claim(9)));
    suspects.iter().for_each(|node| script.answer(*node, is_claim, failure(ErrorKind::Unreachable)));
    abstaining.iter().for_each(|node| script.answer(*node, is_claim, Ok(Told::Abstains)));
    script.sent.clear();
    script
}

#[test]
fn suspects_are_asked_only_where_the_others_are_no_majority() {
    for (suspects, abstaining, asked) in
        [(&[0, 1][..], &[][..], &[2, 3, 4][..]), (&[0, 1, 2], &[], &[0, 1, 2, 3, 4]), (&[0, 1], &[2], &[0, 1, 3, 4])]
    {
        let mut script = without(5, suspects, abstaining);
        script.begin(Request::Acquire(claim(1)));
        assert_eq!(script.asked(is_claim), asked, "{suspects:?} are suspect and {abstaining:?} abstain");
    }
}

#[test]
fn a_probe_is_not_waited_for() {
    let mut script = without(5, &[0, 1], &[]);
    script.advance(Duration::from_millis(50));
    script.begin(Request::Acquire(claim(1)));
    assert_eq!(script.asked(is_claim), [0, 1, 2, 3, 4]);
    (2..5).for_each(|node| script.grant(node, 10 + node as u64));
    assert_eq!(script.asked(is_fence), [0, 1, 2, 3]);
}

#[test]
fn at_most_64_releases_are_in_flight_to_a_suspect() {
    let mut script = without(3, &[0], &[]);
    (10..75).for_each(|owner| release(&mut script, owner));
    let count = |node: usize| script.asked(is_release).into_iter().filter(|asked| *asked == node).count();
    assert_eq!([count(0), count(1)], [64, 65]);
}

#[test]
fn a_refused_release_rests_for_a_second_and_a_lost_one_does_not() {
    for (kind, rest) in [(ErrorKind::Unavailable, 1000), (ErrorKind::Unreachable, 0)] {
        let mut script = Script::voting(3);
        release(&mut script, 1);
        script.answer(0, is_release, failure(kind));
        assert_eq!(script.asked(is_release), [1, 2], "{kind:?} is no reason to say it again at once");
        script.sent.clear();
        if rest > 0 {
            script.advance(Duration::from_millis(rest - 1));
            script.pass(Purpose::Watch).unwrap();
            assert!(script.asked(is_release).is_empty(), "{kind:?}");
            script.advance(Duration::from_millis(1));
        }
        release(&mut script, 2);
        script.answer(0, is_release, Ok(Told::Released(Released::Released)));
        assert_eq!(script.asked(is_release), [1, 2, 0], "{kind:?}");
    }
}

#[test]
fn a_node_is_installed_with_the_highest_counter_that_is_a_token() {
    let most = FencingToken::MAX.get();
    for (counters, expected) in [([1, 7, 5], 7), ([1, most, 5], most), ([1, most + 1, 5], 5)] {
        let mut script = Script::new(3);
        script.views.iter_mut().zip(counters).for_each(|(view, counter)| view.counter = counter);
        script.recorded(0, 2, MAX_TTL * 2);
        script.pass(Purpose::Watch).unwrap();
        let install = script.steps.iter().find(|(_, ask)| is_install(ask));
        assert!(matches!(install, Some((0, Ask::Install { counter, .. })) if *counter == expected), "{install:?}");
    }
}

#[test]
fn a_look_reads_the_records_and_makes_none() {
    let mut script = Script::new(3);
    script.views[0].state = NodeState::Forgetful;
    script.pass(Purpose::Look).unwrap();
    assert_eq!(script.stepped(|ask| matches!(ask, Ask::Record { .. })), [0, 1, 2]);
    for (_, ask) in &script.steps {
        let Ask::Record { seen, .. } = ask else { continue };
        assert!(seen.iter().all(|seen| matches!(seen.recording, Recording::Nothing)), "{seen:?}");
    }
}

/// More than half of these nodes, or half with the first one, and more than no other move can have.
const DECIDED: [(usize, &[usize], bool); 8] = [
    (3, &[0], false),
    (3, &[1, 2], true),
    (4, &[0], false),
    (4, &[0, 3], true),
    (4, &[1, 2], false),
    (4, &[1, 2, 3], true),
    (5, &[0, 1], false),
    (5, &[2, 3, 4], true),
];

fn list_of(nodes: impl IntoIterator<Item = usize>) -> Arc<Membership> {
    Arc::new(Membership::new(nodes.into_iter().map(|node| format!("node-{node}")).collect(), MAX_TTL))
}

#[test]
fn a_move_needs_nodes_that_decide_it() {
    for (nodes, known, may_move) in DECIDED {
        for change in [Script::is_blank, |script: &mut Script, node| {
            script.abstains(node);
            script.views[node].has_voted = false;
        }] {
            let mut script = Script::new(nodes);
            (0..nodes).filter(|node| !known.contains(node)).for_each(|node| change(&mut script, node));
            let moved = script.pass(Purpose::Move(list_of(0..nodes + 1)));
            assert_eq!(moved.is_ok(), may_move, "{known:?} of {nodes}: {moved:?}");
        }
    }
}

#[test]
fn a_move_keeps_nodes_that_decide_it() {
    for (nodes, kept, may_move) in DECIDED {
        let mut script = Script::new(nodes);
        let moved = script.pass(Purpose::Move(list_of(kept.iter().copied().chain(nodes..nodes + 4))));
        assert_eq!(moved.is_ok(), may_move, "{kept:?} of {nodes}: {moved:?}");
        assert_eq!(script.stepped(is_move).is_empty(), !may_move);
        let told = moved.err().map(|error| error.to_string()).unwrap_or_default();
        assert!(may_move || told.contains("keep more than half of them"), "{told}");
    }
}

/// Otherwise a list that was to lose a node could never vote, once another one has lost its data.
#[test]
fn a_repeated_move_takes_blank_nodes_along_once_it_is_decided() {
    for (there, expected) in [(2, &[2][..]), (1, &[1])] {
        let mut script = Script::new(3);
        script.views[..there].iter_mut().for_each(|view| view.membership = Some((*list_of(0..5)).clone()));
        script.is_blank(2);
        script.views[2].marked_for = Some((*list_of(0..5)).clone());
        script.pass(Purpose::Move(list_of(0..5))).unwrap();
        assert_eq!(script.stepped(is_move), expected);
        let Some((_, Ask::Move { seen, .. })) = script.steps.iter().find(|(_, ask)| is_move(ask)) else { panic!() };
        assert_eq!(*seen, Some(if there == 2 { list_of(0..5) } else { list_of(0..3) }), "it compares what was seen");
    }
}

#[test]
fn a_node_that_a_pass_could_not_reach_keeps_its_vote_and_one_that_is_wrong_does_not() {
    for (kind, asked) in [(ErrorKind::Unreachable, &[0, 1, 2, 3][..]), (ErrorKind::Denied, &[1, 2, 3])] {
        let mut script = Script::voting(4);
        // Two of four answer in time, so a claim needs all that may vote.
        script.failing.extend([(0, kind), (1, ErrorKind::Unreachable)]);
        script.pass(Purpose::Watch).unwrap();
        script.begin(Request::Acquire(Claim { terms: lock_core::Terms::exclusive(lock_core::Ttl::MIN), ..claim(1) }));
        let mut nodes = script.asked(|ask| matches!(ask, Ask::Acquire { .. } | Ask::Fence { .. }));
        nodes.dedup();
        assert_eq!(nodes, asked, "{kind:?}");
    }
}

/// What the quorum begins by itself once a verb has its result.
fn looks_after_a_release(script: &mut Script) -> bool {
    script.sent.clear();
    release(script, 1);
    (0..script.views.len()).for_each(|node| script.answer(node, is_release, Ok(Told::Released(Released::Released))));
    !script.asked(is_look).is_empty()
}

#[test]
fn a_pass_follows_a_verb_if_a_node_does_not_vote_and_the_last_pass_was_a_while_ago() {
    type Change = fn(&mut Script);
    let abstains: Change = |script| script.abstains(0);
    let fails: Change = |script| script.failing.extend([(0, ErrorKind::Denied)]);
    let refuses: Change = |script| script.failing.extend([(0, ErrorKind::Config), (1, ErrorKind::Config)]);
    for (change, purpose, after, looks) in [
        (abstains, Purpose::Watch, 249, false),
        (abstains, Purpose::Watch, 250, true),
        (fails, Purpose::Watch, 999, false),
        (fails, Purpose::Watch, 1000, true),
        // Its vote stays what it was, but nothing is granted until a pass has a better answer.
        (refuses, Purpose::Watch, 999, false),
        (refuses, Purpose::Watch, 1000, true),
        ((|_| {}) as Change, Purpose::Watch, 3_600_000, false),
        // A pass for another purpose does not delay it.
        (abstains, Purpose::Look, 0, true),
    ] {
        let mut script = Script::voting(3);
        script.advance(Duration::from_secs(1));
        change(&mut script);
        drop(script.pass(purpose.clone()));
        script.advance(Duration::from_millis(after));
        assert_eq!(looks_after_a_release(&mut script), looks, "{purpose:?} {after} ms ago");
    }
}

#[test]
fn one_pass_is_in_flight_at_a_time_unless_it_takes_longer_than_any() {
    for (since, looks) in [(9_999, false), (10_000, true)] {
        let mut script = Script::voting(3);
        script.abstains(0);
        script.pass(Purpose::Watch).unwrap();
        script.advance(Duration::from_secs(1));
        script.begin(Request::Pass(Purpose::Watch));
        script.advance(Duration::from_millis(since));
        assert_eq!(looks_after_a_release(&mut script), looks, "{since} ms");
    }
}

#[test]
fn a_refusal_of_a_pass_that_watches_stops_grants_until_a_pass_succeeds() {
    let refusal = |script: &mut Script| {
        script.verdicts.clear();
        script.begin(Request::Acquire(claim(1)));
        script.verdicts.pop().map(|verdict| format!("{verdict:?}").contains("Config"))
    };
    for (purpose, stops) in [(Purpose::Watch, Some(true)), (Purpose::Look, None), (Purpose::Init, None)] {
        let mut script = Script::voting(3);
        script.failing.extend([(0, ErrorKind::Config), (1, ErrorKind::Config)]);
        script.pass(purpose.clone()).unwrap_err();
        assert_eq!(refusal(&mut script), stops, "{purpose:?}");
        script.failing.clear();
        script.pass(Purpose::Watch).unwrap();
        assert_eq!(refusal(&mut script), None, "{purpose:?}");
    }
}

fn released(sent: &Outgoing) -> (usize, Certainty) {
    let Ask::Release(request) = &sent.ask else { panic!("{sent:?}") };
    (sent.node.0, request.certainty)
}

/// A claim that was answered is over. Any other may arrive after the release.
#[test]
fn a_release_leaves_a_tombstone_only_where_the_claim_was_not_answered() {
    let lost = |kind| Err(BackendError::new("memory", Operation::Acquire, kind, Effect::Unknown, "as the test says"));
    for (outcome, certainty) in [
        (failure(ErrorKind::Unreachable), Certainty::Answered),
        (lost(ErrorKind::Unreachable), Certainty::Unknown),
        (failure(ErrorKind::Timeout), Certainty::Unknown),
        (failure(ErrorKind::Unavailable), Certainty::Answered),
        (Ok(Told::Abstains), Certainty::Answered),
    ] {
        let mut script = Script::voting(3);
        script.begin(Request::Acquire(claim(1)));
        let told = format!("{outcome:?}");
        script.answer(0, is_claim, outcome);
        (1..3).for_each(|node| script.grant(node, 10));
        script.sent.clear();
        release(&mut script, 1);
        let certainties: Vec<_> = script.sent.iter().map(released).collect();
        let expected = [(0, certainty), (1, Certainty::Answered), (2, Certainty::Answered)];
        assert_eq!(certainties, expected, "{told}");
    }
}
