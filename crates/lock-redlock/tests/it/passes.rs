//! What is sent to which node, and what a recovery pass makes of the nodes' views.

use std::sync::Arc;
use std::time::Duration;

use lock_core::node::{Ask, Epoch, Membership, NodeState, Noting, Told};
use lock_core::{Certainty, Claim, ErrorKind, FencingToken, ReleaseRequest, Released};
use lock_redlock::quorum::{Purpose, Request};

use crate::script::{Script, failure, is_claim, is_fence, is_release};
use crate::support::{MAX_TTL, claim};

fn release(script: &mut Script, owner: u8) {
    let Claim { name, owner, terms, .. } = claim(owner);
    script.begin(Request::Release(ReleaseRequest { name, owner, terms, certainty: Certainty::Answered, keep: None }));
}

/// These nodes did not answer a claim, and nothing is under way.
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
fn at_most_64_releases_are_under_way_to_a_suspect() {
    let mut script = without(3, &[0], &[]);
    (0..65).for_each(|owner| release(&mut script, owner));
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

/// Node 0 has waited for long enough when it is looked at again: what it is installed with.
fn installed(script: &mut Script) -> Option<Ask> {
    let epoch = Epoch::from_random(77);
    script.views[0].state = NodeState::Abstaining { epoch, since: MAX_TTL };
    script.pass(Purpose::Watch).unwrap();
    script.advance(MAX_TTL * 10);
    script.begin(Request::Pass(Purpose::Watch));
    while let Some(sent) = script.sent.first() {
        let told = if matches!(sent.ask, Ask::Note { .. }) {
            Told::Noted(vec![None; script.views.len()])
        } else if matches!(sent.ask, Ask::Look) {
            Told::View(Box::new(script.views[sent.node.0].clone()))
        } else {
            return Some(sent.ask.clone());
        };
        script.answer(sent.node.0, |_| true, Ok(told));
    }
    None
}

#[test]
fn a_node_is_installed_with_the_highest_counter_that_is_a_token() {
    let most = FencingToken::MAX.get();
    for (counters, expected) in [([1, 7, 5], 7), ([1, most, 5], most), ([1, most + 1, 5], 5)] {
        let mut script = Script::new(3);
        script.views.iter_mut().zip(counters).for_each(|(view, counter)| view.counter = counter);
        let install = installed(&mut script);
        assert!(matches!(install, Some(Ask::Install { counter, .. }) if counter == expected), "{install:?}");
    }
}

fn look(script: &mut Script) {
    for node in 0..script.views.len() {
        let view = Box::new(script.views[node].clone());
        script.answer(node, |ask| matches!(ask, Ask::Look), Ok(Told::View(view)));
    }
}

#[test]
fn a_look_reads_the_notes_and_makes_none() {
    let mut script = Script::new(3);
    script.views[0].state = NodeState::Forgetful;
    script.begin(Request::Pass(Purpose::Look));
    look(&mut script);
    assert_eq!(script.asked(|ask| matches!(ask, Ask::Note { .. })), [0, 1, 2]);
    for sent in &script.sent {
        let Ask::Note { seen, .. } = &sent.ask else { continue };
        assert!(seen.iter().all(|seen| matches!(seen.noting, Noting::Nothing)), "{seen:?}");
    }
}

/// Every majority of the old deployment includes one of so many.
#[test]
fn a_move_needs_as_many_nodes_as_leave_no_majority() {
    let to = Arc::new(Membership::new(vec!["a".into(), "b".into(), "c".into()], MAX_TTL));
    for (nodes, known, may_move) in
        [(3, 1, false), (3, 2, true), (4, 1, false), (4, 2, true), (5, 2, false), (5, 3, true)]
    {
        let mut script = Script::new(nodes);
        script.views[known..].iter_mut().for_each(|view| {
            view.membership = None;
            view.state = NodeState::Forgetful;
        });
        let moved = script.pass(Purpose::Move(Arc::clone(&to)));
        assert_eq!(moved.is_ok(), may_move, "{known} of {nodes}: {moved:?}");
    }
}

#[test]
fn a_node_that_a_pass_could_not_reach_keeps_its_vote_and_one_that_is_wrong_does_not() {
    for (kind, asked) in [(ErrorKind::Unreachable, &[0, 1, 2, 3][..]), (ErrorKind::Denied, &[1, 2, 3])] {
        let mut script = Script::voting(4);
        script.begin(Request::Pass(Purpose::Watch));
        script.answer(0, |ask| matches!(ask, Ask::Look), failure(kind));
        // Two of four answer in time, so a claim needs all that may vote.
        script.answer(1, |ask| matches!(ask, Ask::Look), failure(ErrorKind::Unreachable));
        while let Some(sent) = script.sent.first() {
            let told = if matches!(sent.ask, Ask::Note { .. }) {
                Told::Noted(vec![None; 4])
            } else {
                Told::View(Box::new(script.views[sent.node.0].clone()))
            };
            script.answer(sent.node.0, |_| true, Ok(told));
        }
        script.verdicts.clear();
        script.begin(Request::Acquire(Claim { terms: lock_core::Terms::exclusive(lock_core::Ttl::MIN), ..claim(1) }));
        let mut nodes = script.asked(|ask| matches!(ask, Ask::Acquire { .. } | Ask::Fence { .. }));
        nodes.dedup();
        assert_eq!(nodes, asked, "{kind:?}");
    }
}
