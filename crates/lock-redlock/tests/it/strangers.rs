//! Nodes that do not count, and what is left without them.

use lock_core::ErrorKind;
use lock_core::node::{Ask, Membership, RunId, Sighting};
use lock_redlock::quorum::Purpose;

use crate::script::{Script, is_install, is_mark};
use crate::support::MAX_TTL;

/// The node belongs to another deployment.
fn is_a_stranger(script: &mut Script, node: usize) {
    script.views[node].membership = Some(Membership::new(vec!["x".into(), "y".into(), "z".into()], MAX_TTL));
}

/// The first ones are strangers, the next ones know no deployment, and all others vote.
fn of(nodes: usize, strangers: usize, blank: usize) -> Script {
    let mut script = Script::new(nodes);
    (0..strangers).for_each(|node| is_a_stranger(&mut script, node));
    (strangers..strangers + blank).for_each(|node| script.is_blank(node));
    script
}

/// A blank node may belong to the strangers' deployment.
#[test]
fn beside_strangers_a_majority_has_to_know_this_deployment() {
    for (nodes, strangers, blank, enough) in [
        (3, 1, 0, true),
        (3, 1, 1, false),
        (3, 0, 2, true),
        (4, 1, 0, true),
        (4, 1, 1, false),
        (5, 2, 0, true),
        (5, 1, 1, true),
        (5, 2, 1, false),
        (5, 1, 2, false),
    ] {
        let told = of(nodes, strangers, blank).pass(Purpose::Watch).map(drop);
        assert_eq!(told.is_ok(), enough, "{strangers} strangers and {blank} blank ones of {nodes}: {told:?}");
        let why = told.err().map(|error| error.to_string()).unwrap_or_default();
        assert!(enough || why.contains("node-0 belongs to a deployment of other nodes: x, y, z"), "{why}");
    }
}

#[test]
fn a_pass_ends_where_so_many_nodes_are_wrong_that_no_majority_is_left() {
    for (nodes, wrong, ends) in [(3, 1, false), (3, 2, true), (4, 1, false), (4, 2, true), (5, 2, false), (5, 3, true)]
    {
        let mut script = Script::new(nodes);
        script.failing.extend((0..wrong).map(|node| (node, ErrorKind::Config)));
        let error = script.pass(Purpose::Watch).err();
        assert_eq!(
            error.as_ref().map(lock_core::BackendError::kind),
            ends.then_some(ErrorKind::Config),
            "{wrong} of {nodes}"
        );
        // What needs no operator may be over soon.
        let mut script = Script::new(nodes);
        script.failing.extend((0..wrong).map(|node| (node, ErrorKind::Denied)));
        assert!(script.pass(Purpose::Watch).is_ok(), "{wrong} of {nodes}");
    }
}

#[test]
fn servers_with_two_addresses_are_wrong_once() {
    for (nodes, doubles, ends) in [(3, 1, false), (3, 2, true), (4, 1, false), (4, 2, true)] {
        let mut script = Script::new(nodes);
        script.views[..=doubles].iter_mut().for_each(|view| view.run = RunId("one".into()));
        for purpose in [Purpose::Look, Purpose::Watch] {
            let error = script.pass(purpose).err().map(|error| error.to_string());
            let told = error.as_ref().is_some_and(|error| error.contains("node-0 and node-1 are the same server"));
            assert_eq!((error.is_some(), told), (ends, ends), "{doubles} of {nodes}: {error:?}");
        }
    }
}

/// Five nodes: a stranger, a blank one, and three that vote unless a test says otherwise.
#[test]
fn beside_strangers_a_blank_node_is_taken_only_where_a_majority_votes() {
    let marked = |change: fn(&mut Script)| {
        let mut script = of(5, 1, 1);
        change(&mut script);
        // Later the pass may find that no majority is left.
        _ = script.pass(Purpose::Watch);
        script.stepped(is_mark) == [1]
    };
    assert!(marked(|_| {}));
    assert!(!marked(|script| script.abstains(4)), "it knows this deployment, and does not vote");
    assert!(!marked(|script| script.views[4].run = script.views[3].run.clone()), "two addresses are one vote");
    assert!(marked(|script| script.views[0].membership = script.views[1].membership.clone()), "nobody is a stranger");
}

#[test]
fn a_blank_node_that_has_waited_is_installed_only_where_a_majority_votes() {
    for (abstaining, installed) in [(None, &[1][..]), (Some(4), &[4][..])] {
        let mut script = of(5, 1, 1);
        for node in abstaining.into_iter().chain([1]) {
            script.recorded(node, 5, MAX_TTL * 100);
        }
        script.pass(Purpose::Watch).unwrap();
        assert_eq!(script.stepped(is_install), installed);
    }
}

#[test]
fn a_node_that_another_deployment_marked_is_a_stranger() {
    let mut script = Script::new(3);
    script.is_blank(0);
    script.views[0].marked_for = Some(Membership::new(vec!["x".into()], MAX_TTL));
    let report = script.pass(Purpose::Watch).unwrap();
    assert!(report.nodes[0].view.is_err());
    assert!(script.stepped(is_mark).is_empty());
    // Unless all nodes are declared new.
    (0..3).for_each(|node| script.is_blank(node));
    script.pass(Purpose::Init).unwrap();
    assert_eq!(script.stepped(is_mark), [0, 1, 2]);
}

#[test]
fn a_deployment_is_new_only_if_no_node_was_ever_part_of_it() {
    let mut script = Script::new(3);
    (0..3).for_each(|node| script.is_blank(node));
    script.pass(Purpose::Init).unwrap();
    script.views[2].membership = Script::new(3).views[2].membership.clone();
    let error = script.pass(Purpose::Init).unwrap_err();
    assert!(error.to_string().contains("node-2 already knows this deployment"), "{error}");
}

/// What abstains under a second address is recorded at its own address only.
#[test]
fn a_second_address_of_an_abstaining_server_is_not_recorded() {
    let mut script = Script::new(3);
    script.abstains(0);
    script.abstains(1);
    script.views[1].run = script.views[0].run.clone();
    script.pass(Purpose::Watch).unwrap();
    let record = script.steps.iter().find(|(_, ask)| matches!(ask, Ask::Record { .. }));
    let Some((_, Ask::Record { seen, .. })) = record else { panic!("{record:?}") };
    assert_eq!(seen.iter().map(is_recorded).collect::<Vec<_>>(), [true, false, false]);
}

fn is_recorded(seen: &Sighting) -> bool {
    !matches!(seen.recording, lock_core::node::Recording::Nothing)
}
