//! A way to several servers through proxies.

use std::net::Ipv4Addr;
use std::sync::atomic::{AtomicU8, Ordering};

use crate::Proxy;

/// A way to a cluster, or to sentinels and their servers, that leads through proxies.
#[derive(Debug)]
pub struct Detour {
    /// One for each server, in the same order, and then one for each sentinel.
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

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use crate::Trio;
    use crate::sentinels::{MASTER, PASSWORDS};

    #[test]
    fn sentinels_send_clients_through_proxies() {
        let trio = Trio::start();
        let detour = trio.detour();
        let (_, sentinel) = detour.url.rsplit_once('/').unwrap().0.rsplit_once(',').unwrap();
        let client = redis::Client::open(format!("redis://:{}@{sentinel}", PASSWORDS.1)).unwrap();
        let mut connection = client.get_connection_with_timeout(Duration::from_secs(5)).unwrap();
        let asked = redis::cmd("SENTINEL").arg("GET-MASTER-ADDR-BY-NAME").arg(MASTER).query(&mut connection);
        let named: (String, u16) = asked.unwrap();
        assert_eq!((&*named.0, named.1), (sentinel.split_once(':').unwrap().0, trio.primary().port()));
        let told = redis::cmd("SENTINEL").arg("REPLICAS").arg(MASTER).query::<Vec<Vec<String>>>(&mut connection);
        assert!(!told.unwrap().concat().iter().any(|word| word.contains("127.0.0.1")));
    }
}
