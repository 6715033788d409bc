//! Which nodes a pass moves to this deployment, and which it leaves where they are.

use std::sync::Arc;

use lock_core::node::{Ask, Membership, Told, View};
use lock_redlock::quorum::{Purpose, Recovery, Request, Verdict};

use crate::script::{Script, is_install, is_look, is_mark, is_move};
use crate::support::MAX_TTL;

/// The deployment of the first nodes, this many.
fn first(nodes: usize) -> Membership {
    Membership::new((0..nodes).map(|node| format!("node-{node}")).collect(), MAX_TTL)
}

/// The first ones were moved here from a deployment of the first `old`. The last node of that one was left behind.
fn moved(nodes: usize, old: usize, heirs: usize) -> Script {
    let mut script = Script::new(nodes);
    script.views[..heirs].iter_mut().for_each(|view| view.predecessor = Some(first(old)));
    script.views[old - 1].membership = Some(first(old));
    script
}

#[test]
fn a_node_is_fetched_if_a_majority_says_that_it_was_left_behind() {
    for (nodes, old, heirs, fetched) in
        [(5, 4, 3, true), (5, 4, 2, false), (4, 3, 2, false), (6, 5, 4, true), (6, 5, 3, false)]
    {
        let mut script = moved(nodes, old, heirs);
        script.pass(Purpose::Watch).unwrap();
        let expected = if fetched { vec![old - 1] } else { vec![] };
        assert_eq!(script.stepped(is_move), expected, "{heirs} of {nodes} were moved from {old}");
    }
}

#[test]
fn a_fetched_node_is_told_its_previous_deployment() {
    let mut script = moved(5, 4, 3);
    script.pass(Purpose::Watch).unwrap();
    let told = script.steps.iter().find(|(_, ask)| is_move(ask));
    let Some((_, Ask::Move { membership, predecessor, .. })) = told else { panic!("{told:?}") };
    assert_eq!((&**membership, &**predecessor), (&first(5), &first(4)));
}

#[test]
fn a_node_that_was_only_marked_there_is_fetched_too() {
    let mut script = moved(5, 4, 3);
    script.is_blank(3);
    script.views[3].marked_for = Some(first(4));
    script.pass(Purpose::Watch).unwrap();
    assert_eq!(script.stepped(is_move), [3]);
}

#[test]
fn only_nodes_of_this_deployment_name_its_predecessor() {
    let mut script = moved(6, 5, 4);
    script.views[0].membership = Some(first(5));
    script.pass(Purpose::Watch).unwrap();
    assert!(script.stepped(is_move).is_empty(), "three of six say so");
    let mut script = moved(6, 5, 4);
    script.views[0].predecessor = Some(first(3));
    script.pass(Purpose::Watch).unwrap();
    assert!(script.stepped(is_move).is_empty(), "the first says that it was moved from another one");
}

#[test]
fn a_look_and_a_move_fetch_nobody() {
    let mut script = moved(5, 4, 3);
    assert!(script.pass(Purpose::Look).unwrap().nodes[3].view.is_err());
    assert!(script.stepped(is_move).is_empty());
    script.pass(Purpose::Move(Arc::new(first(3)))).unwrap();
    assert_eq!(script.stepped(is_move), [0, 1, 2, 4]);
}

/// A deployment whose list was "moved" to itself stays as it is.
#[test]
fn a_node_of_this_deployment_was_not_left_behind() {
    let mut script = Script::new(3);
    script.views.iter_mut().for_each(|view| view.predecessor = Some(first(3)));
    script.pass(Purpose::Watch).unwrap();
    assert!(script.stepped(is_move).is_empty());
}

/// It says so in vain: this deployment was itself moved on, and then the nodes there.
#[test]
fn a_node_of_a_later_move_was_not_left_behind() {
    for (theirs, fetched) in [(0, true), (1, true), (2, false)] {
        let mut script = moved(5, 4, 3);
        script.views[..3].iter_mut().for_each(|view| view.moves = 1);
        script.views[3].moves = theirs;
        _ = script.pass(Purpose::Watch);
        assert_eq!(script.stepped(is_move).is_empty(), !fetched, "{theirs}");
    }
}

