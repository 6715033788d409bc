//! The worker processes, each behind a proxy of its own.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use stress::check::{Problem, Turn, seat_name, turns};
use stress::history::{Event, read_file};
use stress::part::{Face, Part, SEATS};
use test_support::{Proxy, RedisServer, signals};

/// The ttl of all leases: short, so that many run out.
pub(crate) const TTL: Duration = Duration::from_secs(1);
/// How long a worker may take to end once it was told.
const ENDS_WITHIN: Duration = Duration::from_secs(20);

/// The face of each worker, and what is special about its connection.
const CREW: [(Face, &str); 6] = [
    (Face::Async, ""),
    (Face::Blocking, ""),
    (Face::Async, ""),
    (Face::Blocking, ""),
    (Face::Async, "?protocol=resp2"),
    (Face::Blocking, "?protocol=resp2"),
];

/// One place in the crew: the process in it is replaced when it was killed.
pub(crate) struct Worker {
    pub(crate) proxy: Proxy,
    pub(crate) state: Running,
    face: Face,
    url: String,
    process: Child,
    name: String,
}

/// Whether a worker's process runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Running {
    Yes,
    Frozen,
}

/// All workers, and the histories of all that there have been.
pub(crate) struct Crew {
    pub(crate) workers: Vec<Worker>,
    histories: PathBuf,
    seed: u64,
    started: Vec<String>,
    broken: Vec<Problem>,
}

impl Crew {
    pub(crate) fn start(server: &RedisServer, histories: &Path, seed: u64) -> Self {
        let mut crew = Self {
            workers: Vec::new(),
            histories: histories.to_owned(),
            seed,
            started: Vec::new(),
            broken: Vec::new(),
        };
        for (face, query) in CREW {
            let proxy = Proxy::start(server.port());
            let url = format!("{}{query}", server.url_at(proxy.port()));
            let (name, process) = crew.spawn(face, &url);
            crew.workers.push(Worker { proxy, state: Running::Yes, face, url, process, name });
        }
        crew
    }

    fn spawn(&mut self, face: Face, url: &str) -> (String, Child) {
        let name = format!("{}-{}", face.word(), self.started.len());
        let seed = self.seed.wrapping_add(1_000 * (self.started.len() as u64 + 1));
        let part = Part { face, url: url.to_owned(), history: self.histories.join(&name), seed, ttl: TTL };
        let process = Command::new(env!("CARGO_BIN_EXE_stress-worker"))
            .args(part.arguments())
            .stdin(Stdio::piped())
            .spawn()
            .expect("the worker starts");
        self.started.push(name.clone());
        (name, process)
    }

    /// Kills the process of a worker and starts another in its place.
    pub(crate) fn replace(&mut self, index: usize) {
        let worker = &mut self.workers[index];
        self.broken.extend(worker.early_end());
        worker.process.kill().unwrap();
        worker.process.wait().unwrap();
        let (face, url) = (worker.face, worker.url.clone());
        let (name, process) = self.spawn(face, &url);
        let worker = &mut self.workers[index];
        (worker.name, worker.process, worker.state) = (name, process, Running::Yes);
    }

    /// The worker that this process id belongs to.
    pub(crate) fn with_pid(&self, pid: u32) -> Option<usize> {
        self.workers.iter().position(|worker| worker.process.id() == pid)
    }

    /// Every seat of those that run now.
    pub(crate) fn seats(&self) -> Vec<String> {
        let of_worker =
            |worker: &Worker| (0..SEATS.len()).map(|seat| seat_name(&worker.name, seat)).collect::<Vec<_>>();
        self.workers.iter().flat_map(of_worker).collect()
    }

    /// What was written down so far, by the name of each process.
    pub(crate) fn histories(&self) -> Vec<(&str, Vec<Event>)> {
        self.started.iter().map(|name| (name.as_str(), read_file(&self.histories.join(name)))).collect()
    }

    /// All turns so far.
    pub(crate) fn turns(&self) -> Vec<Turn> {
        self.histories().into_iter().flat_map(|(name, history)| turns(name, &history)).collect()
    }

    /// Tells all workers to end, and answers what became of those that did not, or not well.
    pub(crate) fn end(&mut self) -> Vec<Problem> {
        for worker in &mut self.workers {
            drop(worker.process.stdin.take());
        }
        let deadline = Instant::now() + ENDS_WITHIN;
        let ended = self.workers.iter_mut().filter_map(|worker| worker.ends_by(deadline));
        self.broken.drain(..).chain(ended).collect()
    }
}

impl Worker {
    pub(crate) fn freeze(&mut self) {
        signals::stop(self.process.id());
        self.state = Running::Frozen;
    }

    pub(crate) fn thaw(&mut self) {
        signals::resume(self.process.id());
        self.state = Running::Yes;
    }

    /// How the process ended that should not have ended, if it did.
    fn early_end(&mut self) -> Option<Problem> {
        let status = self.process.try_wait().unwrap()?;
        Some(Problem::Broken(self.name.clone(), status.to_string()))
    }

    fn ends_by(&mut self, deadline: Instant) -> Option<Problem> {
        loop {
            if let Some(status) = self.process.try_wait().unwrap() {
                return (!status.success()).then(|| Problem::Broken(self.name.clone(), status.to_string()));
            }
            if Instant::now() > deadline {
                return Some(Problem::Stuck(self.name.clone()));
            }
            thread::sleep(Duration::from_millis(10));
        }
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        self.process.kill().ok();
        self.process.wait().ok();
    }
}
