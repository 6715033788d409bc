//! `leasehold run` of readers, writers and semaphores, and what `ls` and `show` say of them.

use std::collections::BTreeSet;

use crate::support::leasehold::{Leasehold, Running, code, report, text};
use crate::support::nodes::Nodes;
use crate::support::wait_for;
use serde_json::{Value, json};
use test_support::{Finish, RedisServer};

/// Says in a file of its own that it runs, with its slot, and goes on until the file `done` is there.
fn hold(me: &str) -> String {
    format!("echo ${{LEASEHOLD_SLOT-none}} > {me}; while [ ! -e done ]; do sleep 0.02; done")
}

fn let_go(leasehold: &Leasehold) {
    std::fs::write(leasehold.scratch.file("done"), "").unwrap();
}

/// The default store, and a Redis as options of a command line.
fn stores(server: &RedisServer) -> [String; 2] {
    [String::new(), format!("--url {}", server.url())]
}

#[test]
fn readers_run_side_by_side_and_a_writer_waits_for_them() {
    let server = RedisServer::start();
    for url in stores(&server) {
        let leasehold = Leasehold::new();
        let show = || leasehold.json(&format!("show {url} a"));
        let one = leasehold.start(&format!("{url} -s --why one a"), &hold("one"), "one");
        let two = leasehold.start(&format!("{url} --shared --why two a"), &hold("two"), "two");
        assert_eq!(leasehold.scratch.text_of("two"), "none\n");
        let busy = leasehold.run(&format!("{url} -n a"), "true");
        assert_eq!(code(busy.status), 75);
        assert!(text(&busy.stderr).contains("and 1 other"), "{}", text(&busy.stderr));
        let writer = Running::spawn(leasehold.script(&format!("{url} -x -w 20s --why write a"), "ls done"));
        let shown = wait_for("the writer to wait", || Some(show()).filter(|lock| lock["waiters"] == 1));
        assert_eq!((&shown["kind"], &shown["leases"], &shown["limit"]), (&"lock".into(), &2.into(), &Value::Null));
        let waiting = &shown["queue"][0];
        assert_eq!(
            (&waiting["mode"], &waiting["permits"], &waiting["why"]),
            (&"exclusive".into(), &0.into(), &"write".into())
        );
        assert!(waiting["pid"].is_u64() && waiting["host"].is_string() && waiting["waiting_ms"].is_u64(), "{shown}");
        let holders = shown["holders"].as_array().unwrap();
        assert!(holders.len() == 2 && holders.iter().all(|held| held["mode"] == "shared"), "{shown}");
        assert!(holders.iter().all(|held| held["remaining_ms"].as_u64() > Some(0)), "{shown}");
        let late = leasehold.run(&format!("{url} -s -n a"), "true");
        assert_eq!(code(late.status), 75, "a reader does not pass a writer that waits");
        let_go(&leasehold);
        assert_eq!(code(writer.end().status), 0, "the writer ran before the readers had ended");
        assert_eq!([one, two].map(|reader| code(reader.end().status)), [0, 0]);
        assert_eq!(show()["held"], false);
    }
}

#[test]
fn every_command_has_a_slot_of_its_own_and_no_more_run_than_there_are_slots() {
    let server = RedisServer::start();
    for url in stores(&server) {
        let leasehold = Leasehold::new();
        let line = format!("{url} --slots 3 gpu");
        let running = ["one", "two", "three"].map(|me| leasehold.start(&line, &hold(me), me));
        let slots: BTreeSet<_> = ["one", "two", "three"].map(|me| leasehold.scratch.text_of(me)).into();
        assert_eq!(slots, ["0\n", "1\n", "2\n"].map(str::to_owned).into());
        assert_eq!(code(leasehold.run(&format!("-n {line}"), "true").status), 75);
        let waiter = Running::spawn(leasehold.script(&format!("-w 20s --json {line}"), "ls done"));
        let listed = || leasehold.json(&format!("ls {url}"))[0].clone();
        let shown = wait_for("somebody to wait", || Some(listed()).filter(|lock| lock["waiters"] == 1));
        assert_eq!((&shown["kind"], &shown["limit"]), (&"semaphore".into(), &3.into()));
        let held = shown["holders"].as_array().unwrap().iter().map(|held| held["slots"][0].as_u64());
        assert_eq!(held.collect::<BTreeSet<_>>(), [0, 1, 2].map(Some).into());
        let table = text(&leasehold.command(&format!("ls {url}")).finish().stdout);
        assert!((0..3).all(|slot| table.contains(&format!("slot {slot} of 3"))) && table.contains("1 slot"), "{table}");
        assert_eq!(table.lines().count(), 4, "{table}");
        let_go(&leasehold);
        let waited = waiter.end();
        assert_eq!(code(waited.status), 0, "{}", text(&waited.stderr));
        assert!(report(&waited)["slot"].as_u64() < Some(3), "{}", report(&waited));
        assert_eq!(running.map(|running| code(running.end().status)), [0; 3]);
    }
}

