//! Three etcd servers that replicate each other.

use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use crate::bounds::wait_for;
use crate::etcd_member::{EtcdMember, EtcdVersion};
use crate::etcd_server::EtcdServer;
use crate::links::Links;
use crate::must;
use crate::permit::Permit;
use crate::redis_server::free_port;

const SERVERS: usize = 3;
/// How long the servers may take to find each other. Only bounds a hang.
const START_WITHIN: Duration = Duration::from_secs(30);
/// How often to retry on other ports, because a free port may be taken before a server binds it.
const START_TRIES: u32 = 5;

/// Three running servers with the times that are usual: another leader is elected after one to two seconds. Dropping this kills them and removes
/// their data, and so does the end of the process.
#[derive(Debug)]
pub struct EtcdCluster {
    servers: Vec<EtcdServer>,
    links: Links,
    /// Last, because the servers end first.
    _permit: Permit,
}

impl EtcdCluster {
    /// Starts three servers and waits until all of them serve clients. Few clusters run at once in a test program, and others wait.
    pub fn start(version: EtcdVersion) -> Self {
        Self::start_with(version, &[])
    }

    /// The same, with these arguments for each server.
    pub fn start_with(version: EtcdVersion, arguments: &[&str]) -> Self {
        let permit = Permit::wait();
        for _ in 0..START_TRIES {
            let (links, mut servers) = spawn(version, arguments);
            if serve(&mut servers) {
                return Self { servers, links, _permit: permit };
            }
        }
        panic!("no cluster started on {START_TRIES} groups of ports in a row");
    }

    /// The URL of all servers.
    pub fn url(&self) -> String {
        let hosts: Vec<_> = self.servers.iter().map(|server| format!("127.0.0.1:{}", server.port())).collect();
        format!("etcd://{}", hosts.join(","))
    }

    /// A server, by its number from 0.
    pub fn server(&self, number: usize) -> &EtcdServer {
        &self.servers[number]
    }

    /// The same, to be killed and restarted.
    pub fn server_mut(&mut self, number: usize) -> &mut EtcdServer {
        &mut self.servers[number]
    }

    /// Waits until one server leads, of those that are not cut off.
    #[track_caller]
    pub fn leader(&self) -> usize {
        wait_for("one server leads the cluster", || {
            let reachable = (0..SERVERS).filter(|number| !self.links.is_cut(*number));
            let leading: Vec<_> = reachable.filter(|number| self.servers[*number].leads()).collect();
            if let [leader] = leading[..] { Some(leader) } else { None }
        })
    }

    /// The other servers than this one.
    pub fn others(&self, than: usize) -> [usize; 2] {
        [(than + 1) % SERVERS, (than + 2) % SERVERS]
    }

    /// Waits until all servers belong to a majority.
    #[track_caller]
    pub fn wait_until_serving(&self) {
        wait_for("all servers belong to a majority", || self.servers.iter().all(EtcdServer::is_serving));
    }

    /// Cuts a server off from the others: their connections break, and new ones are refused. Clients still reach it.
    pub fn cut(&self, number: usize) {
        self.links.cut(number);
    }

    /// Lets a server reach the others again.
    pub fn heal(&self, number: usize) {
        self.links.heal(number);
    }

    /// When the first key with this beginning ends at the latest, unless it is renewed, as this server says.
    #[track_caller]
    pub fn ends(&self, number: usize, key: &str) -> Instant {
        let server = &self.servers[number];
        let shown = server.run(&["get", "--prefix", "--limit", "1", "--write-out", "fields", key]);
        let lease = must("read the lease", number_after(&shown, "\"Lease\" : ").ok_or(&shown));
        let shown = server.run(&["lease", "timetolive", &format!("{lease:x}"), "--write-out", "fields"]);
        // In whole seconds, without what is left of one.
        let seconds = must("read the time", number_after(&shown, "\"TTL\" : ").ok_or(&shown));
        Instant::now() + Duration::from_secs(seconds.saturating_add(1))
    }

    /// Kills all servers, and restarts them with what this snapshot has.
    pub fn restart_from(&mut self, snapshot: &Path) {
        self.servers.iter_mut().for_each(EtcdServer::kill);
        self.servers.iter_mut().for_each(|server| server.restart_from(snapshot));
        self.wait_until_serving();
    }
}

fn number_after(text: &str, label: &str) -> Option<u64> {
    text.lines().find_map(|line| line.strip_prefix(label))?.trim().parse().ok()
}

fn spawn(version: EtcdVersion, arguments: &[&str]) -> (Links, Vec<EtcdServer>) {
    let ports = [(); SERVERS].map(|()| free_port()).to_vec();
    let links = Links::start(ports.iter().map(|port| vec![*port]).collect());
    let arguments: Vec<_> = arguments.iter().map(|argument| (*argument).to_owned()).collect();
    let members = links.ways.iter().enumerate().map(|(number, &way)| EtcdMember {
        number,
        ports: ports.clone(),
        way,
        arguments: arguments.clone(),
    });
    let servers = members.map(|member| EtcdServer::spawn(version, Some(member))).collect();
    (links, servers)
}

/// Waits until all servers serve clients; returns false if one has ended, because a port was taken.
fn serve(servers: &mut [EtcdServer]) -> bool {
    let deadline = Instant::now() + START_WITHIN;
    while Instant::now() < deadline {
        if servers.iter().all(EtcdServer::is_serving) {
            return true;
        }
        if servers.iter_mut().any(|server| !server.is_running()) {
            return false;
        }
        thread::sleep(Duration::from_millis(10));
    }
    let logs: Vec<_> = servers.iter().map(EtcdServer::log).collect();
    panic!("the servers did not form a cluster within {START_WITHIN:?}:\n{}", logs.join("\n"));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cluster_replaces_a_leader_that_is_killed_stopped_or_cut_off() {
        for version in [EtcdVersion::V3_4, EtcdVersion::V3_5] {
            let mut cluster = EtcdCluster::start(version);
            let first = cluster.leader();
            cluster.server(first).run(&["put", "kept", "one"]);
            cluster.server_mut(first).kill();
            let second = cluster.leader();
            assert_ne!(second, first);
            cluster.server_mut(first).restart_with_data();
            cluster.wait_until_serving();
            cluster.server(second).stop();
            let third = cluster.leader();
            assert_ne!(third, second);
            cluster.server(second).resume();
            cluster.wait_until_serving();
            let third = cluster.leader();
            cluster.cut(third);
            assert_ne!(cluster.leader(), third);
            wait_for("the old leader resigns", || !cluster.server(third).is_serving());
            cluster.heal(third);
            cluster.wait_until_serving();
            assert_eq!(cluster.server(third).run(&["get", "--print-value-only", "kept"]), "one\n");
        }
    }
}
