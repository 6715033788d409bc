//! `leasehold elect`: one of several machines runs the command, and another one when that fails.

use std::process::Command;
use std::time::{Duration, Instant};

use crate::support::leasehold::{Leasehold, Running, code, report, text};
use crate::support::session::Session;
use crate::support::{is_alive, wait_for, wait_for_death};
use leasehold::{FencingToken, blocking};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use test_support::{Finish, RedisServer};

const SECOND: Duration = Duration::from_secs(1);
/// Each term writes a line: its number, and the process ids of the guard and the command.
const LEAD: &str = "echo $LEASEHOLD_FENCE $PPID $$ >> terms; exec sleep 60";

/// One term of a leader.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Term {
    number: u64,
    guard: i32,
    command: i32,
}

impl Term {
    /// The process that leads: the parent of the guard.
    fn leader(self) -> i32 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.guard)).unwrap();
        status.lines().find_map(|line| line.strip_prefix("PPid:")).unwrap().trim().parse().unwrap()
    }
}

fn terms(leasehold: &Leasehold) -> Vec<Term> {
    let text = std::fs::read_to_string(leasehold.scratch.file("terms")).unwrap_or_default();
    let term = |line: &str| {
        let numbers: Vec<u64> = line.split(' ').map(|word| word.parse().unwrap()).collect();
        let pid = |index: usize| i32::try_from(numbers[index]).unwrap();
        Term { number: numbers[0], guard: pid(1), command: pid(2) }
    };
    let whole = text.rfind('\n').map_or("", |end| &text[..end]);
    whole.lines().map(term).collect()
}

/// Waits for the last of this many terms.
fn term(leasehold: &Leasehold, count: usize) -> Term {
    wait_for(&format!("term {count}"), || terms(leasehold).get(count - 1).copied())
}

fn elect(leasehold: &Leasehold, options: &str, script: &str) -> Command {
    let mut command = leasehold.command("elect");
    command.args(options.split_whitespace()).args(["--", "sh", "-c", script]);
    command
}

fn kill(pid: i32, signal: Signal) {
    kill_process(Pid::from_raw(pid).unwrap(), signal).unwrap();
}

/// Three machines, of which two die one after the other while they lead.
fn leaders_die(options: &str) {
    const TTL: Duration = Duration::from_secs(4);
    let leasehold = Leasehold::new();
    let candidate = || Running::spawn(elect(&leasehold, &format!("{options} --ttl 4s scheduler"), LEAD));
    let candidates = [candidate(), candidate(), candidate()];
    // How long this machine takes to start a command at the moment.
    let began = Instant::now();
    assert_eq!(code(leasehold.run(&format!("{options} other"), "true").status), 0);
    let start = began.elapsed();
    for count in 1..=2 {
        let before = term(&leasehold, count);
        let leader = before.leader();
        kill(leader, Signal::KILL);
        let died = Instant::now();
        if count == 2 {
            // The whole machine.
            for pid in [before.guard, before.command] {
                // The guard may have ended with its leader.
                _ = kill_process(Pid::from_raw(pid).unwrap(), Signal::KILL);
            }
        }
        let next = term(&leasehold, count + 1);
        let took = died.elapsed();
        assert!(took < TTL + SECOND * 5 + start, "{took:?} after the death of a leader; a start takes {start:?}");
        assert!(!is_alive(before.command), "two commands at the same time");
        assert!(next.number > before.number && next.leader() != leader, "{before:?}, then {next:?}");
    }
    assert_eq!(terms(&leasehold).len(), 3);
    drop(candidates);
    wait_for_death(&[term(&leasehold, 3).command]);
}

#[test]
fn after_the_death_of_a_leader_the_next_one_leads_within_its_ttl_on_sqlite() {
    leaders_die("");
}

#[test]
fn after_the_death_of_a_leader_the_next_one_leads_within_its_ttl_on_redis() {
    let server = RedisServer::start();
    leaders_die(&format!("--url {}", server.url()));
}

