//! `leasehold doctor`.

use std::os::unix::fs::PermissionsExt;

use crate::support;
use crate::support::leasehold::{Leasehold, code, text};
use crate::support::nodes::Nodes;
use serde_json::Value;
use test_support::{Cluster, Finish, RedisOptions, RedisServer};

/// What `doctor --json` reports, and its exit code.
fn report(leasehold: &Leasehold, line: &str) -> (Value, i32) {
    let output = leasehold.command(&format!("doctor --json {line}")).finish();
    let report = serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{line}: {}", text(&output.stderr)));
    (report, code(output.status))
}

/// The verdicts on this.
fn verdicts<'a>(report: &'a Value, check: &str) -> Vec<&'a str> {
    let checks = report["checks"].as_array().unwrap().iter().filter(|found| found["check"] == check);
    checks.map(|found| found["verdict"].as_str().unwrap()).collect()
}

#[test]
fn the_default_store_is_sound() {
    let leasehold = Leasehold::new();
    let (found, exit) = report(&leasehold, "");
    assert_eq!((exit, &found["exit"], &found["origin"]), (0, &0.into(), &"default".into()), "{found}");
    for check in ["reach", "version", "file system", "access", "trial", "waiting", "tokens", "exclusion"] {
        assert_eq!(verdicts(&found, check), ["ok"], "{check}: {found}");
    }
    let output = leasehold.command("doctor").finish();
    let said = text(&output.stdout);
    assert!(said.contains("no findings") && !said.contains('\x1b'), "{said}");
    assert_eq!(leasehold.json("ls"), serde_json::json!([]), "the lock on trial is released");
}

#[test]
fn a_doctor_with_the_process_id_of_one_that_was_killed_or_runs_elsewhere_is_not_in_its_way() {
    let leasehold = Leasehold::new();
    let mut shell = leasehold.program("sh");
    shell.args(["-c", "\"$0\" run --at-least 30s doctor@$$ -- true && exec \"$0\" doctor --json"]);
    let output = shell.arg(env!("CARGO_BIN_EXE_leasehold")).finish();
    let found: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((code(output.status), verdicts(&found, "trial")), (0, vec!["ok"]), "{found}");
}

#[test]
fn a_password_that_others_can_read_is_a_remark_and_is_never_shown() {
    let leasehold = Leasehold::new();
    let server = RedisServer::start_with(RedisOptions::default().require_password("sesame"));
    let url = format!("redis://:sesame@127.0.0.1:{}", server.port());
    let file = leasehold.scratch.file("own.toml");
    std::fs::write(&file, format!("url = \"{url}\"\n")).unwrap();
    let told = |line: &str, mode: Option<u32>, variable: Option<&str>| {
        let said = ["doctor --json", "run -v a"].map(|task| {
            let mut command = leasehold.command(task);
            command.args(line.split_whitespace()).envs(variable.map(|url| ("LEASEHOLD_URL", url)));
            if let Some(mode) = mode {
                std::fs::set_permissions(&file, std::fs::Permissions::from_mode(mode)).unwrap();
                command.env("LEASEHOLD_CONFIG", &file);
            }
            let output = command.args(if task.starts_with("run") { &["--", "true"][..] } else { &[] }).finish();
            assert_eq!(code(output.status), 0, "{}", text(&output.stderr));
            text(&output.stdout) + &text(&output.stderr)
        });
        said.iter().for_each(|said| assert!(!said.contains("sesame"), "{said}"));
        let found = serde_json::from_str::<Value>(&said[0]).unwrap();
        let remarks = verdicts(&found, "password").len();
        let warned = said[1].contains("can be read by every user") || said[1].contains("other users of this machine");
        assert_eq!(remarks == 1, warned, "{said:?}");
        warned
    };
    assert!(told(&format!("--url {url}"), None, None));
    assert!(told("", Some(0o644), None));
    assert!(!told("", Some(0o600), None));
    assert!(!told("", None, Some(&url)), "the environment is private");
}

#[test]
fn a_redis_that_evicts_is_a_finding_even_without_a_limit_and_a_missing_password_is_a_remark() {
    let leasehold = Leasehold::new();
    let server = RedisServer::start();
    let url = format!("--url {}", server.url());
    let (found, exit) = report(&leasehold, &url);
    assert_eq!((exit, &found["verdict"]), (0, &"remark".into()), "{found}");
    for (check, verdict) in [("eviction", "ok"), ("trial", "ok"), ("secrecy", "remark"), ("persistence", "remark")] {
        assert_eq!(verdicts(&found, check), [verdict], "{check}: {found}");
    }
    let _: String = server.command(&["CONFIG", "SET", "maxmemory-policy", "allkeys-lru"]);
    let (found, exit) = report(&leasehold, &url);
    assert_eq!((exit, verdicts(&found, "eviction")), (78, vec!["finding"]), "{found}");
    let output = leasehold.command(&format!("doctor {url}")).finish();
    let said = text(&output.stdout);
    assert!(said.contains("noeviction") && said.contains("1 finding"), "{said}");
    let (found, exit) = report(&leasehold, &format!("{url}?eviction=allow"));
    assert_eq!((exit, verdicts(&found, "eviction")), (0, vec!["remark"]), "{found}");
}

