//! How each setting is run, and how its servers break.

pub(crate) mod etcd;
pub(crate) mod file;
mod host;
pub(crate) mod redis;
pub(crate) mod sql;
pub(crate) mod zookeeper;

use std::path::Path;
use std::thread;

use fastrand::Rng;
use stress::cast::{Cast, Mistake};
use stress::check::Loss;
use stress::crew::Post;
use stress::part::Facade;
use test_support::{Machine, Proxy};

use crate::fault::LASTS;

/// A running setting. Each fault ends before its function returns; a setting has functions for the faults that can hit it.
pub(crate) trait Deployment {
    /// Where the next process is, behind proxies of its own if it has servers.
    fn post(&self, facade: Facade) -> Post;

    /// Kills a server, and starts it with its data.
    fn kill(&mut self, _: &mut Rng) {
        no_such_fault()
    }

    /// Suspends a server.
    fn stop(&mut self, _: &mut Rng) {
        no_such_fault()
    }

    /// Ends the leader's term. Returns whether another server leads.
    fn fail_over(&mut self) -> bool {
        no_such_fault()
    }

    /// Fills the memory of a server. Returns whether a request was refused.
    fn fill_memory(&mut self, _: &mut Rng) -> bool {
        no_such_fault()
    }

    /// Fills the disk of a server or of the clients. Returns whether a write was refused.
    fn fill_disk(&mut self, _: &mut Rng, _: &Machine) -> bool {
        no_such_fault()
    }

    /// Sets the clock of the servers back. Returns whether it went back.
    fn step_clock(&mut self, _: &mut Rng) -> bool {
        no_such_fault()
    }

    /// Has a server that knows of a lease evict all keys. Returns the loss to allow for, if locks may have two holders.
    fn evict(&mut self, _: &mut Rng) -> Option<Loss> {
        no_such_fault()
    }
}

/// Starts one.
pub(crate) trait Start: Deployment + Sized + 'static {
    fn start() -> Self;
}

pub(crate) fn boxed<D: Start>() -> Box<dyn Deployment> {
    Box::new(D::start())
}

fn post(facade: Facade, url: String, proxies: Vec<Proxy>) -> Post {
    Post { facade, url, proxies, cast: Cast::Locks, mistake: Mistake::None }
}

/// The hosts and ports of these proxies, with commas between them.
fn hosts(proxies: &[Proxy]) -> String {
    let hosts: Vec<_> = proxies.iter().map(|proxy| format!("127.0.0.1:{}", proxy.port())).collect();
    hosts.join(",")
}

/// A process behind a proxy in front of the only server.
fn behind_a_proxy(facade: Facade, port: u16, url_at: impl FnOnce(u16) -> String) -> Post {
    let proxy = Proxy::start(port);
    post(facade, url_at(proxy.port()), vec![proxy])
}

/// Fills the disk that has this folder, for a while. Returns whether a write was refused.
fn fill_disk(machine: &Machine, folder: &Path) -> bool {
    machine.fill_disk(folder, || thread::sleep(LASTS)) > 0
}

fn no_such_fault() -> ! {
    panic!("the setting lists a fault that its deployment does not have")
}
