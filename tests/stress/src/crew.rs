//! The worker processes, each behind its own proxies.

use std::ffi::OsString;
use std::io::Write as _;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use test_support::{AfterDrop, Fault, Proxy, signals};

use crate::cast::{Cast, Mistake};
use crate::history::{Event, read_file};
use crate::part::{Facade, Part};
use crate::problem::Problem;
use crate::register::Register;
use crate::turn::{Turn, seat_name, turns};

/// How long a worker may take to exit when told to.
const ENDS_WITHIN: Duration = Duration::from_secs(20);

/// A position in the crew: which facade, and how it reaches the store.
#[derive(Debug)]
pub struct Post {
    /// The facade.
    pub facade: Facade,
    /// The store, through the proxies.
    pub url: String,
    /// One in front of each server.
    pub proxies: Vec<Proxy>,
    /// The seats of the worker.
    pub cast: Cast,
    /// What is wrong with the worker.
    pub mistake: Mistake,
}

/// The worker at a post: its process is replaced when it was killed.
#[derive(Debug)]
pub struct Worker {
    /// Whether its process runs.
    pub state: Running,
    post: Post,
    process: Child,
    name: String,
}

/// Whether a worker's process runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Running {
    /// It runs.
    Yes,
    /// It was stopped, and will be resumed.
    Frozen,
}

/// The connection from one worker to one server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Link {
    /// The worker's position in the crew.
    pub worker: usize,
    /// The server's position.
    pub server: usize,
}

/// What a test runs with.
#[derive(Debug)]
pub struct Ground {
    /// The worker's program.
    pub program: &'static str,
    /// Where histories go.
    pub directory: PathBuf,
    /// Variables in the environment of the workers.
    pub environment: Vec<(String, OsString)>,
    /// The source of all random choices.
    pub seed: u64,
}

/// All workers, and the histories of all workers so far.
#[derive(Debug)]
pub struct Crew {
    /// The current workers.
    pub workers: Vec<Worker>,
    /// What their locks protect.
    pub register: Register,
    ground: Ground,
    started: Vec<String>,
    broken: Vec<Problem>,
}

impl Crew {
    /// Starts a worker at each post.
    pub fn start(ground: Ground, posts: Vec<Post>) -> Self {
        let register = Register::serve(&ground.directory);
        let mut crew = Self { workers: Vec::new(), register, ground, started: Vec::new(), broken: Vec::new() };
        posts.into_iter().for_each(|post| crew.join(post));
        crew
    }

    /// Starts a worker at one more post.
    pub fn join(&mut self, post: Post) {
        let (name, process) = self.spawn(&post);
        self.workers.push(Worker { state: Running::Yes, post, process, name });
    }

    fn spawn(&mut self, post: &Post) -> (String, Child) {
        let &Post { facade, cast, mistake, .. } = post;
        let name = format!("{}-{}", facade.word(), self.started.len());
        let seed = self.ground.seed.wrapping_add(1_000 * (self.started.len() as u64 + 1));
        let (history, register) = (self.history(&name), self.register.socket().to_owned());
        let part = Part { facade, url: post.url.clone(), history, register, seed, ttl: cast.ttl(), cast, mistake };
        let process = Command::new(self.ground.program)
            .args(part.arguments())
            .envs(self.ground.environment.clone())
            .stdin(Stdio::piped())
            .spawn()
            .expect("the worker starts");
        self.started.push(name.clone());
        (name, process)
    }

    fn history(&self, name: &str) -> PathBuf {
        self.ground.directory.join(name)
    }

    /// Kills a worker's process and starts another in its place.
    pub fn replace(&mut self, index: usize) {
        let mut worker = self.workers.remove(index);
        self.broken.extend(worker.early_end());
        worker.process.kill().unwrap();
        worker.process.wait().unwrap();
        (worker.name, worker.process) = self.spawn(&worker.post);
        worker.state = Running::Yes;
        self.workers.insert(index, worker);
    }

