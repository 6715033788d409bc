//! Programs that lock with Curator, the library of locks for Java.

use std::fs::{self, File};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{ChildStdin, Command, Stdio};
use std::sync::OnceLock;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;
use std::time::{Duration, Instant};

use tempfile::TempDir;

use super::answers::{self, CuratorAnswer, CuratorClaim, CuratorLock, CuratorState, Told};
use super::programs::{self, JARS, MEASURED, QUICK, jar};
use crate::bounds::{PATIENCE, wait_for};
use crate::process::Process;
use crate::template::{self, done};
use crate::{Finish, PeerTurn, must, temp_dir};

/// What the process runs.
const SOURCE: &str = include_str!("Peer.java");
const LIBRARY: &str = "curator-recipes";
const LOG: &str = "curator.log";

/// A process with a session of Curator. Dropping this kills it; its session ends when the servers have not heard of it for long
/// enough.
#[derive(Debug)]
pub struct CuratorPeer {
    process: Process,
    directory: TempDir,
    input: ChildStdin,
    output: Receiver<String>,
    /// What it said and nobody asked about yet.
    heard: Vec<Told>,
    claims: u64,
}

impl CuratorPeer {
    /// Starts a process and waits until it is connected. The addresses have commas between them. The session ends after this time
    /// without a connection.
    pub fn connect(addresses: &str, session: Duration) -> Self {
        Self::start(QUICK, addresses, session)
    }

    /// The same with a Java that compiles itself as well as it can, for measurements: it starts slower, and has to warm up for seconds.
    pub fn connect_to_measure(addresses: &str, session: Duration) -> Self {
        Self::start(MEASURED, addresses, session)
    }

    /// The version of Curator.
    pub fn version() -> String {
        version()
    }

    fn start(arguments: &[&str], addresses: &str, session: Duration) -> Self {
        let directory = temp_dir();
        let log = must("make the log of Curator", File::create(directory.path().join(LOG)));
        let classes = [compiled().to_owned(), jar(LIBRARY)];
        let mut command = programs::java_with(arguments, &classes, directory.path(), &[]);
        command.args(["Peer", addresses, &session.as_millis().to_string()]);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(log);
        let mut process = Process::start(&mut command, directory.path());
        let (input, said) = process.pipes();
        let (lines, output) = channel();
        thread::spawn(move || {
            let mut read = BufReader::new(said).lines().map_while(Result::ok);
            read.try_for_each(|line| lines.send(line))
        });
        let mut peer = Self { process, directory, input, output, heard: Vec::new(), claims: 0 };
        peer.wait_for_state(CuratorState::Connected);
        peer
    }

    /// Begins to acquire a lock, and gives up after this time. Any number of acquires can be pending.
    #[track_caller]
    pub fn acquire(&mut self, lock: CuratorLock, path: &str, at_most: Duration) -> CuratorClaim {
        let claim = self.next_claim();
        self.tell(&answers::acquire(claim, lock, path, at_most));
        claim
    }

    /// Lets threads take mutexes again and again for this time: one thread for each path, and for a path as often as it is there. The
    /// peer hears nothing else meanwhile.
    #[track_caller]
    pub fn begin_turns(&mut self, paths: &[String], span: Duration) -> CuratorClaim {
        let claim = self.next_claim();
        self.tell(&answers::turns(claim, paths, span));
        claim
    }

    /// Waits until these threads are done, and returns all of their turns.
    ///
    /// # Panics
    /// If Curator refused one.
    #[track_caller]
    pub fn turns(&mut self, claim: CuratorClaim) -> Vec<PeerTurn> {
        let done = self.wait("the turns of threads", |told| match told {
            Told::Turns(of, file) if *of == claim => Some(Ok(file.clone())),
            Told::Claim(of, answer) if *of == claim => Some(Err(answer.clone())),
            Told::Claim(..) | Told::Queue(..) | Told::Held(..) | Told::Turns(..) | Told::State(_) => None,
        });
        let file = must("take turns", done.map_err(|answer| format!("Curator says {answer:?}")));
        let text = must("read turns", fs::read_to_string(self.directory.path().join(file)));
        PeerTurn::read_all(&text).unwrap_or_else(|| panic!("Curator wrote {text:?}"))
    }

    /// Releases a lock. One that is still pending is released as soon as it is acquired.
    #[track_caller]
    pub fn release(&mut self, claim: CuratorClaim) {
        self.tell(&format!("release {}", claim.0));
    }

    /// Whether Curator says that this process has the lock of this claim (`isAcquiredInThisProcess`).
    #[track_caller]
    pub fn is_acquired(&mut self, claim: CuratorClaim) -> bool {
        self.tell(&format!("held {}", claim.0));
        self.wait("whether a lock is held", |told| match told {
            Told::Held(of, held) if *of == claim => Some(*held),
            Told::Claim(..) | Told::Queue(..) | Told::Held(..) | Told::Turns(..) | Told::State(_) => None,
        })
    }

    /// The nodes of the holders and waiters of this claim's lock, in their order.
    #[track_caller]
    pub fn queue(&mut self, claim: CuratorClaim) -> Vec<String> {
        self.tell(&format!("queue {}", claim.0));
        self.wait("the queue of a lock", |told| match told {
            Told::Queue(of, nodes) if *of == claim => Some(nodes.clone()),
            Told::Claim(..) | Told::Queue(..) | Told::Held(..) | Told::Turns(..) | Told::State(_) => None,
        })
    }