#[test]
fn a_leader_whose_lease_is_lost_ends_its_command_and_leads_again_later() {
    let leasehold = Leasehold::new();
    let leader = Running::spawn(elect(&leasehold, "--ttl 3s --why web-3 scheduler", LEAD));
    let first = term(&leasehold, 1);
    assert_eq!(leasehold.json("show scheduler")["why"], "web-3");
    let client = blocking::connect(&leasehold.url()).unwrap();
    let token = FencingToken::new(first.number).unwrap();
    client
        .inspect()
        .unwrap()
        .revoke(&"scheduler".parse().unwrap(), token, &leasehold::inspect::note("").unwrap(), SECOND)
        .unwrap();
    let second = term(&leasehold, 2);
    assert!(second.number > first.number && !is_alive(first.command), "{first:?}, then {second:?}");
    leader.signal(Signal::TERM);
    let output = leader.end();
    assert_eq!(code(output.status), 143, "{output:?}");
    let said = text(&output.stderr);
    assert!(said.contains("the lease was lost") && said.contains("waiting to be elected again"), "{said}");
}

#[test]
fn a_store_that_is_away_ends_the_term_and_is_waited_for() {
    let mut server = RedisServer::start();
    let leasehold = Leasehold::new();
    let line = format!("--url {} --ttl 3s --json scheduler", server.url());
    let mut leader = Running::spawn(elect(&leasehold, &line, LEAD));
    let first = term(&leasehold, 1);
    server.kill();
    wait_for_death(&[first.command]);
    // Long enough to give up the release, and to find that the store is away.
    std::thread::sleep(4 * SECOND);
    assert!(!leader.has_ended(), "it gave up");
    server.restart_empty();
    let second = term(&leasehold, 2);
    assert!(second.number > first.number);
    leader.signal(Signal::TERM);
    let output = leader.end();
    assert_eq!(code(output.status), 143, "{output:?}");
    let lines = text(&output.stderr);
    let mut lines = lines.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let lost = lines.find(|line| line["outcome"] == "lost").unwrap();
    assert_eq!((lost["token"].as_u64(), lost["name"].as_str()), (Some(first.number), Some("scheduler")));
    assert_eq!(report(&output)["token"].as_u64(), Some(second.number));
}

/// The lease lasts 30 s, of which the command has 24 s, but for a moment after the hand-over.
#[test]
fn an_outage_right_after_a_hand_over_does_not_end_the_term() {
    let server = RedisServer::start();
    let leasehold = Leasehold::new();
    let line = format!("--url {} scheduler", server.url());
    let candidate = || Running::spawn(elect(&leasehold, &line, LEAD));
    let resigns = candidate();
    let first = term(&leasehold, 1);
    let mut leads = candidate();
    wait_for("the second candidate", || server.command::<u8>(&["HLEN", "leasehold:{scheduler}:w"]) == 1);
    resigns.signal(Signal::TERM);
    let second = term(&leasehold, 2);
    assert!(second.number > first.number);
    std::thread::sleep(SECOND / 2);
    server.stop();
    std::thread::sleep(5 * SECOND);
    server.resume();
    std::thread::sleep(SECOND);
    assert!(!leads.has_ended() && is_alive(second.command), "the term ended: {:?}", leads.end());
    assert_eq!(terms(&leasehold).len(), 2);
    leads.signal(Signal::TERM);
    let output = leads.end();
    assert_eq!(code(output.status), 143, "{output:?}");
}

#[test]
fn a_command_that_ends_by_itself_ends_the_election_for_this_machine() {
    let leasehold = Leasehold::new();
    let ended = elect(&leasehold, "scheduler", "exit 7").finish();
    let said = text(&ended.stderr);
    assert!(
        code(ended.status) == 7 && said.contains("\nleasehold: elected: this machine leads scheduler, term "),
        "{said}"
    );
    assert_eq!(said.lines().count(), 2, "the other line warns of the store: {said}");
    let quiet = elect(&leasehold, "-q scheduler", "exit 7").finish();
    assert_eq!((code(quiet.status), text(&quiet.stderr).as_str()), (7, ""));
    let other = elect(&leasehold, "-v scheduler", "true").finish();
    assert_eq!(code(other.status), 0, "it has resigned");
    assert!(text(&other.stderr).contains("got scheduler with token"), "{other:?}");
}