    /// The worker that this process id belongs to.
    pub fn with_pid(&self, pid: u32) -> Option<usize> {
        self.workers.iter().position(|worker| worker.process.id() == pid)
    }

    /// The connections from a worker to all servers.
    pub fn links(&self, worker: usize) -> Vec<Link> {
        (0..self.workers[worker].post.proxies.len()).map(|server| Link { worker, server }).collect()
    }

    /// Cuts the connections over these links, and returns how many there were.
    pub fn cut(&self, links: &[Link]) -> u64 {
        links.iter().map(|link| self.proxy(*link).cut() as u64).sum()
    }

    /// Starts a fault on these links.
    pub fn begin_fault(&self, links: &[Link], fault: Fault) {
        links.iter().for_each(|link| self.proxy(*link).set(fault));
        if fault == Fault::Refuse {
            // Otherwise nobody would connect.
            self.cut(links);
        }
    }

    /// Ends the fault, and returns how often it fired.
    pub fn end_fault(&self, links: &[Link], fault: Fault) -> u64 {
        let fired = links.iter().map(|link| self.proxy(*link).fired()).sum();
        links.iter().for_each(|link| self.proxy(*link).heal());
        // No network drops single replies and continues, so the connection ends with the fault.
        if fault == Fault::DropReplies(AfterDrop::Keep) {
            self.cut(links);
        }
        fired
    }

    fn proxy(&self, link: Link) -> &Proxy {
        &self.workers[link.worker].post.proxies[link.server]
    }

    /// Every seat of the current workers.
    pub fn seats(&self) -> Vec<String> {
        let of_worker = |worker: &Worker| worker.seats().map(|seat| seat_name(&worker.name, seat)).collect::<Vec<_>>();
        self.workers.iter().flat_map(of_worker).collect()
    }

    /// The histories so far, by process name.
    pub fn histories(&self) -> Vec<(&str, Vec<Event>)> {
        self.started.iter().map(|name| (name.as_str(), read_file(&self.history(name)))).collect()
    }

    /// The history of a current worker.
    pub fn history_of(&self, worker: usize) -> Vec<Event> {
        read_file(&self.history(&self.workers[worker].name))
    }

    /// All turns so far.
    pub fn turns(&self) -> Vec<Turn> {
        self.histories().into_iter().flat_map(|(name, history)| turns(name, &history)).collect()
    }

    /// The source of all random choices.
    pub fn seed(&self) -> u64 {
        self.ground.seed
    }

    /// Where the histories are.
    pub fn directory(&self) -> &Path {
        &self.ground.directory
    }

    /// Tells all workers to rest longer after their turns, so that locks are free at times.
    pub fn ease(&mut self) {
        for worker in &mut self.workers {
            // A worker that has exited is reported at the end.
            worker.process.stdin.as_mut().map(|input| input.write_all(b"ease\n"));
        }
    }

    /// Tells all workers to exit, and returns the problems of those that did not, or exited with an error.
    pub fn end(&mut self) -> Vec<Problem> {
        for worker in &mut self.workers {
            drop(worker.process.stdin.take());
        }
        let deadline = Instant::now() + ENDS_WITHIN;
        let ended = self.workers.iter_mut().filter_map(|worker| worker.ends_by(deadline));
        self.broken.drain(..).chain(ended).collect()
    }
}

impl Worker {
    fn seats(&self) -> Range<usize> {
        0..self.post.cast.wishes().len()
    }

    /// The name of its process in the histories.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its process.
    pub fn pid(&self) -> u32 {
        self.process.id()
    }

    /// Stops its process.
    pub fn freeze(&mut self) {
        signals::stop(self.process.id());
        self.state = Running::Frozen;
    }

    /// Resumes its process.
    pub fn thaw(&mut self) {
        signals::resume(self.process.id());
        self.state = Running::Yes;
    }

    /// How the process exited, if it did so too early.
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
