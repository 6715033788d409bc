//! A way to several servers through proxies.

use std::net::Ipv4Addr;
use std::sync::atomic::{AtomicU8, Ordering};

use crate::Proxy;

/// A way to a cluster, or to sentinels and their servers, that leads through proxies.
#[derive(Debug)]
pub struct Detour {
    /// One for each server, in the same order.
    pub proxies: Vec<Proxy>,
    /// The URL for clients that go this way.
    pub url: String,
}

impl Detour {
    /// Starts a proxy for each of these ports, on an address of their own.
    pub(crate) fn around(ports: impl Iterator<Item = u16>, url_at: impl FnOnce(Ipv4Addr) -> String) -> Self {
        let host = next_host();
        Self { proxies: ports.map(|port| Proxy::with_port_of(port, host)).collect(), url: url_at(host) }
    }
}

/// An address of the loopback network that no other detour of this process has. It is as long as 127.0.0.1, so that a proxy can put it in its
/// place.
fn next_host() -> Ipv4Addr {
    static NEXT: AtomicU8 = AtomicU8::new(0);
    let number = NEXT.fetch_add(1, Ordering::SeqCst);
    Ipv4Addr::new(127, 1 + number / 90, number / 9 % 10, 1 + number % 9)
}
