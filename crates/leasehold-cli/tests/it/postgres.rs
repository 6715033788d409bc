//! `leasehold` on PostgreSQL: what differs from other stores, and each subcommand once.

use std::sync::Arc;

use crate::support::leasehold::{Leasehold, Running, code, text, until_let_go};
use crate::support::servers::{a_broken_lock_is_seen, found, report, the_next_one_waits};
use crate::support::wait_for;

use test_support::{Finish, PostgresOptions, PostgresServer, Shared};

/// The server that the tests share. Each has a database of its own.
fn server() -> Arc<PostgresServer> {
    static SERVER: Shared<PostgresServer> = Shared::new();
    SERVER.get(PostgresServer::start)
}

/// The URL of a database, for another role.
fn as_role(role: &str, url: &str) -> String {
    url.replace("postgres://postgres@", &format!("postgres://{role}@"))
}

/// The SQL that `leasehold postgres schema` prints.
fn schema(leasehold: &Leasehold, options: &str) -> String {
    let output = leasehold.command(&format!("postgres schema {options}")).finish();
    assert_eq!(code(output.status), 0, "{}", text(&output.stderr));
    text(&output.stdout)
}

#[test]
fn a_command_has_the_lock_and_the_next_one_waits_for_it() {
    the_next_one_waits(&server().database("waits"));
}

#[test]
fn a_broken_lock_is_seen_by_its_holder_and_by_a_watch() {
    a_broken_lock_is_seen(&server().database("broken"));
}

#[test]
fn the_next_leader_follows_one_that_resigns() {
    let (server, leasehold) = (server(), Leasehold::new());
    let url = format!("--url {}", server.database("leaders"));
    let lead = |script: &str| {
        let mut command = leasehold.command(&format!("elect {url} boss -- sh -c"));
        command.arg(script);
        Running::spawn(command)
    };
    let first = lead(&until_let_go("one"));
    leasehold.scratch.text_of("one");
    let second = lead("echo $LEASEHOLD_FENCE");
    wait_for("a candidate", || (leasehold.json(&format!("show {url} boss"))["waiters"] == 1).then_some(()));
    leasehold.let_go("one");
    assert_eq!(code(first.end().status), 0);
    let output = second.end();
    assert!(text(&output.stdout).trim().parse::<u64>().unwrap() > 0, "{}", text(&output.stderr));
}

#[test]
fn slots_are_limited_and_a_name_is_in_one_use() {
    let (server, leasehold) = (server(), Leasehold::new());
    let url = format!("--url {}", server.database("slots"));
    let _slot = leasehold.start(&format!("{url} --slots 1 gpu"), &until_let_go("slot"), "slot");
    let _lock = leasehold.start(&format!("{url} book"), &until_let_go("lock"), "lock");
    for (line, words) in
        [("--slots 2 gpu", ["1", "2"]), ("gpu", ["semaphore", "lock"]), ("--slots 2 book", ["lock", "semaphore"])]
    {
        let refused = leasehold.run(&format!("{url} -n {line}"), "true");
        let said = text(&refused.stderr);
        assert_eq!(code(refused.status), 78, "{line}: {said}");
        assert!(words.iter().all(|word| said.contains(word)), "{line}: {said}");
    }
    let changed = leasehold.command(&format!("limit {url} gpu 2")).finish();
    assert_eq!(text(&changed.stdout).trim(), "gpu has 2 slots now; before, it had 1", "{}", text(&changed.stderr));
    let other = leasehold.run(&format!("{url} -n --slots 2 gpu"), "echo $LEASEHOLD_SLOT");
    assert_eq!(text(&other.stdout), "1\n", "{}", text(&other.stderr));
}

/// A transaction of an application outlives the run that gave it the token.
#[test]
fn a_lock_that_a_transaction_keeps_is_shown_and_each_command_says_what_keeps_it() {
    let (server, leasehold) = (server(), Leasehold::new());
    let url = format!("--url {}", server.database("kept"));
    let script = format!("echo $LEASEHOLD_FENCE > token; {}", until_let_go("one"));
    let holder = leasehold.start(&format!("{url} --ttl 6s a"), &script, "one");
    let token = leasehold.scratch.text_of("token").trim().to_owned();
    let fenced = format!("SELECT leasehold.fence('a', {token}); SELECT pg_sleep(60)");
    let user = std::thread::spawn({
        let server = Arc::clone(&server);
        move || std::panic::catch_unwind(|| server.psql_in("kept", &fenced))
    });
    let sleeps = "FROM pg_stat_activity WHERE datname = 'kept' AND wait_event = 'PgSleep'";
    let count = format!("SELECT count(*) {sleeps}");
    wait_for("a fenced transaction", || (server.psql(&count) == "1").then_some(()));
    leasehold.let_go("one");
    let said = text(&holder.end().stderr);
    assert!(said.contains("a is kept until its lease ends, and the transaction that is fenced by it"), "{said}");
    wait_for("the end of the lease", || (leasehold.json(&format!("show {url} a"))["remaining_ms"] == 0).then_some(()));
    assert_eq!(leasehold.json(&format!("ls {url}"))[0]["name"], "a");
    for (line, expected, words) in [
        ("run -n a -- true", 75, "kept by a transaction that is fenced"),
        (&format!("break a --yes --token {token}"), 1, "pg_terminate_backend"),
    ] {
        let (verb, rest) = line.split_once(' ').unwrap();
        let refused = leasehold.command(&format!("{verb} {url} {rest}")).finish();
        let said = text(&refused.stderr);
        assert!(code(refused.status) == expected && said.contains(words), "{line}: {said}");
    }
    server.psql(&format!("SELECT pg_terminate_backend(pid) {sleeps}"));
    assert!(user.join().unwrap().is_err());
    let granted = leasehold.run(&format!("{url} -w 20s a"), "true");
    assert_eq!(code(granted.status), 0, "{}", text(&granted.stderr));
}

