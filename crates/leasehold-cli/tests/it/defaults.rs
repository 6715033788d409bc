//! Defaults from the environment and from a configuration file, and manual pages.

use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, chown, symlink};
use std::process::Command;
use std::time::Duration;

use crate::messages::waited;
use crate::support::leasehold::{Leasehold, Running, code, text};
use test_support::{Finish, RedisServer};

/// Prints the ttl of the lock, and why it is held.
const TELL: &str = "echo $LEASEHOLD_TTL_MS";

#[test]
fn the_command_line_wins_over_the_environment_and_that_over_the_file() {
    let leasehold = Leasehold::new();
    let file = leasehold.scratch.file("leasehold.toml");
    fs::write(&file, "url = \"sqlite:here.db\"\nttl = \"40s\"\nwait = \"3s\"\nwhy = \"from the file\"\n").unwrap();
    let ttl = |options: &str, variable: Option<&str>| {
        let mut command = leasehold.script(options, TELL);
        command.envs(variable.map(|ttl| ("LEASEHOLD_TTL", ttl)));
        let output = command.finish();
        assert_eq!(code(output.status), 0, "{}", text(&output.stderr));
        text(&output.stdout).trim().to_owned()
    };
    assert_eq!(ttl("a", None), "40000");
    assert!(leasehold.scratch.file("here.db").exists(), "the store of the file");
    assert_eq!(ttl("a", Some("50s")), "50000");
    assert_eq!(ttl("a", Some("")), "40000");
    assert_eq!(ttl("--ttl 60s a", Some("50s")), "60000");
    let _holder = leasehold.start("--ttl 3s a", "echo r > held; exec sleep 60", "held");
    assert_eq!(leasehold.json("show a")["why"], "from the file");
    let busy = leasehold.run("a", "true");
    let said = text(&busy.stderr);
    assert!(code(busy.status) == 75 && waited(&said) >= Duration::from_secs(3), "{said}");
    let busy = leasehold.run("-n a", "true");
    assert!(text(&busy.stderr).contains("is held by"), "-n wins over the wait of the file: {}", text(&busy.stderr));
    let found = leasehold.command("doctor").finish();
    assert!(text(&found.stdout).contains("from leasehold.toml"), "{}", text(&found.stdout));
    let without = leasehold.command("ls --json").env("LEASEHOLD_CONFIG", "").finish();
    assert_eq!(text(&without.stdout), "[]\n", "another store");
}

#[test]
fn a_broken_file_is_told_with_line_and_column_and_nothing_is_run() {
    let leasehold = Leasehold::new();
    let file = leasehold.scratch.file("own.toml");
    for (contents, place) in [
        ("ttl = \"30s\"\nwait = soon\n", "own.toml, line 2, column 8"),
        ("ttl = \"30s\"\n  tll = \"30s\"\n", "own.toml, line 2, column 3"),
        ("ttl = \"soon\"\n", "own.toml, line 1, column 7"),
        ("\nurl = \"redsi://u:sesame@h\"\n", "own.toml, line 2, column 7"),
    ] {
        fs::write(&file, contents).unwrap();
        let output = leasehold.script("a", "touch ran").env("LEASEHOLD_CONFIG", &file).finish();
        let said = text(&output.stderr);
        assert_eq!(code(output.status), 78, "{contents}: {said}");
        assert!(said.contains(place) && said.contains("LEASEHOLD_CONFIG") && !said.contains("sesame"), "{said}");
        assert!(!leasehold.scratch.file("ran").exists());
    }
    let missing = leasehold.command("ls --json").env("LEASEHOLD_CONFIG", "no-such-file").finish();
    let failure: serde_json::Value = serde_json::from_slice(&missing.stderr).unwrap();
    assert_eq!(failure["exit"], 78, "{failure}");
    let variable = leasehold.script("a", "true").env("LEASEHOLD_TTL", "soon").finish();
    assert!(code(variable.status) == 78 && text(&variable.stderr).contains("LEASEHOLD_TTL: "));
    let help = leasehold.command("run --help").env("LEASEHOLD_CONFIG", "no-such-file").finish();
    assert_eq!(code(help.status), 0, "help needs no configuration");
}