#[test]
fn another_kind_or_number_of_slots_is_an_error_that_names_both() {
    let server = RedisServer::start();
    for url in stores(&server) {
        let leasehold = Leasehold::new();
        let holders = [
            leasehold.start(&format!("{url} --slots 3 gpu"), &hold("gpu"), "gpu"),
            leasehold.start(&format!("{url} -s book"), &hold("book"), "book"),
        ];
        for (asked, both) in [
            ("--slots 4 gpu", ["3", "4"]),
            ("gpu", ["semaphore", "lock"]),
            ("-s gpu", ["semaphore", "lock"]),
            ("--slots 3 book", ["lock", "semaphore"]),
        ] {
            for patience in ["-n", "-w 20s", ""] {
                let refused = leasehold.run(&format!("{url} {patience} {asked}"), "touch ran");
                let said = text(&refused.stderr);
                assert_eq!(code(refused.status), 78, "{patience} {asked}: {said}");
                assert!(both.iter().all(|word| said.contains(word)), "{patience} {asked}: {said}");
            }
        }
        assert!(!leasehold.scratch.file("ran").exists());
        let_go(&leasehold);
        assert_eq!(holders.map(|holder| code(holder.end().status)), [0, 0]);
        assert_eq!(code(leasehold.run(&format!("{url} -n --slots 4 gpu"), "true").status), 0, "free again");
    }
}

#[test]
fn the_number_of_slots_can_be_changed_while_commands_hold_them() {
    let server = RedisServer::start();
    for url in stores(&server) {
        let leasehold = Leasehold::new();
        let holder = leasehold.start(&format!("{url} --slots 1 gpu"), &hold("one"), "one");
        let refused = leasehold.run(&format!("{url} -n --slots 2 gpu"), "true");
        assert_eq!(code(refused.status), 78);
        assert!(text(&refused.stderr).contains("leasehold limit"), "{}", text(&refused.stderr));
        let waiter = Running::spawn(leasehold.script(&format!("{url} -w 20s --slots 1 gpu"), "echo $LEASEHOLD_SLOT"));
        wait_for("somebody to wait", || {
            Some(leasehold.json(&format!("show {url} gpu"))).filter(|gpu| gpu["waiters"] == 1)
        });
        let changed = leasehold.command(&format!("limit {url} gpu 2")).finish();
        let said = text(&changed.stdout);
        assert_eq!((code(changed.status), said.trim()), (0, "gpu has 2 slots now; before, it had 1"));
        let served = waiter.end();
        assert_eq!((code(served.status), text(&served.stdout).trim()), (0, "1"), "{}", text(&served.stderr));
        // Those of both numbers go on with the new one.
        assert_eq!(code(leasehold.run(&format!("{url} -n --slots 2 gpu"), "true").status), 0);
        assert_eq!(leasehold.json(&format!("limit {url} gpu 2")), json!({ "name": "gpu", "old": 2, "new": 2 }));
        assert_eq!(leasehold.json(&format!("limit {url} gpu 1")), json!({ "name": "gpu", "old": 2, "new": 1 }));
        assert_eq!(code(leasehold.run(&format!("{url} -n --slots 2 gpu"), "true").status), 75);
        let_go(&leasehold);
        assert_eq!(code(holder.end().status), 0);
    }
}

#[test]
fn a_number_of_slots_that_nobody_uses_is_set_for_those_who_give_another_one() {
    let server = RedisServer::start();
    for url in stores(&server) {
        let leasehold = Leasehold::new();
        let set = |line: &str| text(&leasehold.command(&format!("limit {url} {line}")).finish().stdout);
        assert!(set("gpu 2").contains("--from"));
        assert_eq!(code(leasehold.run(&format!("{url} -n --slots 5 gpu"), "true").status), 78);
        assert_eq!(set("gpu 2 --from 5").trim(), "gpu has 2 slots, as before, also for commands with --slots 5");
        assert_eq!(code(leasehold.run(&format!("{url} -n --slots 5 gpu"), "true").status), 0);
        assert_eq!(leasehold.json(&format!("limit {url} gpu 3 --from 5"))["old"], 2);
        assert_eq!(leasehold.json(&format!("limit {url} gpu 16 --from 4"))["old"], 3, "it had not replaced 4");
        assert_eq!(
            set("gpu 8 --from 9").trim(),
            "gpu has 8 slots now, also for commands with --slots 9; before, it had 16"
        );
        let holder = leasehold.start(&format!("{url} book"), &hold("book"), "book");
        let refused = leasehold.command(&format!("limit {url} --json book 2")).finish();
        assert_eq!(code(refused.status), 78, "{}", text(&refused.stderr));
        assert!(report(&refused)["message"].as_str().is_some_and(|message| message.contains("lock")));
        let_go(&leasehold);
        assert_eq!(code(holder.end().status), 0);
    }
    let leasehold = Leasehold::new();
    for (line, exit) in [("gpu 0", 64), ("gpu many", 64), ("gpu", 64), ("--url memory: gpu 2", 78)] {
        assert_eq!(code(leasehold.command(&format!("limit {line}")).finish().status), exit, "{line}");
    }
}

