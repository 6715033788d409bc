//! The connections between the servers of a cluster, with proxies in between.

use std::net::Ipv4Addr;

use crate::cluster::start_six;
use crate::cluster_node::works;
use crate::permit::Permit;
use crate::redis_answers::info;
use crate::{Cluster, Fault, Proxy, RedisOptions, RedisServer};

/// Where the connections of a server come from that is cut off. All others come from 127.0.0.1.
const APART: Ipv4Addr = Ipv4Addr::new(127, 0, 0, 9);

/// The bus of a cluster: each server reaches each other one through the other's proxy.
#[derive(Debug)]
pub struct Bus {
    /// One for each server, with the port of its bus.
    proxies: Vec<(u16, Proxy)>,
}

impl Cluster {
    /// As [`start`](Self::start), with proxies between the servers.
    pub fn start_apart() -> (Self, Bus) {
        let permit = Permit::wait();
        let servers = start_six(RedisOptions::default());
        let bus = Bus { proxies: servers.iter().map(|server| (server.bus(), Proxy::start(server.bus()))).collect() };
        let ports: Vec<_> = bus.proxies.iter().map(|(_, proxy)| proxy.port()).collect();
        for (server, port) in servers.iter().zip(&ports) {
            server.command::<()>(&["CONFIG", "SET", "cluster-announce-bus-port", &port.to_string()]);
        }
        (Self::of_six(Some(permit), servers, &ports), bus)
    }

    /// Whether this server takes requests: it sees a majority of the primaries.
    pub fn takes_requests(&self, server: usize) -> bool {
        works(&self.servers[server]) == Some(true)
    }

    /// Whether this server is a primary, in its own view.
    pub fn is_primary(&self, server: usize) -> bool {
        info(&self.servers[server]).contains("role:master")
    }
}

impl Bus {
    /// Cuts the server off from all others, in both directions: a server counts as alive while the others get anything from
    /// it. Their other connections end, too, and are made again at once.
    pub fn cut_off(&self, server: &RedisServer) {
        server.command::<()>(&["CONFIG", "SET", "bind-source-addr", &APART.to_string()]);
        for (bus, proxy) in &self.proxies {
            let leads_there = *bus == server.bus();
            proxy.set(if leads_there { Fault::Refuse } else { Fault::RefuseFrom(APART) });
        }
        for (_, proxy) in &self.proxies {
            proxy.cut();
        }
    }

    /// Ends the partition.
    pub fn heal(&self) {
        self.proxies.iter().for_each(|(_, proxy)| proxy.heal());
    }
}
