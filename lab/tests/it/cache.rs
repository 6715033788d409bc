//! `cargo xtask lab cache`: the faults really show, single flight prevents them, and nothing is left behind.

use std::process::Command;

use crate::support::{Lab, code, text};
use serde_json::{Value, json};
use test_support::bounds::wait_for;
use test_support::{Finish, RedisServer};

const CALLERS: u64 = 8;

/// The scene with few callers.
fn scene(lab: &Lab, options: &str) -> Command {
    lab.command(&format!("cache --callers 8 {options}"))
}

fn assert_the_story(lab: &Lab, options: &str) {
    let output = scene(lab, options).arg("--json").finish();
    assert_eq!((code(output.status), text(&output.stderr).as_str()), (0, ""));
    let story: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(story["callers"], CALLERS);
    let stages = story["stages"].as_array().unwrap();
    let seen = |stage: &Value| ["label", "calls", "at_once", "old", "right"].map(|what| stage[what].clone());
    let expected = [
        ["no lock".into(), json!(8), json!(8), json!(0), json!(false)],
        ["lock, one look".into(), json!(8), json!(1), json!(0), json!(false)],
        ["single flight".into(), json!(1), json!(1), json!(0), json!(true)],
        ["old value".into(), json!(1), json!(1), json!(7), json!(true)],
        ["absent, not cached".into(), json!(8), json!(1), json!(0), json!(false)],
        ["absent, cached".into(), json!(1), json!(1), json!(0), json!(true)],
        ["same ttl".into(), json!(8), json!(8), json!(0), json!(false)],
    ];
    assert_eq!(stages[..7].iter().map(seen).collect::<Vec<_>>(), expected);
    let [label, calls, at_once, _, right] = seen(&stages[7]);
    assert_eq!((label, calls, right), ("shortened ttl".into(), json!(8), json!(true)));
    assert!(at_once.as_u64().unwrap() <= CALLERS / 2, "{at_once}");
    assert_eq!(stages.len(), 8);
}

#[test]
fn the_story_is_true_with_locks_in_a_file_which_is_gone_afterwards() {
    let lab = Lab::new();
    assert_the_story(&lab, "");
    lab.assert_nothing_is_left();
}

#[test]
fn the_story_is_true_with_locks_in_redis_which_are_released() {
    let server = RedisServer::start();
    server.command::<()>(&["SET", "shop:mine", "1"]);
    let lab = Lab::new();
    assert_the_story(&lab, &format!("--url {}?prefix=shop", server.url()));
    wait_for("no keys but those from before", || (server.keys() == ["shop:mine"]).then_some(()));
}

#[test]
fn the_story_is_told_in_plain_text_where_nobody_sees_colours() {
    let lab = Lab::new();
    let output = scene(&lab, "").finish();
    let (told, progress) = (text(&output.stdout), text(&output.stderr));
    assert!(!told.contains('\u{1b}') && !progress.contains('\u{1b}'), "{told}{progress}");
    assert!(told.lines().all(|line| line.chars().count() < 100), "{told}");
    assert!(told.contains("    calls 8 of 8, at once 8\n"), "{told}");
    assert!(told.contains("    calls 1 of 8, at once 1, old values 7\n"), "{told}");
    for explained in ["\n  calls       calls of the database\n", "\n  at once     ", "\n  old values  "] {
        assert!(told.contains(explained), "{explained}: {told}");
    }
    assert!(progress.contains("stage 8 of 8: shortened ttl\n"), "{progress}");
}

#[test]
fn what_the_scene_cannot_use_is_refused() {
    let lab = Lab::new();
    for (options, expected) in
        [("--callers 7", 64), ("--url memory:", 78), ("--url redsi://h", 78), ("--url redis://127.0.0.1:1", 69)]
    {
        let output = scene(&lab, options).finish();
        assert_eq!(code(output.status), expected, "{options}: {}", text(&output.stderr));
    }
}