#[test]
fn a_user_without_the_rights_and_a_store_that_is_not_there_are_failures() {
    let leasehold = Leasehold::new();
    let (found, exit) = report(&leasehold, "--url redis://127.0.0.1:1");
    assert_eq!((exit, verdicts(&found, "reach")), (69, vec!["failed"]), "{found}");
    let server = RedisServer::start_with(RedisOptions::default().append_only());
    let _: String = server.command(&["ACL", "SETUSER", "app", "on", ">sesame", "~*", "&*", "+@all", "-pexpire"]);
    let url = format!("redis://app:sesame@127.0.0.1:{}", server.port());
    let output = leasehold.command("doctor --json").env("LEASEHOLD_URL", &url).finish();
    let found: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((code(output.status), verdicts(&found, "trial")), (77, vec!["failed"]), "{found}");
    assert!(!text(&output.stdout).contains("sesame"), "the password is shown: {found}");
    assert_eq!(verdicts(&found, "persistence"), ["ok"], "{found}");
    let invalid = leasehold.command("doctor --url redsi://h").finish();
    assert_eq!(code(invalid.status), 78, "{}", text(&invalid.stderr));
}

#[test]
fn each_node_of_a_quorum_is_looked_at() {
    let mut nodes = Nodes::founded(3);
    let url = nodes.url();
    let (found, exit) = report(&nodes.leasehold, &format!("--url {url}"));
    assert_eq!((exit, verdicts(&found, "node")), (0, vec!["ok"; 3]), "{found}");
    assert_eq!((verdicts(&found, "quorum"), verdicts(&found, "trial")), (vec!["ok"], vec!["ok"]), "{found}");
    nodes.servers[0].kill();
    let (found, exit) = report(&nodes.leasehold, &format!("--url {url}"));
    assert_eq!((exit, verdicts(&found, "quorum")), (78, vec!["finding"]), "no other node may fail: {found}");
    nodes.servers[1].kill();
    let (found, exit) = report(&nodes.leasehold, &format!("--url {url}"));
    assert_eq!((exit, verdicts(&found, "quorum")), (69, vec!["failed"]), "{found}");
}

#[test]
fn a_ttl_is_suggested_from_holds_that_were_seen() {
    let leasehold = Leasehold::new();
    let (found, exit) = report(&leasehold, "--for 300ms nothing");
    assert_eq!((exit, verdicts(&found, "ttl")), (0, vec!["remark"]), "{found}");
    let script = "while [ ! -e done ]; do leasehold run a -- sleep 0.3; sleep 0.2; done";
    let mut holder = leasehold.program("sh");
    holder.args(["-c", script]).env("PATH", support::path_with_leasehold());
    let holder = support::leasehold::Running::spawn(holder);
    let (found, exit) = report(&leasehold, "--for 10s a");
    std::fs::write(leasehold.scratch.file("done"), "").unwrap();
    assert_eq!((exit, verdicts(&found, "ttl")), (0, vec!["ok"]), "{found}");
    assert_eq!(code(holder.end().status), 0);
}

#[test]
fn each_primary_of_a_cluster_is_looked_at() {
    let (cluster, leasehold) = (Cluster::of_one(), Leasehold::new());
    let output = leasehold.command("doctor --json").env("LEASEHOLD_URL", cluster.url()).finish();
    let found: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((code(output.status), verdicts(&found, "eviction")), (0, vec!["ok"]), "{found}");
    assert_eq!((verdicts(&found, "reach"), verdicts(&found, "trial")), (vec!["ok"], vec!["ok"]), "{found}");
    let eviction = found["checks"].as_array().unwrap().iter().find(|check| check["check"] == "eviction").unwrap();
    let address = format!("127.0.0.1:{}", cluster.servers[0].port());
    assert!(eviction["server"].as_str().is_some_and(|server| server.contains(&address)), "{eviction}");
    let _: String = cluster.servers[0].command(&["CONFIG", "SET", "maxmemory-policy", "allkeys-lru"]);
    let output = leasehold.command("doctor").env("LEASEHOLD_URL", cluster.url()).finish();
    assert_eq!(code(output.status), 78, "{}", text(&output.stdout));
}
