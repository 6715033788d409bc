//! The recipes of the cookbook that are command lines: each runs as the page has it, on several machines.

use std::fs;
use std::io::Write;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::process::{Command, Stdio};
use std::time::{SystemTime, UNIX_EPOCH};

use crate::support::leasehold::{Leasehold, Running, code, text};
use rustix::process::Signal;
use serde_json::Value;
use test_support::bounds::{output_of, wait_for};
use test_support::{Finish, RedisServer};

const HOUR: u64 = 60 * 60;
const DAY: u64 = 24 * HOUR;

/// The code of the pages in a language, block by block.
fn blocks(language: &str) -> Vec<&'static str> {
    test_support::pages::blocks_in(language).into_iter().map(|block| &*block.code.leak()).collect()
}

/// A machine with its own idea of the time.
struct Machine<'a> {
    leasehold: &'a Leasehold,
    /// Where its `date` is.
    path: String,
}

impl<'a> Machine<'a> {
    fn new(leasehold: &'a Leasehold, name: &str, now: u64) -> Self {
        let folder = leasehold.scratch.file(name);
        fs::create_dir(&folder).unwrap();
        let (date, earlier) = (folder.join("date"), now - 3 * HOUR);
        let script = format!(
            "#!/bin/sh\nPATH=/usr/bin:/bin\nfor last; do :; done\n\
             case \"$*\" in *'3 hours ago'*) exec date -u -d @{earlier} \"$last\";; esac\nexec date -u -d @{now} \"$last\"\n"
        );
        executable(&date, &script);
        symlink(env!("CARGO_BIN_EXE_leasehold"), folder.join("leasehold")).unwrap();
        Self { leasehold, path: format!("{}:/usr/bin:/bin", folder.display()) }
    }

    /// Starts what cron passes to a shell.
    fn start(&self, line: &str, url: &str) -> Running {
        let mut command = self.leasehold.program("sh");
        command.args(["-c", &line.replace("redis://db1", url)]).env("PATH", &self.path).env("LEASEHOLD_URL", url);
        Running::spawn(command)
    }
}

fn executable(path: &std::path::Path, script: &str) {
    fs::write(path, script).unwrap();
    fs::set_permissions(path, PermissionsExt::from_mode(0o755)).unwrap();
}

/// Runs a line at the same time on machines whose clocks differ from three o'clock by so much. Returns how often the report was
/// made.
fn reports(line: &str, server: &RedisServer, clocks: &[i64]) -> usize {
    let leasehold = Leasehold::new();
    for script in ["report.sh", "fetch-mail.sh"] {
        executable(&leasehold.scratch.file(script), "#!/bin/sh\necho >> runs\n");
    }
    let today = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs() / DAY * DAY;
    let machine = |clock: &i64| {
        let now = (today + 3 * HOUR).checked_add_signed(*clock).unwrap();
        Machine::new(&leasehold, &format!("at {now}"), now)
    };
    let machines: Vec<_> = clocks.iter().map(machine).collect();
    let started: Vec<_> = machines.iter().map(|machine| machine.start(line, &server.url())).collect();
    for output in started.into_iter().map(Running::end) {
        assert_eq!(code(output.status), 0, "{line}: {}", text(&output.stderr));
    }
    fs::read_to_string(leasehold.scratch.file("runs")).unwrap_or_default().lines().count()
}

const HOURS: i64 = 60 * 60;

/// Three machines run each cron line when their clocks say that it is time: their clocks differ, and so do the times at which
/// they really call.
#[test]
fn the_cron_lines_run_once_on_machines_whose_clocks_differ() {
    let server = RedisServer::start();
    let lines: Vec<_> = blocks("cron").into_iter().flat_map(str::lines).collect();
    assert_eq!(lines.len(), 2);
    for line in lines {
        let command = line.splitn(6, ' ').nth(5).unwrap().replace("\\%", "%");
        assert_eq!(reports(&command, &server, &[0, 2 * HOURS, -2 * HOURS]), 1, "{line}");
    }
}

/// The files of a block, each with its name.
fn units(block: &'static str) -> Vec<(&'static str, &'static str)> {
    let files = block.split("# /etc/systemd/system/").skip(1);
    files.map(|file| file.split_once('\n').unwrap()).collect()
}

/// What systemd makes of a line.
fn exec_start(unit: &str) -> String {
    let line = unit.lines().find_map(|line| line.strip_prefix("ExecStart=")).unwrap();
    line.replace("%%", "%").replace("$$", "$")
}

/// One machine is in time, one was off until the morning, and one until it was nearly three again.
#[test]
fn the_timer_runs_once_however_late_a_machine_catches_up() {
    let server = RedisServer::start();
    let units = units(blocks("ini")[0]);
    let (_, service) = units.iter().find(|(name, _)| *name == "report.service").unwrap();
    assert_eq!(reports(&exec_start(service), &server, &[0, 5 * HOURS, 23 * HOURS]), 1);
}

