use std::time::Duration;

use super::super::ensemble::ZookeeperEnsemble;
use super::super::programs::run_command;
use crate::bounds::wait_for;
use crate::{ZookeeperOptions, four_letter, temp_dir};

#[test]
fn an_ensemble_elects_another_leader() {
    let mut ensemble = ZookeeperEnsemble::start();
    let first = ensemble.leader();
    assert_eq!(ensemble.followers().len(), 2);
    ensemble.server(first).run(&["create", "/kept", "one"]);
    ensemble.server_mut(first).kill();
    let second = ensemble.leader();
    assert_ne!(second, first);
    assert!(!ensemble.is_serving(first));
    ensemble.server_mut(first).restart_empty();
    ensemble.wait_until_serving(first);
    assert_eq!(ensemble.server(first).run(&["get", "/kept"]), "one");
    assert!(ensemble.followers().contains(&first));
}

#[test]
fn an_ensemble_without_a_majority_serves_nobody_and_comes_back() {
    let mut ensemble = ZookeeperEnsemble::start_with(ZookeeperOptions::default().volatile().read_only());
    let leader = ensemble.leader();
    ensemble.server(leader).run(&["create", "/kept", "one"]);
    let followers = ensemble.followers();
    followers.iter().for_each(|&follower| ensemble.server_mut(follower).kill());
    wait_for("the leader resigns", || !ensemble.is_serving(leader));
    wait_for("it serves clients that read", || {
        four_letter(ensemble.server(leader).port(), "srvr").contains("Mode: read-only")
    });
    followers.iter().for_each(|&follower| ensemble.server_mut(follower).restart_with_data());
    (0..3).for_each(|number| ensemble.wait_until_serving(number));
    let folder = temp_dir();
    assert_eq!(run_command(&ensemble.addresses(), folder.path(), &[], &["get", "/kept"]).unwrap(), "one");
}

#[test]
fn a_suspended_leader_is_replaced() {
    let ensemble = ZookeeperEnsemble::start();
    let first = ensemble.leader();
    ensemble.server(first).stop();
    assert_ne!(ensemble.leader(), first);
    ensemble.server(first).resume();
    wait_for("the old leader follows", || ensemble.followers().contains(&first));
}

#[test]
fn a_leader_that_is_cut_off_is_replaced() {
    let ensemble = ZookeeperEnsemble::start();
    let first = ensemble.leader();
    ensemble.cut(first);
    let second = ensemble.leader();
    assert_ne!(second, first);
    wait_for("the old leader resigns", || !ensemble.is_serving(first));
    ensemble.server(second).run(&["create", "/late", "two"]);
    // Neither election nor data reaches it.
    std::thread::sleep(Duration::from_secs(2));
    assert!(!ensemble.is_serving(first));
    ensemble.heal(first);
    ensemble.wait_until_serving(first);
    assert_eq!(ensemble.server(first).run(&["get", "/late"]), "two");
}
