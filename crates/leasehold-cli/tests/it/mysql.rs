//! `leasehold` on MariaDB: what differs from other stores, and each subcommand once.

use std::sync::Arc;

use crate::support::leasehold::{Leasehold, code, text, until_let_go};
use crate::support::servers::{a_broken_lock_is_seen, found, report, the_next_one_waits};

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

#[test]
fn a_command_has_the_lock_and_the_next_one_waits_for_it() {
    the_next_one_waits(&server().new_database());
}

#[test]
fn a_broken_lock_is_seen_by_its_holder_and_by_a_watch() {
    a_broken_lock_is_seen(&server().new_database());
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
