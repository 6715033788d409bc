//! Redis alone, with sentinels, as a cluster, and as a quorum.

pub(crate) mod alone;
pub(crate) mod cluster;
pub(crate) mod quorum;
pub(crate) mod sentinels;

use std::thread;
use std::time::Duration;

use fastrand::Rng;
use stress::cast::HOT;
use stress::check::Loss;
use stress::crew::Post;
use stress::history::now;
use stress::part::Facade;
use test_support::bounds::wait_for;
use test_support::{Machine, RedisOptions, RedisServer};

use super::host::Host;
use super::{Deployment, Start, fill_disk, no_such_fault};
use crate::fault::LASTS;

/// How servers work together.
pub(crate) trait Servers: Sized + 'static {
    /// How long a server is suspended.
    const SUSPENDED_FOR: Duration = LASTS;
    /// Starts servers with these options.
    fn start(options: RedisOptions) -> Self;

    fn post(&self, facade: Facade) -> Post;

    /// The server to break: one that locks are granted by.
    fn target(&self, rng: &mut Rng) -> &RedisServer;

    /// The loss to allow for after the target has lost all keys; `None` if locks must still have one holder.
    fn excused(loss: Loss) -> Option<Loss>;

    /// Kills a server, and starts it with its data.
    fn kill(&mut self, rng: &mut Rng);

    /// As [`Deployment::fail_over`].
    fn fail_over(&mut self) -> bool {
        no_such_fault()
    }
}

/// Servers that write each change to a file before they answer, and refuse changes while they cannot.
pub(crate) struct Redis<S> {
    servers: S,
    host: Host,
}

impl<S: Servers> Start for Redis<S> {
    fn start() -> Self {
        let host = Host::new();
        // What a killed server has written is in the hands of the system, so it need not flush it.
        let options = RedisOptions::default().arguments(&["--appendonly", "yes", "--appendfsync", "no"]);
        Self { servers: S::start(options.on(&host.machine)), host }
    }
}

impl<S: Servers> Deployment for Redis<S> {
    fn post(&self, facade: Facade) -> Post {
        self.servers.post(facade)
    }

    fn kill(&mut self, rng: &mut Rng) {
        self.servers.kill(rng);
    }

    fn stop(&mut self, rng: &mut Rng) {
        let server = self.servers.target(rng);
        server.stop();
        thread::sleep(S::SUSPENDED_FOR);
        server.resume();
    }

    fn fail_over(&mut self) -> bool {
        self.servers.fail_over()
    }

    fn fill_memory(&mut self, rng: &mut Rng) -> bool {
        let server = self.servers.target(rng);
        let refused = || statistic(server, "errorstats", "errorstat_OOM:count=");
        let before = refused();
        set_memory(server, "1", "noeviction");
        thread::sleep(LASTS);
        set_memory(server, "0", "noeviction");
        refused() > before
    }

    fn fill_disk(&mut self, rng: &mut Rng, _: &Machine) -> bool {
        fill_disk(&self.host.machine, &self.servers.target(rng).directory().join("appendonlydir"))
    }

    fn step_clock(&mut self, rng: &mut Rng) -> bool {
        let server = self.servers.target(rng);
        self.host.turns_back(|| clock(server))
    }

    fn evict(&mut self, rng: &mut Rng) -> Option<Loss> {
        let server = self.servers.target(rng);
        wait_for("the server knows of a lease", || server.keys().iter().any(|key| key.contains(HOT)).then_some(()));
        set_memory(server, "1", "allkeys-random");
        wait_for("all keys are evicted", || (server.command::<u64>(&["DBSIZE"]) == 0).then_some(()));
        // Nothing is granted while the memory is full.
        let watermark = clock(server);
        set_memory(server, "0", "noeviction");
        S::excused(Loss { at: now(), watermark, lock: None })
    }
}

/// In microseconds.
fn clock(server: &RedisServer) -> u64 {
    let (seconds, micros): (u64, u64) = server.command(&["TIME"]);
    seconds * 1_000_000 + micros
}

/// A number of `INFO`, or 0.
fn statistic(server: &RedisServer, section: &str, name: &str) -> u64 {
    let info: String = server.command(&["INFO", section]);
    let count = info.lines().find_map(|line| line.strip_prefix(name));
    count.map_or(0, |count| count.trim().parse().unwrap())
}

fn set_memory(server: &RedisServer, most: &str, policy: &str) {
    server.command::<()>(&["CONFIG", "SET", "maxmemory-policy", policy, "maxmemory", most]);
}
