//! Input that cannot work: a clear error, the right code, nothing changed, no secret shown.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

use crate::support::leasehold::{Leasehold, code, text};
use test_support::sentinels::{self, MASTER, url_of};
use test_support::{Finish, RedisOptions, RedisServer, Sentinel};

/// Runs `leasehold` with a command that must not start, and checks the output.
fn refused(leasehold: &Leasehold, options: &str, expected: i32, words: &[&str]) {
    let output = leasehold.run(options, "touch ran");
    let said = text(&output.stderr);
    assert_eq!(code(output.status), expected, "{options}: {said}");
    for word in words {
        assert!(said.contains(word), "{options}: {word:?} is missing in: {said}");
    }
    assert!(!said.contains("sesame"), "a secret was shown: {said}");
    assert!(!leasehold.scratch.file("ran").exists(), "{options}: the command ran");
}

#[test]
fn variables_that_are_no_text() {
    let leasehold = Leasehold::new();
    for (variable, exit) in [("LEASEHOLD_URL", 64), ("LEASEHOLD_WHY", 78)] {
        let mut command = leasehold.command("run");
        let output = command.args(["a", "--", "touch", "ran"]).env(variable, OsStr::from_bytes(b"\xff")).finish();
        let said = text(&output.stderr);
        assert_eq!(code(output.status), exit, "{said}");
        assert!(said.contains(variable) && said.contains("set it to valid UTF-8, or unset it"), "{said}");
    }
    assert!(!leasehold.scratch.file("ran").exists() && !leasehold.database().exists(), "nothing was touched");
}

#[test]
fn names_and_durations() {
    let leasehold = Leasehold::new();
    let long = "x".repeat(513);
    refused(&leasehold, &long, 64, &["lock name", "513 bytes", "1 to 512 bytes"]);
    refused(&leasehold, "leasehold:a", 64, &["leasehold:a", "reserved"]);
    refused(&leasehold, "--ttl 0s a", 64, &["ttl", "0s", "between 1s ", "renewed"]);
    refused(&leasehold, "--ttl 366d a", 64, &["ttl", "365 days"]);
    refused(&leasehold, "--ttl 4s --grace 4s a", 64, &["4s", "--ttl", "--grace"]);
    refused(&leasehold, "--ttl 1s a", 64, &["1s", "--ttl", "the smallest --ttl is 1s ", "renewed"]);
    refused(&leasehold, "--ttl soon a", 64, &["soon", "500ms"]);
    let longer = leasehold.run(&"x".repeat(5000), "touch ran");
    assert!(text(&longer.stderr).contains("5000 bytes") && longer.stderr.len() < 1000, "{longer:?}");
    for name in ["", "a\nb", "a\u{7}"] {
        let output = leasehold.command("run").args([name, "--", "true"]).finish();
        assert_eq!(code(output.status), 64, "{name:?}");
        assert!(text(&output.stderr).contains("lock name"), "{output:?}");
    }
    assert!(!leasehold.database().exists(), "nothing was touched");
}

#[test]
fn urls() {
    let leasehold = Leasehold::new();
    refused(&leasehold, "--url redsi://:sesame@h a", 78, &["redsi", "did you mean redis:"]);
    refused(&leasehold, "--url mongo://x a", 78, &["mongo", "sqlite:PATH"]);
    refused(&leasehold, "--url sesame a", 78, &["no scheme"]);
    refused(&leasehold, "--url redis://:sesame@h:99999 a", 78, &["port"]);
    refused(&leasehold, "--url redis://h/?prefx=a a", 78, &["prefx", "prefix"]);
    refused(&leasehold, "--url memory: a", 78, &["memory:", "sqlite:PATH"]);
    refused(&leasehold, "--url redis://127.0.0.1:1 a", 69, &["refused"]);
}

/// It would lock on this machine only, as if no store had been named.
#[test]
fn an_empty_url_is_refused_and_names_where_it_comes_from() {
    let leasehold = Leasehold::new();
    let remedy = "set the variable, or unset it to lock on this machine only";
    let file = leasehold.scratch.file("leasehold.toml");
    for _ in ["without a file", "with a file that names a store"] {
        for task in ["run", "elect", "ls", "show", "doctor", "watch", "limit", "break"] {
            let rest: &[&str] = match task {
                "run" | "elect" => &["a", "--", "touch", "ran"],
                "limit" => &["a", "3"],
                "break" => &["a", "--token", "1"],
                _ => &["a"],
            };
            let mut option = leasehold.command(task);
            option.args(["--url", ""]).args(rest).env("LEASEHOLD_URL", "redis://127.0.0.1:1");
            let mut variable = leasehold.command(task);
            variable.args(rest).env("LEASEHOLD_URL", "");
            for (mut command, source) in [(option, "--url is empty"), (variable, "LEASEHOLD_URL is empty")] {
                let output = command.finish();
                let said = text(&output.stderr);
                assert_eq!(code(output.status), 78, "{source}, {task}: {said}");
                assert!(said.contains(source) && said.contains(remedy), "{task}: {said}");
            }
        }
        std::fs::write(&file, "url = \"sqlite:here.db\"\n").unwrap();
    }
    assert!(!leasehold.scratch.file("ran").exists() && !leasehold.database().exists(), "nothing was touched");
    assert!(!leasehold.scratch.file("here.db").exists(), "the store of the file was not used either");
}