/// Two machines run the unit, and one of them is switched off.
#[test]
fn when_the_leader_dies_the_other_machine_leads() {
    let (server, leasehold) = (RedisServer::start(), Leasehold::new());
    let (_, service) = units(blocks("ini")[1])[0];
    executable(&leasehold.scratch.file("scheduler.sh"), "#!/bin/sh\necho $LEASEHOLD_FENCE >> terms\nexec sleep 600\n");
    let machines = ["one", "two"].map(|name| Machine::new(&leasehold, name, DAY));
    let line = format!("exec {}", exec_start(service));
    let first = machines[0].start(&line, &server.url());
    let term: u64 = leasehold.scratch.text_of("terms").trim().parse().unwrap();
    let _second = machines[1].start(&line, &server.url());
    leasehold.await_waiters(&format!("--url {} scheduler", server.url()), 1);
    assert_eq!(leasehold.scratch.text_of("terms").lines().count(), 1);

    first.signal(Signal::KILL);
    let terms = wait_for("the other machine to lead", || {
        let terms = leasehold.scratch.text_of("terms");
        (terms.lines().count() == 2).then_some(terms)
    });
    assert!(terms.lines().nth(1).unwrap().parse::<u64>().unwrap() > term);
}

/// With the tool of systemd itself, where there is one.
#[test]
fn systemd_accepts_the_units() {
    if Command::new("systemd-analyze").arg("--version").stdout(Stdio::null()).status().is_err() {
        return;
    }
    let leasehold = Leasehold::new();
    for (name, unit) in blocks("ini").into_iter().flat_map(units) {
        let unit = unit.replace("ExecStart=leasehold", concat!("ExecStart=", env!("CARGO_BIN_EXE_leasehold")));
        fs::write(leasehold.scratch.file(name), unit).unwrap();
    }
    for (name, _) in blocks("ini").into_iter().flat_map(units) {
        let output = Command::new("systemd-analyze").arg("verify").arg(leasehold.scratch.file(name)).finish();
        assert!(output.status.success() && output.stderr.is_empty(), "{name}: {}", text(&output.stderr));
    }
}

/// The command of a manifest, as a shell runs it.
fn container_command(manifest: &str) -> (Vec<String>, String) {
    let list = manifest.lines().find_map(|line| line.trim().strip_prefix("command: ")).unwrap();
    let words: Vec<String> = serde_json::from_str(list).unwrap();
    let quoted: Vec<_> = words.iter().map(|word| format!("'{}'", word.replace('\'', "'\\''"))).collect();
    (words, quoted.join(" "))
}

#[test]
fn the_job_of_two_clusters_runs_once() {
    let server = RedisServer::start();
    let (_, line) = container_command(blocks("yaml")[0]);
    assert_eq!(reports(&line, &server, &[0, HOURS, 2 * HOURS]), 1);
}

/// Kubernetes starts a pod again after a failure, and that one makes the report.
#[test]
fn a_pod_that_failed_is_repeated() {
    let (server, leasehold) = (RedisServer::start(), Leasehold::new());
    let (_, line) = container_command(blocks("yaml")[0]);
    executable(&leasehold.scratch.file("report.sh"), "#!/bin/sh\necho >> runs; [ $(wc -l < runs) = 2 ]\n");
    let machine = Machine::new(&leasehold, "pod", SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs());
    let ended = [(); 3].map(|()| code(machine.start(&line, &server.url()).end().status));
    assert_eq!(ended, [1, 0, 0]);
    assert_eq!(leasehold.scratch.text_of("runs").lines().count(), 2, "the third one is skipped");
}

#[test]
fn replicas_migrate_one_after_another_and_all_start_after_that() {
    let (server, leasehold) = (RedisServer::start(), Leasehold::new());
    let (_, line) = container_command(blocks("yaml")[1]);
    // As a migration tool: it notes what is done. Two at a time would fail.
    let tool = "#!/bin/sh\nmkdir busy || exit 1\n[ -e done ] || { sleep 0.3; echo >> runs; touch done; }\nrmdir busy\n";
    executable(&leasehold.scratch.file("migrate.sh"), tool);
    let replicas = ["one", "two", "three"].map(|name| Machine::new(&leasehold, name, DAY));
    let started = replicas.each_ref().map(|replica| replica.start(&line, &server.url()));
    for output in started.map(Running::end) {
        assert_eq!(code(output.status), 0, "{}", text(&output.stderr));
        assert!(leasehold.scratch.file("done").exists());
    }
    assert_eq!(leasehold.scratch.text_of("runs").lines().count(), 1);
}

/// With a parser of YAML, where there is one. Whether Kubernetes knows the fields is not checked: that takes a cluster.
#[test]
fn the_manifests_are_yaml_with_the_command_where_it_belongs() {
    let script = "import json, sys, yaml; json.dump(yaml.safe_load(sys.stdin), sys.stdout)";
    let parser = Command::new("python3").args(["-c", "import yaml"]).stderr(Stdio::null()).status();
    if !parser.is_ok_and(|status| status.success()) {
        return;
    }
    let places = ["/spec/jobTemplate/spec/template/spec/containers/0", "/spec/template/spec/initContainers/0"];
    for (manifest, place) in blocks("yaml").into_iter().zip(places) {
        let python = Command::new("python3").args(["-c", script]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
        let mut python = python.unwrap();
        python.stdin.take().unwrap().write_all(manifest.as_bytes()).unwrap();
        let parsed: Value = serde_json::from_slice(&output_of(python, "the parser").stdout).unwrap();
        let container = parsed.pointer(place).unwrap();
        assert_eq!(container["command"], Value::from(container_command(manifest).0));
        assert_eq!(container["env"][0]["value"], "redis://db1");
    }
}
