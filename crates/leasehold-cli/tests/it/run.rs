//! `leasehold run` as a script sees it: exit codes, environment, waiting, messages.

use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::ExitStatusExt;
use std::time::Duration;

use crate::support::leasehold::{Leasehold, Running, code, report, text};
use crate::support::nodes::Nodes;
use crate::support::{is_alive, wait_for};
use rustix::process::Signal;
use serde_json::json;
use test_support::{Finish, RedisServer};

/// Holds a lock until the file `done` is there.
const HOLD: &str = "echo held > held; while [ ! -e done ]; do sleep 0.02; done";

#[test]
fn the_exit_code_is_that_of_the_command() {
    let leasehold = Leasehold::new();
    for own in [0, 1, 7, 75, 255] {
        assert_eq!(code(leasehold.run("a", &format!("exit {own}")).status), own);
    }
    assert_eq!(code(leasehold.run("a", "kill -TERM $$").status), 128 + 15);
    assert_eq!(code(leasehold.run("a", "kill -KILL $$").status), 128 + 9);
}

#[test]
fn a_command_that_cannot_be_executed_exits_126_or_127_and_frees_the_lock() {
    let leasehold = Leasehold::new();
    std::fs::write(leasehold.scratch.file("plain"), "no program").unwrap();
    for (program, expected) in [("./plain", 126), ("./nowhere", 127), ("no-such-command-anywhere", 127)] {
        let output = leasehold.command("run -n a --").arg(program).finish();
        assert_eq!(code(output.status), expected);
        assert!(text(&output.stderr).contains(program));
        assert_eq!(code(leasehold.run("-n a", "true").status), 0);
    }
}

#[test]
fn a_command_that_cannot_be_executed_is_not_waited_for() {
    let leasehold = Leasehold::new();
    let _holder = leasehold.start("a", HOLD, "held");
    std::fs::write(leasehold.scratch.file("plain"), "no program").unwrap();
    for (program, expected) in [("./plain", 126), ("/", 126), ("./nowhere", 127), ("no-such-command-anywhere", 127)] {
        let output = leasehold.command("run -w 50s a --").arg(program).finish();
        assert_eq!(code(output.status), expected, "{program}: {}", text(&output.stderr));
    }
    std::fs::write(leasehold.scratch.file("done"), "").unwrap();
}

#[test]
fn the_command_finds_its_lock_in_the_environment_and_tokens_rise() {
    let leasehold = Leasehold::new();
    let mut last = 0;
    for _ in 0..3 {
        let output = leasehold.run("--ttl 20s a:b", "echo $LEASEHOLD_NAME $LEASEHOLD_TTL_MS $LEASEHOLD_FENCE");
        let line = text(&output.stdout);
        let token: u64 = line.trim().strip_prefix("a:b 20000 ").unwrap().parse().unwrap();
        assert!(token > last, "{token} after {last}");
        last = token;
    }
}

#[test]
fn the_command_has_our_standard_input_and_output() {
    let leasehold = Leasehold::new();
    std::fs::write(leasehold.scratch.file("input"), "some text\n").unwrap();
    let input = std::fs::File::open(leasehold.scratch.file("input")).unwrap();
    let output = leasehold.script("a", "cat; echo problem >&2").stdin(input).finish();
    assert_eq!((text(&output.stdout).as_str(), text(&output.stderr).as_str()), ("some text\n", "problem\n"));
}

#[test]
fn a_held_lock_is_busy_at_once_or_after_the_wait() {
    let leasehold = Leasehold::new();
    let holder = leasehold.start("--why nightly a", HOLD, "held");
    for (options, expected) in [("-n a", 75), ("-n -E 3 a", 3), ("-w 3s a", 75), ("-w 3s -E 0 -v a", 0)] {
        let output = leasehold.run(options, "echo ran > ran");
        assert_eq!(code(output.status), expected, "{options}");
        assert!(text(&output.stderr).contains("nightly"), "{}", text(&output.stderr));
    }
    let at_once = |options| text(&leasehold.run(options, "true").stderr);
    assert!(at_once("-w 0s a").contains("use -w 30s"), "no wait is no wait");
    assert_eq!(code(leasehold.run("-n b", "true").status), 0, "another name is free");
    std::fs::write(leasehold.scratch.file("done"), "").unwrap();
    assert_eq!(code(holder.end().status), 0);
    assert_eq!(code(leasehold.run("-n a", "true").status), 0);
    assert!(!leasehold.scratch.file("ran").exists());
}

