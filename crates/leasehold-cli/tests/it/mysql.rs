//! `leasehold` on MariaDB: what differs from other stores, and each subcommand once.

use std::sync::Arc;

use crate::support::leasehold::{Leasehold, Running, code, text, until_let_go};
use crate::support::wait_for;
use crate::watching::Watch;
use serde_json::{Value, json};
use test_support::{Finish, MysqlOptions, MysqlServer, Shared};

/// The server that the tests share. Each has a database of its own.
fn server() -> Arc<MysqlServer> {
    static SERVER: Shared<MysqlServer> = Shared::new();
    SERVER.get(MysqlServer::start)
}

/// The URL of a database, for another account.
fn as_account(account: &str, url: &str) -> String {
    url.replace("mysql://locker@", &format!("mysql://{account}@"))
}

/// What `doctor --json` reports, and its exit code.
fn report(leasehold: &Leasehold, url: &str) -> (Value, i32) {
    let output = leasehold.command(&format!("doctor --json --url {url}")).finish();
    let report = serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{}", text(&output.stderr)));
    (report, code(output.status))
}

/// The verdict on this, and what was found.
fn found<'a>(report: &'a Value, check: &str) -> (&'a str, String) {
    let found = report["checks"].as_array().unwrap().iter().find(|found| found["check"] == check);
    let found = found.unwrap_or_else(|| panic!("{check}: {report}"));
    (found["verdict"].as_str().unwrap(), found.to_string())
}

#[test]
fn a_command_has_the_lock_and_the_next_one_waits_for_it() {
    let (server, leasehold) = (server(), Leasehold::new());
    let url = format!("--url {}", server.new_database());
    let script = format!("echo $LEASEHOLD_FENCE > token; {}", until_let_go("one"));
    let first = leasehold.start(&format!("{url} --why report a"), &script, "one");
    let busy = leasehold.run(&format!("{url} -n a"), "true");
    assert_eq!(code(busy.status), 75, "{}", text(&busy.stderr));
    let waiter = Running::spawn(leasehold.script(&format!("{url} a"), "echo $LEASEHOLD_FENCE"));
    wait_for("a waiter", || (leasehold.json(&format!("show {url} a"))["waiters"] == 1).then_some(()));
    let shown = leasehold.json(&format!("show {url} a"));
    let token: u64 = leasehold.scratch.text_of("token").trim().parse().unwrap();
    assert_eq!((&shown["token"], &shown["why"]), (&token.into(), &"report".into()), "{shown}");
    leasehold.let_go("one");
    let output = waiter.end();
    assert_eq!(code(output.status), 0, "{}", text(&output.stderr));
    assert!(text(&output.stdout).trim().parse::<u64>().unwrap() > token);
    assert_eq!(code(first.end().status), 0);
    assert_eq!(leasehold.json(&format!("ls {url}")), json!([]));
}

#[test]
fn a_broken_lock_is_seen_by_its_holder_and_by_a_watch() {
    let (server, leasehold) = (server(), Leasehold::new());
    let url = format!("--url {}", server.new_database());
    let holder = leasehold.start(&format!("{url} --ttl 3s a"), &until_let_go("held"), "held");
    let watch = Watch::start(leasehold.command(&format!("watch {url} --json --every 100ms")));
    let token = watch.event("acquired", "a")["lease"]["token"].as_u64().unwrap();
    let broken = leasehold.command(&format!("break {url} a --yes --why stuck --token {token}")).finish();
    assert_eq!(code(broken.status), 0, "{}", text(&broken.stderr));
    watch.event("broken", "a");
    let output = holder.end();
    let said = text(&output.stderr);
    assert_eq!(code(output.status), 76, "{said}");
    assert!(said.contains("an operator ended it") && said.contains("stuck"), "{said}");
}

