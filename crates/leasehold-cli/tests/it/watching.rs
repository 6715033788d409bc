//! `leasehold watch` and `leasehold ls --watch`.

use std::io::{BufRead, BufReader};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread;

use crate::support::leasehold::{Leasehold, Running, code, text, until_let_go};
use crate::support::nodes::Nodes;
use crate::support::session::Session;
use crate::support::wait_for;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use test_support::bounds::status_of;
use test_support::{Finish, RedisOptions, RedisServer};

/// A watch, whose lines are read as they come.
pub(crate) struct Watch {
    child: Child,
    lines: Receiver<String>,
}

impl Watch {
    pub(crate) fn start(mut command: Command) -> Self {
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let (tell, lines) = channel();
        let out: BufReader<ChildStdout> = BufReader::new(child.stdout.take().unwrap());
        thread::spawn(move || out.lines().map_while(Result::ok).for_each(|line| drop(tell.send(line))));
        Self { child, lines }
    }

    fn line(&self) -> String {
        wait_for("a line of the watch", || self.lines.try_recv().ok())
    }

    pub(crate) fn event(&self, event: &str, name: &str) -> Value {
        let line: Value = serde_json::from_str(&self.line()).unwrap();
        assert_eq!((&line["event"], &line["name"]), (&event.into(), &name.into()), "{line}");
        line
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn the_locks_of_a_quorum_are_watched() {
    let mut nodes = Nodes::founded(3);
    let url = format!("--url {}", nodes.url());
    let watch = Watch::start(nodes.leasehold.command(&format!("watch {url} --json --every 100ms")));
    let first = nodes.leasehold.start(&format!("{url} --ttl 3s --why one a"), &until_let_go("one"), "one");
    let token = watch.event("acquired", "a")["lease"]["token"].clone();
    nodes.servers[2].kill();
    let other = nodes.leasehold.start(&format!("{url} --ttl 3s b"), &until_let_go("two"), "two");
    watch.event("acquired", "b");
    let line = format!("break {url} a --yes --why stuck --token {token}");
    assert_eq!(code(nodes.leasehold.command(&line).finish().status), 0);
    let broken = watch.event("broken", "a");
    assert!(broken["by"].as_str().unwrap().contains("stuck"), "{broken}");
    assert_eq!(code(first.end().status), 76);
    nodes.leasehold.let_go("two");
    assert_eq!(code(other.end().status), 0);
    watch.event("released", "b");
}

#[test]
fn each_event_is_one_line() {
    let server = RedisServer::start_with(RedisOptions::default().append_only());
    for url in [String::new(), format!("--url {}", server.url())] {
        let leasehold = Leasehold::new();
        let first = leasehold.start(&format!("{url} --why one job:a"), &until_let_go("one"), "one");
        let other = leasehold.start(&format!("{url} other"), &until_let_go("other"), "other");
        let watch = Watch::start(leasehold.command(&format!("watch {url} --json --every 100ms job:*")));
        let token = watch.event("acquired", "job:a");
        assert_eq!((&token["already"], &token["lease"]["why"]), (&true.into(), &"one".into()));
        let waiter = Running::spawn(leasehold.script(&format!("{url} --ttl 3s job:a"), &until_let_go("two")));
        assert_eq!(watch.event("queued", "job:a")["waiters"], 1);
        leasehold.let_go("one");
        assert_eq!(watch.event("released", "job:a")["lease"]["token"], token["lease"]["token"]);
        let token = watch.event("acquired", "job:a")["lease"]["token"].as_u64().unwrap();
        let broken = leasehold.command(&format!("break {url} job:a --yes --token {token}")).finish();
        assert_eq!(code(broken.status), 0, "{}", text(&broken.stderr));
        let event = watch.event("broken", "job:a");
        assert!(event["lease"]["token"] == token && event["by"].as_str().unwrap().contains("pid"), "{event}");
        let killed = leasehold.start(&format!("{url} --ttl 2s job:b"), &until_let_go("three"), "three");
        watch.event("acquired", "job:b");
        let pid = leasehold.json(&format!("show {url} job:b"))["pid"].as_i64().unwrap();
        test_support::signals::kill_now(u32::try_from(pid).unwrap());
        watch.event("lost", "job:b");
        assert_eq!(code(waiter.end().status), 76);
        leasehold.let_go("other");
        drop((first, killed));
        assert_eq!(code(other.end().status), 0);
    }
}

#[test]
fn a_reader_that_ends_ends_the_watch_quietly() {
    let leasehold = Leasehold::new();
    for line in ["watch --json", "ls --watch", "ls --watch --json"] {
        let mut child = leasehold.command(line).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        drop(child.stdout.take());
        let status = status_of(&mut child, line);
        let mut said = String::new();
        std::io::Read::read_to_string(&mut child.stderr.take().unwrap(), &mut said).unwrap();
        assert_eq!((code(status), said.as_str()), (0, ""), "{line}");
    }
}

#[test]
fn a_store_that_goes_away_is_told_once_and_looked_for_again() {
    let mut server = RedisServer::start_with(RedisOptions::default().append_only());
    let leasehold = Leasehold::new();
    let mut command = leasehold.command(&format!("watch --every 100ms --url {}", server.url()));
    command.stderr(std::fs::File::create(leasehold.scratch.file("said")).unwrap());
    let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
    let before = leasehold.run(&format!("--url {} a", server.url()), "true");
    assert_eq!(code(before.status), 0);
    server.kill();
    let said = |words: &str| {
        wait_for(words, || {
            std::fs::read_to_string(leasehold.scratch.file("said")).ok().filter(|said| said.contains(words))
        })
    };
    said("the store is unreachable");
    server.restart_with_data();
    let said = said("the store is reachable again");
    assert_eq!(said.matches("the store is unreachable").count(), 1, "{said}");
    child.kill().unwrap();
    child.wait().unwrap();
    let gone = leasehold.command("watch --url redis://127.0.0.1:1").finish();
    assert_eq!(code(gone.status), 69, "at the start, it is an error");
}

#[test]
fn what_a_store_forgot_while_it_was_away_is_not_told_as_released() {
    let mut server = RedisServer::start();
    let leasehold = Leasehold::new();
    let _holder = leasehold.start(&format!("--url {} b", server.url()), &until_let_go("held"), "held");
    let mut command = leasehold.program("sh");
    command.args([
        "-c",
        "exec \"$0\" watch --json --every 100ms --url $1 b 2> said",
        env!("CARGO_BIN_EXE_leasehold"),
        &server.url(),
    ]);
    let watch = Watch::start(command);
    watch.event("acquired", "b");
    server.kill();
    let is_unreachable =
        || std::fs::read_to_string(leasehold.scratch.file("said")).ok().filter(|said| said.contains("is unreachable"));
    wait_for("the store is unreachable", is_unreachable);
    server.restart_empty();
    watch.event("ended", "b");
}

#[test]
fn a_pattern_and_a_pause_are_checked_and_a_signal_ends_it() {
    let leasehold = Leasehold::new();
    for line in ["watch --every soon", "watch --every 1ms", "ls --watch --every 0s"] {
        assert_eq!(code(leasehold.command(line).finish().status), 64, "{line}");
    }
    let mut watch = Watch::start(leasehold.command("ls --watch --every 100ms nothing*"));
    let said = watch.line();
    assert!(said.contains("no held lock matches \"nothing*\""), "{said}");
    kill_process(Pid::from_child(&watch.child), Signal::INT).unwrap();
    assert_eq!(code(status_of(&mut watch.child, "the watch")), 130);
}

#[test]
fn a_terminal_is_redrawn_and_a_dumb_one_is_not() {
    let mut session = Session::of_script(
        "leasehold run job10 -- sh -c 'echo h > held; sleep 60' < /dev/null & one=$!; \
         leasehold run job2 -- sh -c 'echo h > held2; sleep 60' < /dev/null & two=$!; \
         while [ ! -e held ] || [ ! -e held2 ]; do sleep 0.05; done; stty rows 24 cols 80; \
         until_enter() { leasehold ls --watch & read enter; kill $!; wait $!; }; \
         TERM=xterm until_enter; echo over; stty rows 0 cols 0; TERM=xterm until_enter; echo again; \
         TERM=dumb until_enter; echo dumb; kill $one $two; wait",
    );
    session.shows("Ctrl-C ends this");
    session.shows("HELD");
    session.shows("job2");
    session.shows("job10");
    session.shows("\x1b[H");
    session.types("\n");
    session.shows("over");
    session.shows("\x1b[H");
    session.types("\n");
    session.shows("again");
    session.shows("job2 ");
    session.types("\n");
    let screen = session.end();
    let dumb = screen.rsplit("again").next().unwrap();
    assert!(dumb.contains("job2 ") && !dumb.contains('\x1b'), "{dumb}");
}
