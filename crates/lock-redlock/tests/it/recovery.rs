//! Recovery: nodes that restart, forget and come back.

use std::sync::Arc;
use std::time::Duration;

use lock_core::node::{Ask, BlockingQuorumNode, Epoch, NodeState, Recording, Sighting};
use lock_core::{Answer, ErrorKind, FencingToken, Operation, Ttl};
use lock_host::ManualClock;
use lock_memory::faults::Fault;
use lock_memory::node::MemoryNode;
use lock_redlock::quorum::{Purpose, Recovery};

use crate::support::{MAX_TTL, Rig, WITHIN, acquire, claim, eventually, granted, release, votes, watch};

const MOMENT: Duration = Duration::from_millis(100);
/// How long a node abstains that knows of no deployment, where too few others remember.
const BLANK_DWELL: Duration = Duration::from_secs(300);

#[test]
fn a_new_deployment_waits_for_the_longest_lease_that_it_allows() {
    let rig = Rig::blank(3);
    let client = rig.connected();
    let error = acquire(&client, &claim(1)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable);
    let text = error.to_string();
    assert!(text.contains("0 of 3 nodes vote, 2 are needed") && text.contains("redlock init URL"), "{text}");
    rig.clock.advance(BLANK_DWELL - MOMENT);
    assert_eq!(votes(&watch(&client)), [false; 3]);
    rig.clock.advance(MOMENT * 50);
    let report = watch(&client);
    assert_eq!(votes(&report), [true; 3]);
    assert!(report.nodes.iter().all(|node| node.recovery == Some(Recovery::ByClock)), "{report:?}");
    granted(acquire(&client, &claim(1)));
}

#[test]
fn only_a_deployment_that_nobody_knows_can_be_declared_new() {
    let rig = Rig::blank(3);
    // A client was there before it was declared.
    watch(&rig.client());
    assert_eq!(votes(&rig.client().pass(Purpose::Init, WITHIN).unwrap()), [true; 3]);
    granted(acquire(&rig.connected(), &claim(1)));
    rig.nodes[0].forget();
    rig.nodes[1].forget();
    let error = rig.client().pass(Purpose::Init, WITHIN).unwrap_err();
    assert!(error.to_string().contains("node-2 already knows this deployment"), "{error}");
}

#[test]
fn a_node_that_forgot_abstains_until_the_longest_lease_in_use_is_over() {
    let rig = Rig::founded(3);
    let client = rig.connected();
    let lease = granted(acquire(&client, &claim(1)));
    rig.nodes[0].forget();
    assert!(matches!(acquire(&client, &claim(2)).unwrap(), Answer::Busy { .. }));
    let report = watch(&client);
    assert_eq!(votes(&report), [false, true, true]);
    rig.clock.advance(Ttl::DEFAULT.get() - MOMENT);
    assert_eq!(votes(&watch(&client)), [false, true, true]);
    rig.clock.advance(MOMENT * 10);
    let report = watch(&client);
    assert_eq!(votes(&report), [true; 3]);
    assert_eq!(report.nodes[0].recovery, Some(Recovery::FromOthers));
    let counter = report.nodes[0].view.as_ref().unwrap().counter;
    assert!(counter >= lease.tokens.high().get(), "its counter was recovered");
}

#[test]
fn clients_that_live_for_a_moment_bring_a_node_back_between_them() {
    let rig = Rig::founded(3);
    granted(acquire(&rig.connected(), &claim(1)));
    rig.nodes[0].restart();
    let mut passes = 0;
    while !votes(&watch(&rig.client()))[0] {
        rig.clock.advance(Duration::from_secs(5));
        passes += 1;
    }
    // 30 s and some drift: each client saw only a moment of it.
    assert!((6..=8).contains(&passes), "{passes}");
}

