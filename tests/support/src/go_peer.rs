//! Programs that lock with etcd's own client for Go. `tests/go` says what they hear and say.

use std::fs::{self, File};
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::Duration;

use tempfile::TempDir;

use crate::bounds::{PATIENCE, wait_at_most};
use crate::process::Process;
use crate::{EtcdServer, PeerTurn, must, temp_dir};

/// The program, which `cargo xtask go` compiles.
const PROGRAM: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../target/servers/go-client/peer");
const LOG: &str = "peer.log";
const TURNS: &str = "turns";

/// A lock of etcd's client for Go.
#[derive(Clone, Copy, Debug)]
pub enum GoLock {
    /// `concurrency.Mutex`.
    Mutex,
    /// The reader's side of `recipe.RWMutex`.
    Read,
    /// Its writer's side.
    Write,
}

/// A process that locks in Go. Dropping this kills it; its lease ends when its time is over.
#[derive(Debug)]
pub struct GoPeer {
    process: Process,
    directory: TempDir,
    input: ChildStdin,
    output: Receiver<String>,
}

impl GoPeer {
    /// Begins to acquire a lock, with a lease of so many seconds.
    pub fn acquire(server: &EtcdServer, seconds: u32, lock: GoLock, key: &str) -> Self {
        let kind = match lock {
            GoLock::Mutex => "mutex",
            GoLock::Read => "read",
            GoLock::Write => "write",
        };
        Self::start(server, "hold", seconds, &[kind, key])
    }

    /// Prepares to take a mutex for each of these keys again and again for this time.
    pub fn prepare_turns(server: &EtcdServer, seconds: u32, span: Duration, keys: &[String]) -> Self {
        let millis = span.as_millis().to_string();
        let keys = keys.iter().map(String::as_str);
        let peer = Self::start(server, TURNS, seconds, &[&millis, TURNS].into_iter().chain(keys).collect::<Vec<_>>());
        peer.says("ready");
        peer
    }

    fn start(server: &EtcdServer, act: &str, seconds: u32, words: &[&str]) -> Self {
        assert!(Path::new(PROGRAM).exists(), "there is no program with Go's client; get it with: cargo xtask go");
        let directory = temp_dir();
        let log = must("make the log of the peer", File::create(directory.path().join(LOG)));
        let mut command = Command::new(PROGRAM);
        command.args([act, &format!("127.0.0.1:{}", server.port()), &seconds.to_string()]).args(words);
        command.current_dir(directory.path()).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(log);
        let mut process = Process::start(&mut command, directory.path());
        let (input, said) = process.pipes();
        let (lines, output) = channel();
        thread::spawn(move || {
            let mut read = BufReader::new(said).lines().map_while(Result::ok);
            read.try_for_each(|line| lines.send(line))
        });
        Self { process, directory, input, output }
    }

    /// Has it do something.
    #[track_caller]
    pub fn tell(&mut self, word: &str) {
        must("write to the peer", writeln!(self.input, "{word}"));
    }

    /// Waits for its next line, which has to be this one.
    #[track_caller]
    pub fn says(&self, line: &str) {
        self.says_within(PATIENCE, line);
    }

    #[track_caller]
    fn says_within(&self, patience: Duration, line: &str) {
        let said = wait_at_most(patience, &format!("{line:?} of the peer"), || self.said());
        assert_eq!(said, line, "{}", self.log());
    }

    /// Its next line, if it has come.
    pub fn said(&self) -> Option<String> {
        self.output.try_recv().ok()
    }

    /// Lets it take the turns that are prepared.
    #[track_caller]
    pub fn begin_turns(&mut self) {
        self.tell("");
    }

    /// Waits until it has taken its turns.
    ///
    /// # Panics
    /// If one failed.
    #[track_caller]
    pub fn turns(&self, span: Duration) -> Vec<PeerTurn> {
        self.says_within(span + PATIENCE, "done");
        let text = must("read turns", fs::read_to_string(self.directory.path().join(TURNS)));
        PeerTurn::read_all(&text).unwrap_or_else(|| panic!("the peer wrote {text:?}"))
    }

    /// Suspends the process (`SIGSTOP`).
    pub fn stop(&self) {
        self.process.stop();
    }

    /// Resumes the suspended process.
    pub fn resume(&self) {
        self.process.resume();
    }

    fn log(&self) -> String {
        fs::read_to_string(self.directory.path().join(LOG)).unwrap_or_default()
    }
}