/// The operator names the old deployment. So it is enough that no majority is left there.
#[test]
fn a_takeover_fetches_nodes_if_the_old_deployment_has_no_majority() {
    for (nodes, old, heirs, fetched) in
        [(5, 3, 2, true), (5, 3, 1, false), (6, 4, 2, true), (6, 4, 1, false), (7, 5, 3, true), (7, 5, 2, false)]
    {
        let mut script = moved(nodes, old, heirs);
        script.views[heirs..old].iter_mut().for_each(|view| view.membership = Some(first(old)));
        _ = script.pass(Purpose::TakeOver(Arc::new(first(old))));
        let expected: Vec<_> = (heirs..old).filter(|_| fetched).collect();
        assert_eq!(script.stepped(is_move), expected, "{heirs} of {old} were moved");
        // The operator did not name another predecessor.
        _ = script.pass(Purpose::TakeOver(Arc::new(first(2))));
        assert!(script.stepped(is_move).is_empty(), "{heirs} of {old} were moved");
    }
}

/// Nodes that were not part of it do not reduce its majority.
#[test]
fn new_nodes_do_not_count_as_moved() {
    let mut script = moved(5, 3, 1);
    script.views[3].predecessor = Some(first(3));
    script.views[4].predecessor = Some(first(3));
    script.is_blank(1);
    script.pass(Purpose::TakeOver(Arc::new(first(3)))).unwrap();
    assert_eq!((script.stepped(is_move), script.stepped(is_mark)), (vec![], vec![1]));
}

/// Two moves from the same nodes were in progress at the same time: these are `ours`, and the rest followed the other one.
fn split(old: usize, ours: &[usize]) -> Script {
    let mut script = Script::new(old + 2);
    for (node, view) in script.views.iter_mut().enumerate().take(old) {
        view.predecessor = Some(first(old));
        if !ours.contains(&node) {
            view.membership = Some(first(old + 3));
        }
    }
    (old..old + 2).for_each(|node| script.is_blank(node));
    script
}

#[test]
fn a_node_that_followed_another_move_is_fetched_by_the_one_with_a_majority_of_the_old_nodes() {
    for (old, ours, fetched) in [
        (3, &[0, 1][..], true),
        (3, &[0], false),
        (5, &[0, 1, 2], true),
        (5, &[0, 1], false),
        (4, &[1, 2, 3], true),
        // Of two halves, the one with the first node gets the other one.
        (4, &[0, 1], true),
        (4, &[2, 3], false),
    ] {
        let mut script = split(old, ours);
        let told = script.pass(Purpose::TakeOver(Arc::new(first(old))));
        let others = (0..old + 2).filter(|node| fetched && !ours.contains(node));
        let expected: Vec<_> = others.collect();
        for (_, ask) in &script.steps {
            let Ask::Move { predecessor, .. } = ask else { continue };
            assert_eq!(**predecessor, first(old), "all name the deployment that both moves came from");
        }
        assert_eq!((script.stepped(is_move), told.is_ok()), (expected, fetched), "{ours:?} of {old}: {told:?}");
    }
}

#[test]
fn a_client_fetches_what_followed_another_move_if_a_majority_here_was_moved() {
    for (new_ones, fetched) in [(1, true), (0, false)] {
        let mut script = split(3, &[0, 1]);
        (3..3 + new_ones).for_each(|node| {
            script.views[node] = View { predecessor: Some(first(3)), ..Script::new(5).views[node].clone() };
        });
        _ = script.pass(Purpose::Watch);
        assert_eq!(script.stepped(is_move), if fetched { vec![2] } else { vec![] });
    }
    // It came from elsewhere.
    let mut script = split(3, &[0, 1]);
    script.views[2].predecessor = Some(first(2));
    _ = script.pass(Purpose::TakeOver(Arc::new(first(3))));
    assert!(script.stepped(is_move).is_empty());
}

/// A blank node is moved as well, so that it can name the predecessor.
#[test]
fn a_takeover_moves_blank_nodes_after_the_deployment_was_moved() {
    for (heirs, step) in [(2, is_move as fn(&Ask) -> bool), (1, is_mark)] {
        let mut script = moved(5, 3, heirs);
        script.views[2] = Script::new(5).views[2].clone();
        (heirs..3).for_each(|node| _ = script.failing.insert(node, lock_core::ErrorKind::Unreachable));
        script.is_blank(4);
        script.pass(Purpose::TakeOver(Arc::new(first(3)))).unwrap();
        assert_eq!((script.stepped(step), script.steps.len() > 8), (vec![4], true), "{heirs} were moved");
        assert_eq!(script.stepped(is_mark).len() + script.stepped(is_move).len(), 1);
    }
}