#[test]
fn a_node_that_forgets_again_begins_to_wait_again() {
    let rig = Rig::founded(3);
    granted(acquire(&rig.connected(), &claim(1)));
    rig.nodes[0].forget();
    watch(&rig.client());
    rig.clock.advance(Duration::from_secs(25));
    rig.nodes[0].forget();
    watch(&rig.client());
    rig.clock.advance(Duration::from_secs(25));
    assert_eq!(votes(&watch(&rig.client())), [false, true, true]);
    rig.clock.advance(Duration::from_secs(10));
    assert_eq!(votes(&watch(&rig.client())), [true; 3]);
}

#[test]
fn a_majority_that_forgot_votes_again_by_the_clock_and_is_reported() {
    let rig = Rig::founded(3);
    let client = rig.connected();
    let lease = granted(acquire(&client, &claim(1)));
    for node in [0, 1] {
        rig.nodes[node].forget();
        rig.nodes[node].restart();
    }
    assert_eq!(votes(&watch(&client)), [false, false, true]);
    assert_eq!(acquire(&client, &claim(2)).unwrap_err().kind(), ErrorKind::Unavailable);
    rig.clock.advance(BLANK_DWELL - MOMENT);
    assert_eq!(votes(&watch(&client)), [false, false, true], "nobody knows how long its leases were");
    rig.clock.advance(Duration::from_secs(5));
    let report = watch(&client);
    assert_eq!(votes(&report), [true; 3]);
    assert!(report.warnings().iter().any(|warning| warning.contains("its clock alone")), "{:?}", report.warnings());
    assert!(granted(acquire(&client, &claim(2))).tokens.low() > lease.tokens.high());
}

#[test]
fn a_node_that_cannot_be_reached_for_ever_does_not_keep_the_others_from_voting() {
    let rig = Rig::founded(3);
    granted(acquire(&rig.connected(), &claim(1)));
    rig.faults[2].fail_everything(Fault::Refused(ErrorKind::Unreachable));
    rig.nodes[0].forget();
    let client = rig.connected();
    rig.clock.advance(BLANK_DWELL + Duration::from_secs(5));
    assert_eq!(votes(&watch(&client)), [true, true, false]);
    granted(acquire(&client, &claim(2)));
}

#[test]
fn a_node_that_restarted_with_its_data_waits_too() {
    let rig = Rig::founded(3);
    let client = rig.connected();
    let lease = granted(acquire(&client, &claim(1)));
    release(&client, &lease).unwrap();
    rig.nodes[1].restart();
    granted(acquire(&client, &claim(2)));
    assert_eq!(votes(&watch(&client)), [true, false, true]);
    assert!(matches!(watch(&client).nodes[1].view.as_ref().unwrap().state, NodeState::Abstaining { .. }));
}

#[test]
fn other_nodes_and_other_limits_than_the_deployments_are_refused() {
    let rig = Rig::founded(4);
    let error = rig.client_of(&[0, 1, 2]).pass(Purpose::Watch, WITHIN).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Config);
    assert!(error.to_string().contains("belongs to a deployment of other nodes"), "{error}");
    let error = rig.client_allowing(MAX_TTL / 2).pass(Purpose::Watch, WITHIN).unwrap_err();
    assert!(error.to_string().contains("max_ttl is 1m, and the URL says 30s; set ?max_ttl=1m"), "{error}");
}

#[test]
fn a_pass_for_something_else_that_was_refused_stops_nobody() {
    let rig = Rig::founded(3);
    let client = rig.connected();
    assert!(client.pass(Purpose::Init, WITHIN).is_err());
    granted(acquire(&client, &claim(1)));
}

#[test]
fn a_node_that_refuses_this_client_is_reported_and_does_not_count() {
    let rig = Rig::founded(3);
    rig.faults[0].fail_everything(Fault::Refused(ErrorKind::Denied));
    let client = rig.client();
    let report = watch(&client);
    assert_eq!(votes(&report), [false, true, true]);
    assert!(report.warnings()[0].contains("node-0 does not count"), "{:?}", report.warnings());
    granted(acquire(&client, &claim(1)));
    rig.faults[1].fail_everything(Fault::Refused(ErrorKind::Denied));
    assert_eq!(watch(&rig.client()).check_reached().unwrap_err().kind(), ErrorKind::Denied);
}