#[test]
fn a_file_that_another_user_may_have_put_here_is_not_read() {
    let leasehold = Leasehold::new();
    let file = leasehold.scratch.file("leasehold.toml");
    let refused = |problem: &str| {
        let output = leasehold.script("a", "touch ran").finish();
        let said = text(&output.stderr);
        assert_eq!(code(output.status), 78, "{problem}: {said}");
        assert!(said.contains(problem) && said.contains("LEASEHOLD_CONFIG"), "{said}");
        assert!(!leasehold.scratch.file("ran").exists() && !leasehold.scratch.file("theirs.db").exists());
    };
    assert!(Command::new("mkfifo").arg(&file).status().unwrap().success());
    refused("not a regular file");
    fs::remove_file(&file).unwrap();
    fs::write(&file, "url = \"sqlite:theirs.db\"\n").unwrap();
    fs::set_permissions(&file, Permissions::from_mode(0o666)).unwrap();
    refused("every user may write to it");
    fs::set_permissions(&file, Permissions::from_mode(0o644)).unwrap();
    if chown(&file, Some(65_534), None).is_ok() {
        // Only root can try this.
        refused("belongs to another user");
        fs::rename(&file, leasehold.scratch.file("aside.toml")).unwrap();
        symlink("aside.toml", &file).unwrap();
        refused("belongs to another user");
    }
    let named = leasehold.script("a", "true").env("LEASEHOLD_CONFIG", &file).finish();
    assert_eq!(code(named.status), 0, "{}", text(&named.stderr));
    assert!(leasehold.scratch.file("theirs.db").exists(), "a file that is named is read");
}

#[test]
fn a_valkey_url_leads_to_the_same_locks_and_a_hold_can_be_limited() {
    let (server, leasehold) = (RedisServer::start(), Leasehold::new());
    let valkey = server.url().replace("redis://", "valkey://");
    let holder = leasehold.script(&format!("--url {valkey} --ttl 3s --max-hold 3s a"), "echo r > held; exec sleep 60");
    let holder = Running::spawn(holder);
    leasehold.scratch.text_of("held");
    assert_eq!(code(leasehold.run(&format!("--url {} -n a", server.url()), "true").status), 75);
    let output = holder.end();
    assert_eq!(code(output.status), 76, "{}", text(&output.stderr));
    let refused = leasehold.run("--url valkeys://127.0.0.1:1 a", "true");
    assert_eq!(code(refused.status), 69, "{}", text(&refused.stderr));
}

#[test]
fn there_is_a_manual_page_for_each_command() {
    let leasehold = Leasehold::new();
    let page = leasehold.command("man").finish();
    assert!(text(&page.stdout).contains(".TH leasehold 1"), "{}", text(&page.stdout));
    let output = leasehold.command("man --out pages").finish();
    assert_eq!(code(output.status), 0, "{}", text(&output.stderr));
    for command in ["", "-run", "-break", "-watch", "-doctor", "-redlock-status"] {
        let page = leasehold.scratch.text_of(&format!("pages/leasehold{command}.1"));
        let help = text(&leasehold.command(&format!("{} --help", command.replace('-', " "))).finish().stdout);
        let usage = help.lines().find_map(|line| line.strip_prefix("Usage: ")).unwrap();
        let page = ["\\fB", "\\fR", "\\"].iter().fold(page, |page, markup| page.replace(markup, ""));
        assert!(page.lines().any(|line| line == usage), "{usage} is missing in: {page}");
    }
    fs::write(leasehold.scratch.file("file"), "").unwrap();
    assert_eq!(code(leasehold.command("man --out file").finish().status), 78);
}