#[test]
fn a_candidate_can_be_ended_while_it_waits() {
    let leasehold = Leasehold::new();
    let leader = Running::spawn(elect(&leasehold, "scheduler", LEAD));
    let first = term(&leasehold, 1);
    let candidate = Running::spawn(elect(&leasehold, "scheduler", LEAD));
    leasehold.await_waiters("scheduler", 1);
    // A short wait is not mentioned.
    std::thread::sleep(5 * SECOND);
    candidate.signal(Signal::TERM);
    let output = candidate.end();
    assert_eq!(code(output.status), 143);
    let said = text(&output.stderr);
    assert!(said.contains("waiting for scheduler, held by pid"), "{said}");
    assert!(said.contains("the command was not started"), "{said}");
    leasehold.await_waiters("scheduler", 0);
    leader.signal(Signal::TERM);
    assert_eq!(code(leader.end().status), 143);
    assert!(!is_alive(first.command) && terms(&leasehold).len() == 1);
}

#[test]
fn a_leader_on_a_terminal_ends_as_its_command_does() {
    let screen = Session::of_script("leasehold elect scheduler -- sh -c 'echo led; exit 7'; echo code $?").end();
    assert!(screen.contains("led") && screen.contains("code 7"), "{screen}");
}

/// The command ignores SIGTERM, so the signal has not ended it when the lease is lost: the end was asked for all the same.
#[test]
fn a_leader_that_was_asked_to_end_does_not_campaign_again() {
    let leasehold = Leasehold::new();
    let stubborn = "trap '' TERM; echo $LEASEHOLD_FENCE $PPID $$ >> terms; while :; do sleep 0.1; done";
    let mut leader = Running::spawn(elect(&leasehold, "--ttl 3s scheduler", stubborn));
    let first = term(&leasehold, 1);
    leader.signal(Signal::TERM);
    std::thread::sleep(SECOND / 2);
    assert!(!leader.has_ended() && is_alive(first.command));
    let client = blocking::connect(&leasehold.url()).unwrap();
    let token = FencingToken::new(first.number).unwrap();
    client
        .inspect()
        .unwrap()
        .revoke(&"scheduler".parse().unwrap(), token, &leasehold::inspect::note("").unwrap(), SECOND)
        .unwrap();
    assert_eq!(code(leader.end().status), 76);
    assert_eq!(terms(&leasehold).len(), 1);
}

#[test]
fn what_cannot_be_is_refused() {
    let leasehold = Leasehold::new();
    for (options, expected, word) in [
        ("--ttl 1s scheduler", 64, "the smallest --ttl is"),
        ("--slots 3 scheduler", 64, "--slots"),
        ("", 64, "no name before `--`"),
        ("--url redis://127.0.0.1:1 scheduler", 69, "refused"),
        ("--url redsi://h scheduler", 78, "redsi"),
    ] {
        let output = elect(&leasehold, options, "touch ran").finish();
        let said = text(&output.stderr);
        assert_eq!(code(output.status), expected, "{options}: {said}");
        assert!(said.contains(word) && !leasehold.scratch.file("ran").exists(), "{options}: {said}");
    }
    let missing = leasehold.command("elect scheduler -- no-such-command").finish();
    assert_eq!(code(missing.status), 127, "{missing:?}");
}

/// As if the whole machine were suspended: none of the three can do anything in time.
#[test]
fn a_leader_that_was_paused_past_its_lease_ends_its_command_and_leads_again() {
    let leasehold = Leasehold::new();
    let mut leader = Running::spawn(elect(&leasehold, "--ttl 3s scheduler", LEAD));
    let first = term(&leasehold, 1);
    let all = [first.leader(), first.guard, first.command];
    all.iter().for_each(|&pid| kill(pid, Signal::STOP));
    std::thread::sleep(5 * SECOND);
    // The guard may have ended the command already.
    all.iter().for_each(|&pid| _ = kill_process(Pid::from_raw(pid).unwrap(), Signal::CONT));
    wait_for_death(&[first.command]);
    let second = wait_for("the second term, or the end", || {
        terms(&leasehold).get(1).copied().map(Some).or_else(|| leader.has_ended().then_some(None))
    });
    let Some(second) = second else { panic!("it gave up: {:?}", leader.end()) };
    assert!(second.number > first.number);
    leader.signal(Signal::TERM);
    let output = leader.end();
    assert_eq!(code(output.status), 143, "{output:?}");
}