#[test]
fn looking_often_keeps_nobody_from_watching() {
    let rig = Rig::founded(3);
    let client = rig.connected();
    rig.nodes.iter().for_each(MemoryNode::forget);
    assert!(acquire(&client, &claim(1)).is_err());
    eventually(|| {
        rig.clock.advance(Duration::from_millis(100));
        client.pass(Purpose::Look, WITHIN).unwrap();
        acquire(&client, &claim(2)).is_err_and(|error| error.to_string().contains("at most"))
    });
}

/// The data of a majority survived, so its deployment is known, and with it the longest lease.
#[test]
fn a_majority_that_restarted_with_its_data_waits_for_the_longest_lease_that_it_allowed() {
    let rig = Rig::founded(3);
    granted(acquire(&rig.connected(), &claim(1)));
    rig.nodes[0].restart();
    rig.nodes[1].restart();
    let client = rig.connected();
    rig.clock.advance(MAX_TTL - MOMENT);
    assert_eq!(votes(&watch(&client)), [false, false, true]);
    rig.clock.advance(Duration::from_secs(2));
    assert_eq!(votes(&watch(&client)), [true; 3]);
}

/// The lease may last as long as its own deployment allowed, and this client allows less.
#[test]
fn after_a_total_loss_a_client_that_allows_less_does_not_end_the_wait_sooner() {
    let rig = Rig::founded(3);
    let client = rig.connected();
    granted(acquire(&client, &claim(1)));
    rig.nodes.iter().for_each(MemoryNode::forget);
    let hasty = rig.client_allowing(Duration::from_secs(2));
    watch(&hasty);
    rig.clock.advance(BLANK_DWELL - MOMENT);
    assert_eq!(votes(&watch(&hasty)), [false; 3]);
    rig.clock.advance(Duration::from_secs(5));
    assert_eq!(votes(&watch(&hasty)), [true; 3]);
}

/// A job that runs once a night is the only client there is.
#[test]
fn clients_that_run_once_in_months_end_a_dwell_together() {
    let rig = Rig::founded(3);
    rig.nodes.iter().for_each(MemoryNode::restart);
    watch(&rig.client());
    rig.clock.advance(Duration::from_secs(390 * 24 * 60 * 60));
    assert_eq!(votes(&watch(&rig.client())), [true; 3]);
}

/// Without records, no later client knows since when the nodes abstain.
#[test]
fn no_end_is_promised_where_nothing_can_be_recorded() {
    let rig = Rig::founded(3);
    rig.nodes.iter().for_each(MemoryNode::restart);
    let told = || acquire(&rig.connected(), &claim(1)).unwrap_err().to_string();
    watch(&rig.client());
    assert!(told().contains("for 1m 1s at most"));
    for faults in &rig.faults[..2] {
        // Looking works, and marking has been done. No change of a node works.
        faults.fail_all(Operation::Connect, Fault::Refused(ErrorKind::Unavailable));
    }
    let text = told();
    assert!(text.contains("too few nodes could record the time") && !text.contains("at most"), "{text}");
    assert!(text.contains("refused on command"), "{text}");
}

/// If a clock is set, all records of its node are old. Even if this happens at a majority, the records do not agree.
#[test]
fn records_that_do_not_agree_do_not_end_a_dwell() {
    let clocks: Vec<_> = (0..3).map(|_| ManualClock::new()).collect();
    let rig = Rig::on_clocks(&clocks);
    rig.nodes.iter().for_each(MemoryNode::restart);
    watch(&rig.client());
    for (clock, hours) in clocks.iter().zip([3, 4, 5]) {
        clock.advance(Duration::from_secs(hours * 60 * 60));
    }
    assert_eq!(votes(&watch(&rig.client())), [false; 3], "nobody has waited");
    clocks.iter().for_each(|clock| clock.advance(MAX_TTL + Duration::from_secs(2)));
    assert_eq!(votes(&watch(&rig.client())), [true; 3], "they began again together");
}