#[test]
fn a_repeated_move_asks_only_the_nodes_that_are_not_there() {
    let to = Arc::new(first(2));
    for (there, asked) in [(0, &[0, 1, 2][..]), (1, &[1, 2]), (2, &[2]), (3, &[])] {
        let mut script = Script::new(3);
        script.views[..there].iter_mut().for_each(|view| view.membership = Some(Membership::clone(&to)));
        script.pass(Purpose::Move(Arc::clone(&to))).unwrap();
        assert_eq!(script.stepped(is_move), asked);
    }
}

#[test]
fn a_move_to_the_same_max_ttl_is_one_and_to_a_shorter_is_not() {
    for (max_ttl, may_move) in [(MAX_TTL, true), (MAX_TTL - std::time::Duration::from_nanos(1), false)] {
        let to = Membership { max_ttl, ..first(2) };
        assert_eq!(Script::new(3).pass(Purpose::Move(Arc::new(to))).is_ok(), may_move);
    }
}

/// Somebody moved the first node on after the look.
#[test]
fn a_move_says_what_it_came_too_late_for() {
    let mut script = Script::new(3);
    let told = |view: &View| Ok(Told::View(Box::new(view.clone())));
    script.begin(Request::Pass(Purpose::Move(Arc::new(first(5)))));
    for node in 0..3 {
        let looked = told(&script.views[node]);
        script.answer(node, is_look, looked);
    }
    for (node, found) in [(0, first(2)), (1, first(5)), (2, first(5))] {
        let Some(Ask::Move { seen, .. }) = script.sent.iter().map(|sent| &sent.ask).find(|ask| is_move(ask)) else {
            panic!("node {node} is not moved: {:?}", script.sent);
        };
        assert_eq!(seen.as_deref(), Some(&first(3)), "it compares what was seen");
        let moved = told(&View { membership: Some(found), ..script.views[node].clone() });
        script.answer(node, is_move, moved);
    }
    let Some(Verdict::Pass(Ok(report))) = script.verdicts.pop() else { panic!("{:?}", script.verdicts) };
    let error = report.nodes[0].view.as_ref().unwrap_err().to_string();
    assert!(error.contains("node-0 belongs to a deployment of other nodes: node-0, node-1; the URL names"), "{error}");
    assert!(report.nodes[1..].iter().all(|node| node.view.is_ok()), "{report:?}");
}

/// Five nodes that abstain since a move from three. This many kept their counters.
fn waiting(kept: usize) -> Script {
    let mut script = Script::new(5);
    (0..5).for_each(|node| {
        script.recorded(node, 5, MAX_TTL * 2);
        script.views[node].predecessor = Some(first(3));
        script.views[node].counter = u64::from(node < kept);
    });
    script
}

#[test]
fn after_a_move_the_nodes_that_were_moved_remember_if_they_are_enough() {
    type Change = fn(&mut Script);
    let same: Change = |_| {};
    let in_use: Change = |script| {
        (2..5).for_each(|node| script.views[node] = Script::new(5).views[node].clone());
        script.records.iter_mut().for_each(|records| records[2..].fill(None));
    };
    for (kept, change, recovery, why) in [
        (3, same, Recovery::FromOthers, "all of them"),
        (2, same, Recovery::FromOthers, "every majority of three includes one of two"),
        (1, same, Recovery::ByClock, "two others may have had a higher token"),
        (2, |script| script.is_blank(4), Recovery::FromOthers, "four of five abstain since the move"),
        (2, |script| script.views[0].counter = 0, Recovery::ByClock, "one has forgotten"),
        (2, |script| script.views[0].marked_for = Some(first(5)), Recovery::ByClock, "one was marked, so it forgot"),
        (2, |script| script.views[0].predecessor = Some(first(2)), Recovery::ByClock, "it was moved from elsewhere"),
        (1, |script| script.views[4].counter = 1, Recovery::ByClock, "the fifth was not part of the three"),
        (2, in_use, Recovery::FromOthers, "three others vote"),
    ] {
        let mut script = waiting(kept);
        change(&mut script);
        let report = script.pass(Purpose::Watch).unwrap();
        assert_eq!(report.nodes[1].recovery, Some(recovery), "{why}");
        assert_eq!(report.warnings().is_empty(), recovery == Recovery::FromOthers, "{why}");
        assert!(script.stepped(is_install).contains(&1));
    }
}