#[test]
fn every_ttl_that_is_accepted_works() {
    let leasehold = Leasehold::new();
    let refusal = text(&leasehold.run("--ttl 100ms a", "true").stderr);
    let (_, rest) = refusal.split_once("the smallest --ttl is ").unwrap();
    let smallest = humantime::parse_duration(rest.split_once(';').unwrap().0).unwrap();
    let help = text(&leasehold.command("run --help").finish().stdout);
    let help = help.split_whitespace().collect::<Vec<_>>().join(" ");
    let told = help.split_once(" or more").unwrap().0.rsplit(' ').next().unwrap();
    let told = humantime::parse_duration(told).unwrap();
    assert!(told >= smallest && told < smallest + Duration::from_secs(1), "{told:?}, {smallest:?}: {help}");
    for more in (0..=100).step_by(10) {
        let ttl = format!("{}ms", smallest.as_millis() + more);
        let output = leasehold.run(&format!("--ttl {ttl} a"), "true");
        assert_eq!(code(output.status), 0, "{ttl}: {}", text(&output.stderr));
    }
}

#[test]
fn a_state_directory_may_have_any_name_but_has_to_be_writable() {
    let leasehold = Leasehold::new();
    let odd = leasehold.scratch.file("what?prefix=x#%41");
    let output = leasehold.script("a", "true").env("XDG_STATE_HOME", &odd).finish();
    assert_eq!(code(output.status), 0, "{}", text(&output.stderr));
    assert!(odd.join("leasehold/locks.db").exists());
    // No user can make directories there, not even root.
    let denied = leasehold.script("a", "true").env("XDG_STATE_HOME", "/sys").finish();
    assert_eq!(code(denied.status), 77, "{}", text(&denied.stderr));
}

#[test]
fn a_waiter_runs_after_the_holder_and_not_before() {
    let leasehold = Leasehold::new();
    let holder = leasehold.start("a", HOLD, "held");
    let waiter = Running::spawn(leasehold.script("-w 20s a", "ls done"));
    leasehold.await_waiters("a", 1);
    std::fs::write(leasehold.scratch.file("done"), "").unwrap();
    assert_eq!(code(waiter.end().status), 0);
    assert_eq!(code(holder.end().status), 0);
}

#[test]
fn a_nested_run_of_the_same_name_is_busy_at_once() {
    let leasehold = Leasehold::new();
    let inner = format!("{} run a:1 -- true", env!("CARGO_BIN_EXE_leasehold"));
    let output = leasehold.run("a:1", &inner);
    assert_eq!(code(output.status), 75);
    assert!(text(&output.stderr).contains("enclosing"), "{}", text(&output.stderr));
    let other = format!("{} run a:2 -- true", env!("CARGO_BIN_EXE_leasehold"));
    assert_eq!(code(leasehold.run("a:1", &other).status), 0);
}