    /// Waits for the next answer about a claim.
    #[track_caller]
    pub fn answer(&mut self, claim: CuratorClaim) -> CuratorAnswer {
        self.wait("the answer to a claim", |told| answer_about(claim, told))
    }

    /// The next answer about a claim, if it has arrived.
    pub fn answer_now(&mut self, claim: CuratorClaim) -> Option<CuratorAnswer> {
        self.hear_all();
        self.take(|told| answer_about(claim, told))
    }

    /// Waits until the peer reports this state. Each report counts once.
    #[track_caller]
    pub fn wait_for_state(&mut self, state: CuratorState) {
        self.wait(&format!("{state:?} of Curator"), |told| match told {
            Told::State(reported) if *reported == state => Some(()),
            Told::Claim(..) | Told::Queue(..) | Told::Held(..) | Told::Turns(..) | Told::State(_) => None,
        });
    }

    /// The next state that the peer has reported, if there is one.
    pub fn state_now(&mut self) -> Option<CuratorState> {
        self.hear_all();
        self.take(|told| match told {
            Told::State(state) => Some(*state),
            Told::Claim(..) | Told::Queue(..) | Told::Held(..) | Told::Turns(..) => None,
        })
    }

    /// The process id.
    pub fn pid(&self) -> u32 {
        self.process.pid()
    }

    /// Suspends the process (`SIGSTOP`).
    pub fn stop(&self) {
        self.process.stop();
    }

    /// Resumes the suspended process.
    pub fn resume(&self) {
        self.process.resume();
    }

    /// Kills the process (`SIGKILL`).
    pub fn kill(&mut self) {
        self.process.kill();
    }

    /// Closes the session, which frees its locks, and ends the process.
    #[track_caller]
    pub fn close(self) {
        let Self { mut process, directory: _directory, input, .. } = self;
        drop(input);
        wait_for("Curator closes its session", || !process.is_running());
    }

    fn next_claim(&mut self) -> CuratorClaim {
        let claim = CuratorClaim(self.claims);
        self.claims += 1;
        claim
    }

    #[track_caller]
    fn tell(&mut self, line: &str) {
        must("write to Curator", self.input.write_all(format!("{line}\n").as_bytes()));
    }

    fn hear_all(&mut self) {
        while let Ok(line) = self.output.try_recv() {
            self.hear(&line);
        }
    }

    fn hear(&mut self, line: &str) {
        let told = Told::read(line).unwrap_or_else(|| panic!("Curator said {line:?}:\n{}", self.log()));
        self.heard.push(told);
    }

    /// Waits until the peer says what is wanted.
    #[track_caller]
    fn wait<T>(&mut self, what: &str, wanted: impl Fn(&Told) -> Option<T>) -> T {
        let until = Instant::now() + PATIENCE;
        loop {
            if let Some(found) = self.take(&wanted) {
                return found;
            }
            match self.output.recv_timeout(until.saturating_duration_since(Instant::now())) {
                Ok(line) => self.hear(&line),
                Err(RecvTimeoutError::Disconnected) => panic!("Curator ended before {what}:\n{}", self.log()),
                Err(RecvTimeoutError::Timeout) => {
                    let (waited, heard) = (PATIENCE.as_secs(), &self.heard);
                    panic!("waited {waited} s in vain for {what}; it said {heard:?}:\n{}", self.log())
                }
            }
        }
    }

    /// The first that was heard of what is wanted.
    fn take<T>(&mut self, wanted: impl Fn(&Told) -> Option<T>) -> Option<T> {
        let (place, found) = self.heard.iter().enumerate().find_map(|(place, told)| Some((place, wanted(told)?)))?;
        self.heard.remove(place);
        Some(found)
    }

    #[cfg(test)]
    pub(super) fn directory(&self) -> &Path {
        self.directory.path()
    }

    fn log(&self) -> String {
        fs::read_to_string(self.directory.path().join(LOG)).unwrap_or_default()
    }
}

fn answer_about(claim: CuratorClaim, told: &Told) -> Option<CuratorAnswer> {
    match told {
        Told::Claim(of, answer) if *of == claim => Some(answer.clone()),
        Told::Claim(..) | Told::Queue(..) | Told::Held(..) | Told::Turns(..) | Told::State(_) => None,
    }
}

/// The folder of the compiled program, which is made once for each text of it and each version of Curator.
fn compiled() -> &'static Path {
    static COMPILED: OnceLock<PathBuf> = OnceLock::new();
    COMPILED.get_or_init(|| {
        programs::check(&jar(LIBRARY));
        let mut text = DefaultHasher::new();
        SOURCE.hash(&mut text);
        template::of_version(&format!("curator {} {:x}", version(), text.finish()), compile)
    })
}

/// The version of Curator, which is in the name of a second link to it.
fn version() -> String {
    let files = must("list the libraries of Java", fs::read_dir(JARS)).filter_map(Result::ok);
    let mut names = files.filter_map(|file| file.file_name().into_string().ok());
    let version =
        names.find_map(|name| Some(name.strip_prefix(LIBRARY)?.strip_prefix('-')?.strip_suffix(".jar")?.to_owned()));
    version.unwrap_or_default()
}

fn compile(place: &Path) {
    let directory = temp_dir();
    let source = directory.path().join("Peer.java");
    must("write a program", fs::write(&source, SOURCE));
    let mut compiler = Command::new(programs::installed("javac"));
    compiler.arg("-d").arg(place).arg("-cp").arg(jar(LIBRARY)).arg(&source).current_dir(directory.path());
    done("compiling a program", &compiler.finish());
}