#[test]
fn sentinels() {
    let leasehold = Leasehold::new();
    let server = sentinels::server(&[]);
    let sentinel = Sentinel::watching(&server);
    let good = url_of(&[sentinel.port()]);
    // A new deployment has to be declared, or else its free locks wait.
    let by_default = good.replace("&failover=grant", "");
    refused(&leasehold, &format!("--url {by_default} a -n"), 69, &["may have forgotten locks"]);
    let declared = leasehold.command(&format!("redis init {by_default}")).finish();
    assert_eq!(code(declared.status), 0, "{}", text(&declared.stderr));
    let output = leasehold.run(&format!("--url {by_default} a"), "true");
    assert_eq!(code(output.status), 0, "{}", text(&output.stderr));
    refused(&leasehold, &format!("--url {} a", good.replace(MASTER, "cache")), 78, &["\"cache\"", "knows mymaster"]);
    refused(
        &leasehold,
        &format!("--url {} a", good.replace("guarded", "wrong")),
        77,
        &["the sentinel 127.0.0.1", "refused"],
    );
    refused(&leasehold, "--url redis+sentinel://:sesame@127.0.0.1:1 a", 78, &["does not name the primary"]);
    refused(
        &leasehold,
        "--url redis+sentinel://127.0.0.1:1/a a",
        69,
        &["no sentinel of \"a\" answered", "127.0.0.1:1"],
    );
    let server = RedisServer::start();
    let ordinary = format!("--url redis+sentinel://127.0.0.1:{}/a a", server.port());
    refused(&leasehold, &ordinary, 78, &["is not a sentinel; use redis://"]);
}

#[test]
fn a_redis_that_refuses() {
    let leasehold = Leasehold::new();
    let server = RedisServer::start_with(RedisOptions::default().require_password("sesame"));
    let port = server.port();
    refused(&leasehold, &format!("--url redis://127.0.0.1:{port} a"), 77, &["PASSWORD"]);
    refused(&leasehold, &format!("--url redis://:not-sesame@127.0.0.1:{port} a"), 77, &["password"]);
    refused(&leasehold, &format!("--url rediss://127.0.0.1:{port} a"), 78, &["TLS", "redis://"]);
    assert_eq!(server.command::<u64>(&["DBSIZE"]), 0, "nothing was changed");
}

#[test]
fn a_key_of_another_kind_and_a_full_redis() {
    let leasehold = Leasehold::new();
    let server = RedisServer::start();
    let () = server.command(&["RPUSH", "a", "sesame"]);
    refused(&leasehold, &format!("--url {} a", server.url()), 78, &["another type", "untouched"]);
    assert_eq!(server.command::<Vec<String>>(&["LRANGE", "a", "0", "-1"]), ["sesame"]);
    let () = server.command(&["CONFIG", "SET", "maxmemory", "1"]);
    refused(&leasehold, &format!("-w 1s --url {} b", server.url()), 69, &["memory"]);
}

#[test]
fn files_that_cannot_be_used() {
    let leasehold = Leasehold::new();
    refused(&leasehold, "--url sqlite:no/such/folder/locks.db a", 78, &["mkdir"]);
    refused(&leasehold, "--url sqlite: a", 78, &["sqlite:PATH"]);
    let text = leasehold.scratch.file("notes.txt");
    std::fs::write(&text, "sesame: not a database, and long enough to be looked at as one\n".repeat(40)).unwrap();
    let before = std::fs::read(&text).unwrap();
    refused(&leasehold, "--url sqlite:notes.txt a", 78, &["not a SQLite database", "untouched"]);
    assert_eq!(std::fs::read(&text).unwrap(), before);
}

#[test]
fn somebody_elses_database_stays_as_it_is() {
    let leasehold = Leasehold::new();
    let path = leasehold.scratch.file("shop.db");
    rusqlite::Connection::open(&path)
        .unwrap()
        .execute_batch("CREATE TABLE invoice (id); INSERT INTO invoice VALUES (1)")
        .unwrap();
    let before = std::fs::read(&path).unwrap();
    refused(&leasehold, "--url sqlite:shop.db a", 78, &["shop.db"]);
    assert_eq!(std::fs::read(&path).unwrap(), before);
}