#[test]
fn a_nested_run_is_recognised_however_the_store_is_with_url() {
    let leasehold = Leasehold::new();
    let this = env!("CARGO_BIN_EXE_leasehold");
    let is_refused = |outer: &str, inner: &str| {
        let script = format!("{this} run -w 20s --ttl 3s {inner} a -- true");
        let output = leasehold.run(&format!("--ttl 3s {outer} a"), &script);
        let (code, said) = (code(output.status), text(&output.stderr));
        assert!(code == 0 || said.contains("enclosing"), "{outer}, {inner}: {code} {said}");
        code == 75
    };
    assert!(is_refused("", "--url sqlite:leasehold/../leasehold/locks.db"));
    assert!(!is_refused("", "--url sqlite:leasehold/other.db"));
    let server = RedisServer::start();
    let with_url = |url: &str| format!("--url {}", url.replace("PORT", &server.port().to_string()));
    assert!(is_refused(&with_url("redis://127.0.0.1:PORT"), &with_url("redis://localhost:PORT/0?op_timeout=1s")));
    assert!(!is_refused(&with_url("redis://127.0.0.1:PORT"), &with_url("redis://127.0.0.1:PORT/1")));
    assert!(!is_refused(&with_url("redis://127.0.0.1:PORT?prefix=x"), &with_url("redis://127.0.0.1:PORT")));
    let nodes = Nodes::founded(3);
    assert!(is_refused(&format!("--url {}", nodes.url()), &format!("--url {}", nodes.url_of([2, 0, 1]))));
}

#[test]
fn a_process_that_a_job_leaves_running_can_take_its_lock_later() {
    let leasehold = Leasehold::new();
    let held = text(&leasehold.run("a", "echo $LEASEHOLD_HELD").stdout);
    let later = |options: &str| leasehold.script(options, "true").env("LEASEHOLD_HELD", held.trim()).finish();
    assert_eq!(code(later("-n a").status), 0);
    let holder = leasehold.start("a", HOLD, "held");
    let busy = later("-n a");
    assert!(text(&busy.stderr).contains("a is held by pid"), "{}", text(&busy.stderr));
    std::fs::write(leasehold.scratch.file("done"), "").unwrap();
    assert_eq!(code(holder.end().status), 0);
}

#[test]
fn a_holder_that_was_killed_is_noticed() {
    let leasehold = Leasehold::new();
    let holder = leasehold.start("--ttl 20s a", HOLD, "held");
    assert_eq!(leasehold.json("show a")["gone"], json!(false));
    holder.signal(Signal::KILL);
    holder.await_death();
    assert_eq!(leasehold.json("show a")["gone"], json!(true));
    let listed = text(&leasehold.command("ls").finish().stdout);
    assert!(listed.contains("(gone)"), "{listed}");
    let busy = text(&leasehold.run("-n a", "true").stderr);
    assert!(busy.contains("whose process is gone"), "{busy}");
}

#[test]
fn the_state_directory_is_private_and_never_guessed() {
    let leasehold = Leasehold::new();
    assert_eq!(code(leasehold.run("a", "true").status), 0);
    let mode = std::fs::metadata(leasehold.scratch.file("leasehold")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o700);
    assert!(leasehold.database().exists());
    let homeless = leasehold.script("a", "true").env_remove("XDG_STATE_HOME").finish();
    assert_eq!(code(homeless.status), 78);
    assert!(text(&homeless.stderr).contains("HOME"));
    let home = leasehold.scratch.path();
    let at_home = leasehold.script("a", "true").env_remove("XDG_STATE_HOME").env("HOME", home).finish().status;
    assert_eq!(code(at_home), 0);
    assert!(leasehold.scratch.file(".local/state/leasehold/locks.db").exists());
}

#[test]
fn a_configuration_that_cannot_work_is_78() {
    let leasehold = Leasehold::new();
    for url in ["memory:", "nonsense", "strange://host"] {
        let output = leasehold.script("a", "true").env("LEASEHOLD_URL", url).finish();
        assert_eq!(code(output.status), 78, "{url}: {}", text(&output.stderr));
    }
    let output = leasehold.script("a", "true").env("XDG_STATE_HOME", "/dev/null").finish();
    assert_eq!(code(output.status), 78);
}

#[test]
fn a_store_that_is_not_there_is_69() {
    let leasehold = Leasehold::new();
    let output = leasehold.run("--url redis://127.0.0.1:1 a", "true");
    assert_eq!(code(output.status), 69, "{}", text(&output.stderr));
}