#[test]
fn a_database_that_cannot_be_used_says_why() {
    let leasehold = Leasehold::new();
    let server = PostgresServer::start_with(PostgresOptions::default().require_password("sesame"));
    let url = server.url();
    for (url, expected, words) in [
        (url.replace("sesame", "mustard"), 77, "password authentication failed"),
        ("postgres://app@127.0.0.1:1/shop".to_owned(), 69, "Connection refused"),
        (url.replace("/postgres?", "/nowhere?"), 78, "database \"nowhere\" does not exist"),
        (url.replace("/postgres?", "?"), 78, "it names no database"),
        (format!("{url}&timeout=1s"), 78, "timeout"),
    ] {
        let refused = leasehold.run(&format!("-n --url {url} a"), "true");
        let said = text(&refused.stderr);
        assert_eq!(code(refused.status), expected, "{url}: {said}");
        assert!(said.contains(words) && !said.contains("sesame") && !said.contains("mustard"), "{url}: {said}");
    }
    // The first one makes the tables, and may say that this takes a while.
    let granted = || leasehold.script("-n a", "true").env("LEASEHOLD_URL", &url).finish();
    assert_eq!(code(granted().status), 0);
    let granted = granted();
    assert_eq!((code(granted.status), text(&granted.stderr)), (0, String::new()));
}

#[test]
fn the_printed_schema_is_all_that_clients_without_rights_need() {
    let (server, leasehold) = (server(), Leasehold::new());
    let url = server.database("shop");
    server.psql("CREATE ROLE leasehold_locker LOGIN; CREATE ROLE leasehold_fencer LOGIN; CREATE ROLE reporter LOGIN");
    let (locker, fencer) = (as_role("leasehold_locker", &url), as_role("leasehold_fencer", &url));
    let refused = leasehold.run(&format!("-n --url {locker} a"), "true");
    let said = text(&refused.stderr);
    assert_eq!(code(refused.status), 77, "{said}");
    assert!(said.contains("run the output of `leasehold postgres schema`"), "{said}");
    let (told, exit) = report(&leasehold, &locker);
    assert_eq!((exit, found(&told, "reach").0), (77, "failed"), "{told}");

    server.psql_in("shop", &schema(&leasehold, ""));
    let _holder = leasehold.start(
        &format!("--url {locker} a"),
        &format!("echo $LEASEHOLD_FENCE > token; {}", until_let_go("held")),
        "held",
    );
    let token = leasehold.scratch.text_of("token");
    let fenced = format!("SET ROLE leasehold_fencer; SELECT leasehold.fence('a', {})", token.trim());
    assert_eq!(server.psql_in("shop", &fenced), "");
    for role in [fencer, as_role("reporter", &url)] {
        let refused = leasehold.run(&format!("-n --url {role} b"), "true");
        assert_eq!(code(refused.status), 77, "{role}: {}", text(&refused.stderr));
    }
    let (told, exit) = report(&leasehold, &locker);
    assert_eq!((exit, found(&told, "rights").0, found(&told, "trial").0), (0, "ok", "ok"), "{told}");
    assert_eq!(found(&told, "transactions").0, "remark", "{told}");
}

#[test]
fn the_printed_schema_has_the_names_that_were_asked_for() {
    let (server, leasehold) = (server(), Leasehold::new());
    let url = server.database("renamed");
    server.psql("CREATE ROLE \"Shop's-App\" LOGIN");
    let script = schema(&leasehold, "--schema locks --locker Shop's-App --fencer Shop's-App");
    server.psql_in("renamed", &script);
    let url = format!("{}&schema=locks", as_role("Shop's-App", &url));
    let granted = leasehold.run(&format!("-n --url {url} a"), "echo $LEASEHOLD_FENCE");
    assert_eq!(code(granted.status), 0, "{}", text(&granted.stderr));
    assert_eq!(server.psql_in("renamed", "SELECT to_regnamespace('leasehold') IS NULL"), "t");
    for (options, words) in [
        ("--schema Locks", "not a plain name"),
        ("--schema locks;", "lower-case letters"),
        ("--locker=", "it is empty"),
    ] {
        let refused = leasehold.command(&format!("postgres schema {options}")).finish();
        let said = text(&refused.stderr);
        assert!(code(refused.status) == 64 && said.contains(words) && refused.stdout.is_empty(), "{options}: {said}");
    }
}

#[test]
fn a_doctor_finds_what_endangers_locks_and_remarks_what_might() {
    let leasehold = Leasehold::new();
    let (told, exit) = report(&leasehold, &server().database("examined"));
    assert_eq!((exit, &told["verdict"]), (0, &"remark".into()), "{told}");
    for check in
        ["reach", "version", "durability", "standby", "clock", "transactions", "waiting", "tokens", "exclusion"]
    {
        assert_eq!(found(&told, check).0, "ok", "{check}: {told}");
    }
    let volatile = PostgresServer::start_with(PostgresOptions::default().volatile());
    let standby = volatile.standby();
    let (told, exit) = report(&leasehold, &volatile.url());
    let (verdict, said) = found(&told, "durability");
    assert!(exit == 78 && verdict == "finding" && said.contains("fsync"), "{told}");
    assert_eq!(found(&told, "standby").0, "remark", "{told}");
    let (told, exit) = report(&leasehold, &standby.url());
    assert_eq!((exit, found(&told, "reach").0), (69, "failed"), "{told}");
    let output = leasehold.command(&format!("doctor --url {}", volatile.url())).finish();
    assert!(text(&output.stdout).contains("turn both on in postgresql.conf"), "{}", text(&output.stdout));
}
