//! How long a node abstains, and when it is over.

use std::time::Duration;

use lock_core::node::{Ask, NodeState, Recording};
use lock_core::{Ttl, drift};
use lock_redlock::quorum::{Purpose, Recovery, Request};

use crate::script::{Script, is_claim, is_install};
use crate::support::{MAX_TTL, claim};

const SECOND: Duration = Duration::from_secs(1);
const NANO: Duration = Duration::from_nanos(1);
/// The default of `max_ttl`.
const DEFAULT_MAX_TTL: Duration = Duration::from_secs(300);
/// No dwell is shorter.
const LEAST: Duration = Duration::from_secs(2);

/// Nodes of which the last ones abstain, and all know of a ttl of ten seconds.
fn of(nodes: usize, abstaining: usize) -> Script {
    let mut script = Script::new(nodes);
    script.views.iter_mut().for_each(|view| view.longest = 10 * SECOND);
    (nodes - abstaining..nodes).for_each(|node| script.abstains(node));
    script
}

/// How long the last node is reported to abstain.
fn left(script: &mut Script) -> Duration {
    let report = script.pass(Purpose::Watch).unwrap();
    report.nodes.last().unwrap().votes_in.unwrap()
}

fn whole(ttl: Duration) -> Duration {
    ttl + drift(ttl)
}

#[test]
fn enough_others_that_vote_know_how_long_a_dwell_has_to_be() {
    for (nodes, abstaining, enough) in
        [(3, 1, true), (3, 2, false), (4, 2, true), (4, 3, false), (5, 2, true), (5, 3, false)]
    {
        let lasts = whole(if enough { 10 * SECOND } else { MAX_TTL });
        assert_eq!(left(&mut of(nodes, abstaining)), lasts, "{abstaining} of {nodes} abstain");
    }
}

#[test]
fn a_dwell_lasts_for_the_longest_ttl_that_the_node_or_another_voter_knows() {
    for (known, lasts) in [([30, 10, 10], 30), ([10, 30, 10], 30), ([10, 10, 30], 30)] {
        let mut script = of(3, 1);
        script.views.iter_mut().zip(known).for_each(|(view, known)| view.longest = known * SECOND);
        assert_eq!(left(&mut script), whole(lasts * SECOND), "{known:?}");
    }
    // What an abstaining node knows does not count: it has forgotten.
    let mut script = of(5, 2);
    script.views[3].longest = 30 * SECOND;
    assert_eq!(left(&mut script), whole(10 * SECOND));
}

#[test]
fn no_dwell_is_shorter_than_two_seconds_unless_the_deployment_is_new() {
    let mut script = of(3, 1);
    script.views.iter_mut().for_each(|view| view.longest = SECOND);
    assert_eq!(left(&mut script), LEAST);
    let mut script = Script::new(3);
    (0..3).for_each(|node| {
        script.abstains(node);
        script.views[node].membership = None;
    });
    script.pass(Purpose::Init).unwrap();
    assert_eq!(script.stepped(is_install), [0, 1, 2]);
}

/// A deployment may have allowed longer leases than this client does, and nothing is left of it.
#[test]
fn a_blank_node_dwells_for_the_default_max_ttl_if_too_few_others_know() {
    for (nodes, abstaining, lasts) in [(3, 1, 10 * SECOND), (3, 2, DEFAULT_MAX_TTL), (3, 3, DEFAULT_MAX_TTL)] {
        let mut script = of(nodes, abstaining);
        script.views.last_mut().unwrap().membership = None;
        let report = script.pass(Purpose::Watch).unwrap();
        assert_eq!(report.nodes.last().unwrap().votes_in, Some(whole(lasts)), "{abstaining} of {nodes} abstain");
        // A node that knows its deployment knows its `max_ttl`.
        if abstaining > 1 {
            assert_eq!(report.nodes[1].votes_in, Some(whole(MAX_TTL)));
        }
    }
}

#[test]
fn the_last_node_is_installed_with_what_may_have_been_announced() {
    for (nodes, abstaining, longest, recovery) in [
        (3, 1, 10 * SECOND, Recovery::FromOthers),
        (3, 2, MAX_TTL, Recovery::ByClock),
        // Nobody votes: every client has to announce again.
        (3, 3, 10 * SECOND, Recovery::ByClock),
    ] {
        let mut script = of(nodes, abstaining);
        script.recorded(nodes - 1, 2, whole(MAX_TTL));
        let report = script.pass(Purpose::Watch).unwrap();
        assert_eq!(report.nodes[2].recovery, Some(recovery), "{abstaining} of {nodes} abstain");
        assert_eq!(report.nodes[2].votes_in, None);
        let installs = script.steps.iter().find(|(_, ask)| is_install(ask));
        let Some((2, Ask::Install { longest: told, .. })) = installs else { panic!("{installs:?}") };
        assert_eq!(*told, longest, "{abstaining} of {nodes} abstain");
    }
}