#[test]
fn a_command_line_that_cannot_be_understood_is_64() {
    let leasehold = Leasehold::new();
    for line in
        ["", "run", "run a", "run -n -w 1s a true", "run --ttl 1s a true", "run --ttl 30s --grace 29s a true", "x"]
    {
        assert_eq!(code(leasehold.command(line).finish().status), 64, "{line}");
    }
    assert_eq!(code(leasehold.command("run leasehold:x true").finish().status), 64);
    assert!(!leasehold.scratch.file("leasehold").exists(), "nothing was touched");
    for line in ["--version", "--help", "run --help", "completions bash"] {
        assert_eq!(code(leasehold.command(line).finish().status), 0, "{line}");
    }
}

#[test]
fn the_outcome_is_available_as_json() {
    let leasehold = Leasehold::new();
    let ended = report(&leasehold.run("--json a", "exit 3"));
    assert_eq!(
        (&ended["outcome"], &ended["exit"], &ended["command"]),
        (&json!("ended"), &json!(3), &json!({"code": 3}))
    );
    assert!(ended["token"].as_u64().unwrap() > 0);
    let killed = report(&leasehold.run("--json a", "kill -9 $$"));
    assert_eq!((&killed["exit"], &killed["command"]), (&json!(137), &json!({"signal": 9})));
    let nested = leasehold.command("run --json a -- ./nowhere").finish();
    assert_eq!((&report(&nested)["outcome"], &report(&nested)["exit"]), (&json!("not-started"), &json!(127)));
    let _holder = leasehold.start("a", HOLD, "held");
    let busy = report(&leasehold.run("-n --json a", "true"));
    assert_eq!((&busy["outcome"], &busy["exit"], &busy["token"]), (&json!("busy"), &json!(75), &json!(null)));
    std::fs::write(leasehold.scratch.file("done"), "").unwrap();
}

#[test]
fn a_signal_while_waiting_leaves_no_trace() {
    let leasehold = Leasehold::new();
    let holder = leasehold.start("a", HOLD, "held");
    for (signal, expected) in [(Signal::INT, 130), (Signal::TERM, 143)] {
        let waiter = Running::spawn(leasehold.script("-v a", "echo ran > ran"));
        leasehold.await_waiters("a", 1);
        waiter.signal(signal);
        assert_eq!(code(waiter.end().status), expected);
        assert_eq!(leasehold.json("show a")["waiters"], 0, "its place is left, not merely over some time");
    }
    std::fs::write(leasehold.scratch.file("done"), "").unwrap();
    assert_eq!(code(holder.end().status), 0);
    assert_eq!(code(leasehold.run("-n a", "true").status), 0);
    assert!(!leasehold.scratch.file("ran").exists());
}

#[test]
fn signals_are_passed_on_and_a_second_interrupt_kills() {
    let leasehold = Leasehold::new();
    let polite = "trap 'exit 9' TERM; echo r > ready; while :; do sleep 0.05; done";
    let running = leasehold.start("a", polite, "ready");
    running.signal(Signal::TERM);
    assert_eq!(code(running.end().status), 9);
    let deaf = "trap 'echo heard > heard' INT; echo r > ready2; while :; do sleep 0.05; done";
    let mut running = leasehold.start("a", deaf, "ready2");
    running.signal(Signal::INT);
    leasehold.scratch.text_of("heard");
    // A second signal that follows at once counts as the same.
    wait_for("the end of leasehold", || {
        let has_ended = running.has_ended();
        if !has_ended {
            running.signal(Signal::INT);
        }
        has_ended.then_some(())
    });
    assert_eq!(code(running.end().status), 137);
}