#[test]
fn slots_are_limited_and_a_leader_is_elected() {
    let (server, leasehold) = (server(), Leasehold::new());
    let url = format!("--url {}", server.new_database());
    let _slot = leasehold.start(&format!("{url} --slots 1 gpu"), &until_let_go("slot"), "slot");
    let changed = leasehold.command(&format!("limit {url} gpu 2")).finish();
    assert_eq!(text(&changed.stdout).trim(), "gpu has 2 slots now; before, it had 1", "{}", text(&changed.stderr));
    let other = leasehold.run(&format!("{url} -n --slots 2 gpu"), "echo $LEASEHOLD_SLOT");
    assert_eq!(text(&other.stdout), "1\n", "{}", text(&other.stderr));
    let mut command = leasehold.command(&format!("elect {url} boss -- sh -c"));
    command.arg("echo $LEASEHOLD_FENCE");
    let output = command.finish();
    assert!(text(&output.stdout).trim().parse::<u64>().unwrap() > 0, "{}", text(&output.stderr));
}

#[test]
fn a_database_that_cannot_be_used_says_why() {
    let leasehold = Leasehold::new();
    let server = MysqlServer::start_with(MysqlOptions::default().volatile().require_password("sesame"));
    let url = server.url();
    for (url, expected, words) in [
        (url.replace("sesame", "mustard"), 77, "Access denied"),
        ("mysql://app@127.0.0.1:1/shop".to_owned(), 69, "onnection refused"),
        (url.replace("/test_locks", "/test_locks_9"), 77, "check the name of the database"),
        (url.replace("/test_locks", ""), 78, "it names no database"),
        (format!("{url}?timeout=1s"), 78, "timeout"),
    ] {
        let refused = leasehold.run(&format!("-n --url {url} a"), "true");
        let said = text(&refused.stderr);
        assert_eq!(code(refused.status), expected, "{url}: {said}");
        assert!(said.contains(words) && !said.contains("sesame") && !said.contains("mustard"), "{url}: {said}");
    }
    let granted = leasehold.script("-n a", "true").env("LEASEHOLD_URL", url).finish();
    assert_eq!((code(granted.status), text(&granted.stderr)), (0, String::new()));
}

#[test]
fn the_printed_schema_is_all_that_clients_without_rights_need() {
    let (server, leasehold) = (server(), Leasehold::new());
    let url = server.new_database();
    let database = url.rsplit('/').next().unwrap();
    server.execute("CREATE USER leasehold_locker; CREATE USER leasehold_fencer");
    let locker = as_account("leasehold_locker", &url);
    let refused = leasehold.run(&format!("-n --url {locker} a"), "true");
    assert_eq!(code(refused.status), 77, "{}", text(&refused.stderr));

    let printed = leasehold.command("mysql schema").finish();
    server.execute_in(database, &text(&printed.stdout));
    let script = format!("echo $LEASEHOLD_FENCE > token; {}", until_let_go("held"));
    let _holder = leasehold.start(&format!("--url {locker} a"), &script, "held");
    let (told, exit) = report(&leasehold, &locker);
    assert_eq!((exit, found(&told, "rights").0, found(&told, "trial").0), (0, "ok", "ok"), "{told}");
    let refused = leasehold.run(&format!("-n --url {} b", as_account("leasehold_fencer", &url)), "true");
    assert_eq!(code(refused.status), 77, "{}", text(&refused.stderr));
    let refused = leasehold.command("mysql schema --locker=").finish();
    let said = text(&refused.stderr);
    assert!(code(refused.status) == 64 && said.contains("write USER@HOST") && refused.stdout.is_empty(), "{said}");
}

#[test]
fn a_doctor_finds_what_endangers_locks() {
    let leasehold = Leasehold::new();
    let (told, exit) = report(&leasehold, &server().new_database());
    assert_eq!((exit, &told["verdict"]), (0, &"remark".into()), "{told}");
    for check in ["reach", "version", "durability", "binary log", "clock", "waiting", "tokens", "exclusion"] {
        assert_eq!(found(&told, check).0, "ok", "{check}: {told}");
    }
    let volatile = MysqlServer::start_with(MysqlOptions::default().volatile());
    let (told, exit) = report(&leasehold, &volatile.url());
    let (verdict, said) = found(&told, "durability");
    assert!(exit == 78 && verdict == "finding" && said.contains("innodb_flush_log_at_trx_commit"), "{told}");
}