#[test]
fn a_dwell_is_over_to_the_nanosecond_when_this_client_has_watched_for_so_long() {
    let mut script = of(3, 1);
    script.pass(Purpose::Watch).unwrap();
    script.advance(whole(10 * SECOND) - NANO);
    script.pass(Purpose::Watch).unwrap();
    assert!(script.stepped(is_install).is_empty());
    assert_eq!(left(&mut script), NANO);
    script.advance(NANO);
    script.pass(Purpose::Watch).unwrap();
    assert_eq!(script.stepped(is_install), [2]);
}

#[test]
fn a_dwell_is_over_to_the_nanosecond_when_a_majority_has_recorded_so() {
    for (recording, age, takes, installed) in [
        (2, 10 * SECOND, Duration::ZERO, true),
        (2, 10 * SECOND, NANO, false),
        // The records are read after the look, which counts.
        (2, 11 * SECOND, SECOND, true),
        (2, 11 * SECOND, SECOND + NANO, false),
        (1, 10 * SECOND, Duration::ZERO, false),
        (3, 10 * SECOND, Duration::ZERO, true),
    ] {
        let mut script = of(3, 1);
        script.recorded(2, recording, age + drift(10 * SECOND));
        script.slow_pass(Purpose::Watch, takes).unwrap();
        assert_eq!(script.stepped(is_install) == [2], installed, "{recording} recorded {age:?}, and it took {takes:?}");
    }
}

/// A dwell is over once this client has watched it for long enough or the records are old enough.
#[test]
fn the_longer_of_what_was_watched_and_what_was_recorded_counts() {
    for recorded in [SECOND, 3 * SECOND] {
        let mut script = of(3, 1);
        script.pass(Purpose::Watch).unwrap();
        script.advance(2 * SECOND);
        script.recorded(2, 2, recorded);
        assert_eq!(left(&mut script), whole(10 * SECOND) - recorded.max(2 * SECOND));
    }
}

#[test]
fn a_look_foretells_dwells_by_the_nodes_own_record() {
    let mut script = of(3, 0);
    script.views[1].state = NodeState::Forgetful;
    script.abstains(2);
    let NodeState::Abstaining { since, .. } = &mut script.views[2].state else { panic!("it abstains") };
    *since = 7 * SECOND;
    let report = script.pass(Purpose::Look).unwrap();
    let left: Vec<_> = report.nodes.iter().map(|node| node.votes_in).collect();
    assert_eq!(left, [None, Some(whole(MAX_TTL)), Some(whole(MAX_TTL) - 7 * SECOND)]);
    assert!(script.stepped(is_install).is_empty());
}

/// A ttl that a majority of voters knew at one time is used without an announcement.
#[test]
fn a_pass_finds_out_which_ttl_was_announced() {
    let ms = Duration::from_millis;
    for (nodes, abstaining, knowing, takes, announced) in [
        (5, 0, 3, ms(0), true),
        (5, 0, 2, ms(0), false),
        (5, 1, 3, ms(0), true),
        (5, 3, 5, ms(0), false),
        (4, 0, 3, ms(0), true),
        (4, 0, 2, ms(0), false),
        (5, 0, 5, ms(1977), true),
        // By then one may have forgotten, dwelled and voted again.
        (5, 0, 5, ms(1978), false),
    ] {
        let mut script = of(nodes, abstaining);
        script.views[..knowing].iter_mut().for_each(|view| view.longest = Ttl::DEFAULT.get());
        script.slow_pass(Purpose::Watch, takes).unwrap();
        script.begin(Request::Acquire(claim(1)));
        assert_eq!(!script.asked(is_claim).is_empty(), announced, "{knowing} of {nodes} know it, {abstaining} abstain");
    }
}

/// Records that disagree may never agree. Where a majority has none yet, the missing ones are made.
#[test]
fn records_begin_again_where_a_majority_has_some_and_they_disagree() {
    for (ages, anew) in [
        (&[][..], false),
        (&[100], false),
        (&[5, 5], false),
        (&[100, 50], true),
        (&[100, 7, 5], false),
        (&[100, 50, 5], true),
    ] {
        let mut script = of(3, 1);
        script.recorded(2, ages.len(), SECOND);
        for (records, age) in script.records.iter_mut().zip(ages) {
            records[2].as_mut().unwrap().age = *age * SECOND;
        }
        script.pass(Purpose::Watch).unwrap();
        let again = |(_, ask): &(usize, Ask)| matches!(ask, Ask::Record { seen, .. } if seen.iter().any(|seen| matches!(seen.recording, Recording::BeginsAnew(_))));
        assert_eq!(script.steps.iter().filter(|step| again(step)).count(), if anew { 3 } else { 0 }, "{ages:?}");
    }
}