#[test]
fn a_barging_command_passes_those_who_have_no_use_for_the_lock() {
    let server = RedisServer::start();
    for url in stores(&server) {
        let leasehold = Leasehold::new();
        let reader = leasehold.start(&format!("{url} -s a"), &hold("reader"), "reader");
        let writer = Running::spawn(leasehold.script(&format!("{url} -w 20s a"), "ls done"));
        wait_for("the writer to wait", || Some(leasehold.json(&format!("show {url} a"))).filter(|a| a["waiters"] == 1));
        assert_eq!(code(leasehold.run(&format!("{url} -s -n a"), "true").status), 75);
        assert_eq!(code(leasehold.run(&format!("{url} -s -n --barging a"), "true").status), 0);
        let_go(&leasehold);
        assert_eq!([reader, writer].map(|one| code(one.end().status)), [0, 0]);
    }
}

#[test]
fn the_slot_in_the_environment_is_that_of_the_innermost_run() {
    let leasehold = Leasehold::new();
    let inner = |line: &str| format!("{} run {line} -- sh -c", env!("CARGO_BIN_EXE_leasehold"));
    let script = format!("{} 'echo ${{LEASEHOLD_SLOT-none}}'", inner("deploy"));
    assert_eq!(text(&leasehold.run("--slots 2 gpu", &script).stdout), "none\n");
    let same = leasehold.run("--slots 2 gpu", &format!("{} true", inner("--slots 2 gpu")));
    assert_eq!(code(same.status), 75);
    assert!(text(&same.stderr).contains("enclosing"), "{}", text(&same.stderr));
    let other = leasehold.run("--slots 2 gpu", &format!("{} true", inner("gpu")));
    assert_eq!(code(other.status), 78, "{}", text(&other.stderr));
}

#[test]
fn what_makes_no_sense_is_refused_before_anything_is_asked() {
    let leasehold = Leasehold::new();
    for (options, word) in [
        ("--slots 0 a", "not between 1 and"),
        ("--slots many a", "whole number"),
        ("-s -x a", "cannot be used with"),
        ("-s --slots 2 a", "cannot be used with"),
    ] {
        let refused = leasehold.run(options, "touch ran");
        assert_eq!(code(refused.status), 64, "{options}");
        assert!(text(&refused.stderr).contains(word), "{options}: {}", text(&refused.stderr));
    }
    assert!(!leasehold.scratch.file("ran").exists() && !leasehold.database().exists());
}

#[test]
fn a_reader_or_a_slot_that_is_lost_ends_the_command() {
    let leasehold = Leasehold::new();
    let server = RedisServer::start();
    let lines = [("read", "-s a"), ("slot", "--slots 2 b")];
    let running = lines.map(|(me, line)| {
        leasehold.start(
            &format!("--url {} --ttl 3s {line}", server.url()),
            &format!("{}; touch end-{me}", hold(me)),
            me,
        )
    });
    let () = server.command(&["FLUSHALL"]);
    assert_eq!(running.map(|running| code(running.end().status)), [76, 76]);
    assert!(!leasehold.scratch.file("end-read").exists() && !leasehold.scratch.file("end-slot").exists());
}

#[test]
fn a_quorum_has_neither_readers_nor_slots_and_says_so() {
    let leasehold = Leasehold::new();
    let nodes = Nodes::founded(3);
    for (options, word) in [("-s", "read locks"), ("--slots 2", "permits")] {
        let refused = leasehold.run(&format!("--url {} {options} -n a", nodes.url()), "touch ran");
        let said = text(&refused.stderr);
        assert_eq!(code(refused.status), 78, "{options}: {said}");
        assert!(said.contains(word), "{options}: {said}");
    }
    assert!(!leasehold.scratch.file("ran").exists());
}