/// The counter comes from a clock that was centuries ahead. No token could be drawn above it.
#[test]
fn a_counter_that_is_above_all_tokens_is_not_passed_on() {
    let clocks: Vec<_> = (0..3).map(|_| ManualClock::new()).collect();
    let rig = Rig::on_clocks(&clocks);
    clocks[0].advance(Duration::from_micros(FencingToken::MAX.get() + 1));
    for node in &rig.nodes {
        node.restart();
    }
    let client = rig.connected();
    rig.clock.advance(MAX_TTL * 2);
    assert_eq!(votes(&watch(&client)), [true; 3]);
    for owner in 1..4 {
        let lease = granted(acquire(&client, &claim(owner)));
        assert!(lease.tokens.high().get() < FencingToken::MAX.get() / 2, "{lease:?}");
        release(&client, &lease).unwrap();
    }
}

/// A node still has such a counter from an earlier version, which did not check it.
#[test]
fn a_counter_that_is_above_all_tokens_stays_where_it_is() {
    let rig = Rig::founded(3);
    let (epoch, membership) = (Epoch::from_random(7), rig.membership());
    let spent = Ask::Install { epoch, counter: FencingToken::MAX.get() + 1, longest: MAX_TTL, moves: 0, membership };
    rig.nodes[0].restart();
    for ask in [&Ask::Mark { epoch, membership: rig.membership() }, &spent] {
        BlockingQuorumNode::ask(&rig.nodes[0], ask, WITHIN).unwrap();
    }
    let seen = Arc::new([Sighting { member: "node-0".into(), recording: Recording::Begins(epoch) }]);
    let record = Ask::Record { seen, keep: MAX_TTL * 10 };
    rig.nodes.iter().for_each(|node| assert!(BlockingQuorumNode::ask(node, &record, WITHIN).is_ok()));
    rig.nodes[1].restart();
    let client = rig.connected();
    rig.clock.advance(MAX_TTL * 2);
    assert_eq!(votes(&watch(&client)), [true; 3]);
    granted(acquire(&client, &claim(1)));
}

#[test]
fn looking_changes_nothing() {
    let rig = Rig::founded(3);
    rig.nodes[0].forget();
    let before = rig.nodes[0].store();
    let client = rig.client();
    client.pass(Purpose::Look, WITHIN).unwrap();
    drop(client);
    let view = |store: &lock_memory::node::NodeStore| store.view(rig.nodes[0].clock(), &rig.nodes[0].run());
    assert_eq!(view(&rig.nodes[0].store()), view(&before), "it was marked");
}

/// Two of three nodes restart with clocks that are an hour ahead, a client marks them, and the clocks are corrected. After that
/// each client lives for one pass.
#[test]
fn clocks_that_are_set_back_delay_short_lived_clients_for_one_dwell() {
    let rig = Rig::in_use(3);
    rig.nodes[..2].iter().for_each(MemoryNode::restart);
    watch(&rig.client());
    let epochs: Vec<_> = rig.nodes[..2].iter().map(|node| node.store().view(node.clock(), &node.run()).state).collect();
    for node in &rig.nodes[..2] {
        let mut store = node.store();
        for (index, state) in epochs.iter().enumerate() {
            let NodeState::Abstaining { epoch, .. } = *state else { panic!("it votes: {epochs:?}") };
            let (member, recording) = (format!("node-{index}"), Recording::BeginsAnew(epoch));
            let ask = Ask::Record { seen: [Sighting { member, recording }].into(), keep: Duration::from_secs(86_400) };
            store.ask(node.clock() + Duration::from_secs(3600), None, &node.run(), &ask).unwrap();
        }
        node.put_back(store);
    }
    let is_over = |_: &i32| {
        rig.clock.advance(MAX_TTL / 3);
        votes(&watch(&rig.client())) == [true; 3]
    };
    let passes = (1..=6).find(is_over);
    assert!(passes.is_some(), "two nodes still abstain after {:?}", MAX_TTL * 2);
}
