//! How each setting is run, and how its servers break.

pub(crate) mod etcd;
pub(crate) mod file;
pub(crate) mod redis;
pub(crate) mod sql;
pub(crate) mod zookeeper;

use fastrand::Rng;
use stress::cast::{Cast, Mistake};
use stress::crew::Post;
use stress::part::Facade;
use test_support::Proxy;

use crate::fault::Fault;

/// A running setting.
pub(crate) trait Deployment {
    /// Where the next process is, behind proxies of its own if possible.
    fn post(&self, facade: Facade) -> Post;

    /// Injects a fault into servers, ends it, and returns whether it took effect.
    fn strike(&mut self, fault: Fault, rng: &mut Rng) -> bool;
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

/// The setting lists this fault, and its deployment does not know it.
fn unknown(fault: Fault) -> bool {
    panic!("{fault:?} does not apply here")
}