#[test]
fn leasehold_ends_by_the_signal_that_ended_its_command_or_its_wait() {
    let leasehold = Leasehold::new();
    for signal in [Signal::INT, Signal::QUIT, Signal::TERM, Signal::HUP] {
        let holder = leasehold.start("a", "echo held >> held; exec sleep 60", "held");
        let waiter = Running::spawn(leasehold.script("-v a", "echo ran > ran"));
        leasehold.await_waiters("a", 1);
        waiter.signal(signal);
        let output = waiter.end();
        assert_eq!(output.status.signal(), Some(signal.as_raw()), "{}", text(&output.stderr));
        assert!(text(&output.stderr).contains("gave up waiting"), "{}", text(&output.stderr));
        holder.signal(signal);
        let output = holder.end();
        assert_eq!(output.status.signal(), Some(signal.as_raw()), "{}", text(&output.stderr));
        assert!(!output.status.core_dumped());
        assert_eq!(code(leasehold.run("-n a", "true").status), 0, "the lock is released before");
        std::fs::remove_file(leasehold.scratch.file("held")).unwrap();
    }
    let own = leasehold.run("a", "kill -INT $$");
    assert_eq!(own.status.code(), Some(128 + 2), "nobody interrupted leasehold");
    let deaf = leasehold.start("a", "trap 'exit 130' INT; echo r > ready; while :; do sleep 0.05; done", "ready");
    deaf.signal(Signal::INT);
    assert_eq!(deaf.end().status.code(), Some(130), "the command ended by itself");
    assert!(!leasehold.scratch.file("ran").exists());
}

#[test]
fn ignored_signals_stay_ignored() {
    let leasehold = Leasehold::new();
    let script = "echo r > ready; while [ ! -e done ]; do sleep 0.02; done; exit 6";
    let line = format!("trap '' HUP INT; exec {} run a -- sh -c '{script}'", env!("CARGO_BIN_EXE_leasehold"));
    let mut shell = leasehold.program("sh");
    shell.args(["-c", &line]);
    let running = Running::spawn(shell);
    leasehold.scratch.text_of("ready");
    for signal in [Signal::HUP, Signal::INT, Signal::INT] {
        running.signal(signal);
    }
    std::fs::write(leasehold.scratch.file("done"), "").unwrap();
    assert_eq!(code(running.end().status), 6);
}

#[test]
fn processes_that_a_command_leaves_behind_end_before_the_lock_is_free() {
    let leasehold = Leasehold::new();
    let output = leasehold.run("a", "sleep 60 > /dev/null 2>&1 & echo $! > pids; exit 5");
    assert_eq!(code(output.status), 5);
    assert!(leasehold.scratch.pids_of("pids").iter().all(|&pid| !is_alive(pid)));
}

#[test]
fn ls_and_show_name_locks_and_holders() {
    let leasehold = Leasehold::new();
    assert_eq!(leasehold.json("ls"), json!([]));
    let said = |line| text(&leasehold.command(line).finish().stdout);
    let place = format!(" in {}; for another store, give --url or set LEASEHOLD_URL\n", leasehold.url());
    assert_eq!(said("ls"), format!("no lock is held{place}"));
    assert_eq!(said("ls a*"), format!("no held lock matches \"a*\"{place}"));
    let _holder = leasehold.start("--why nightly job:1", HOLD, "held");
    let row = wait_for("the row", || leasehold.json("ls job:*").as_array().unwrap().first().cloned());
    assert_eq!((&row["name"], &row["why"], &row["held"]), (&json!("job:1"), &json!("nightly"), &json!(true)));
    assert!(row["pid"].is_u64() && row["token"].is_u64() && row["remaining_ms"].is_u64());
    assert_eq!(leasehold.json("ls other*"), json!([]));
    assert_eq!(leasehold.json("show job:1")["token"], row["token"]);
    assert_eq!(leasehold.json("show job:2")["held"], json!(false));
    let table = text(&leasehold.command("ls").finish().stdout);
    let (header, line) = table.split_once('\n').unwrap();
    assert!(header.trim_start().starts_with("NAME") && line.contains("nightly") && line.contains("pid "), "{table}");
    std::fs::write(leasehold.scratch.file("done"), "").unwrap();
}

#[test]
fn a_limit_on_file_sizes_is_an_error_here_and_as_ever_in_the_command() {
    let leasehold = Leasehold::new();
    let line = format!("ulimit -f 1; exec {} run a -- true", env!("CARGO_BIN_EXE_leasehold"));
    let output = leasehold.program("sh").args(["-c", &line]).finish();
    assert_eq!(code(output.status), 69, "{}", text(&output.stderr));
    assert_eq!(code(leasehold.run("a", "kill -XFSZ $$").status), 128 + 25);
}