/// A majority may have voted, and granted, and forgotten.
#[test]
fn nodes_that_were_moved_do_not_know_later_grants() {
    for (forgot, recovery) in [(2, Recovery::FromOthers), (3, Recovery::ByClock)] {
        let mut script = waiting(2);
        (5 - forgot..5).for_each(|node| script.views[node].marked_for = Some(first(5)));
        let report = script.pass(Purpose::Watch).unwrap();
        assert_eq!(report.nodes[1].recovery, Some(recovery), "{forgot} forgot");
    }
}

/// The first ones were moved here from a deployment of the first `old`, and nobody has voted since. All others are blank.
fn begun(nodes: usize, old: usize, heirs: &[usize]) -> Script {
    let mut script = Script::new(nodes);
    for node in 0..nodes {
        if heirs.contains(&node) {
            script.recorded(node, nodes, MAX_TTL * 2);
            script.views[node].predecessor = Some(first(old));
            script.views[node].has_voted = false;
        } else {
            script.is_blank(node);
        }
    }
    script
}

#[test]
fn a_blank_node_is_taken_only_once_the_move_is_decided() {
    for (old, heirs, taken) in [
        (3, &[0][..], false),
        (3, &[1, 2], true),
        (4, &[0, 1], true),
        (4, &[2, 3], false),
        (5, &[0, 1], false),
        (5, &[0, 1, 4], true),
    ] {
        let mut script = begun(7, old, heirs);
        let report = script.pass(Purpose::Watch).unwrap();
        assert_eq!(script.stepped(is_move).is_empty(), !taken, "{heirs:?} of {old}");
        assert!(script.stepped(is_mark).is_empty(), "it is moved, so that it can name the predecessor");
        assert_eq!(report.unfinished_move.is_none(), taken);
        let warned = report.warnings().iter().any(|warning| warning.contains("leasehold redlock move OLD_URL NEW_URL"));
        assert_eq!(warned, !taken);
        assert!(taken || report.nodes.iter().all(|node| node.votes_in.is_none()), "nobody knows when");
    }
}

/// What the last one granted before it was moved may not have expired.
#[test]
fn nodes_vote_after_a_move_once_those_that_decide_it_have_waited() {
    for (waited, installed) in [(MAX_TTL * 2, vec![0, 1, 3]), (MAX_TTL / 2, vec![])] {
        let mut script = begun(4, 3, &[0, 1]);
        script.recorded(3, 4, MAX_TTL * 100);
        script.views[3].membership = Some(first(4));
        script.recorded(1, 4, waited);
        script.failing.insert(2, lock_core::ErrorKind::Unreachable);
        script.pass(Purpose::Watch).unwrap();
        assert_eq!(script.stepped(is_install), installed, "{waited:?}");
    }
}

#[test]
fn a_deployment_in_which_a_majority_votes_or_that_knows_of_no_recent_move_waits_for_nobody() {
    let mut script = begun(5, 3, &[0]);
    (3..5).for_each(|node| script.recorded(node, 5, MAX_TTL * 100));
    (3..5).for_each(|node| script.views[node].membership = Some(first(5)));
    (1..3).for_each(|node| _ = script.failing.insert(node, lock_core::ErrorKind::Unreachable));
    script.pass(Purpose::Watch).unwrap();
    assert_eq!(script.stepped(is_install), [] as [usize; 0]);
    script.views[0].has_voted = true;
    script.pass(Purpose::Watch).unwrap();
    assert_eq!(script.stepped(is_install), [0, 3, 4]);
    let mut script = Script::new(5);
    script.recorded(0, 5, MAX_TTL * 2);
    script.views[0].predecessor = Some(first(3));
    script.views[0].has_voted = false;
    script.pass(Purpose::Watch).unwrap();
    assert_eq!(script.stepped(is_install), [0]);
}
