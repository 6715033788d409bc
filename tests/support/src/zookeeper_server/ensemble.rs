//! Three servers that replicate each other.

use std::time::{Duration, Instant};
use std::{iter, thread};

use super::data::Membership;
use super::options::ZookeeperOptions;
use super::{START_TRIES, START_WITHIN, ZookeeperServer};
use crate::bounds::wait_for;
use crate::links::Links;
use crate::permit::Permit;
use crate::redis_server::free_port;

const SERVERS: usize = 3;

/// Three running servers. Dropping this kills them and removes their data, and so does the end of the process.
#[derive(Debug)]
pub struct ZookeeperEnsemble {
    servers: Vec<ZookeeperServer>,
    links: Links,
    /// Last, because the servers end first.
    _permit: Permit,
}

impl ZookeeperEnsemble {
    /// Starts three servers with the defaults and waits until all of them serve clients.
    pub fn start() -> Self {
        Self::start_with(ZookeeperOptions::default())
    }

    /// Starts three servers and waits until all of them serve clients. Few of them run at once in a test program, and others wait.
    pub fn start_with(options: ZookeeperOptions) -> Self {
        let permit = Permit::wait();
        for _ in 0..START_TRIES {
            let (links, mut servers) = spawn(&options);
            if serve(&mut servers) {
                return Self { servers, links, _permit: permit };
            }
        }
        panic!("no ensemble started on {START_TRIES} groups of ports in a row");
    }

    /// The hosts and the ports of all servers, with commas between them.
    pub fn addresses(&self) -> String {
        self.servers.iter().map(ZookeeperServer::address).collect::<Vec<_>>().join(",")
    }

    /// A server, by its number from 0.
    pub fn server(&self, number: usize) -> &ZookeeperServer {
        &self.servers[number]
    }

    /// The same, to be killed and restarted.
    pub fn server_mut(&mut self, number: usize) -> &mut ZookeeperServer {
        &mut self.servers[number]
    }

    /// Whether a server takes requests that write. One that was just cut off may not have noticed it yet.
    pub fn is_serving(&self, number: usize) -> bool {
        self.servers[number].is_serving()
    }

    /// Waits until a server leads that is not cut off. One that is killed or cut off is replaced within a second, and one that is
    /// suspended after 4 s.
    #[track_caller]
    pub fn leader(&self) -> usize {
        wait_for("a server leads the ensemble", || self.of_mode("leader").next())
    }

    /// The servers that follow the leader now.
    pub fn followers(&self) -> Vec<usize> {
        self.of_mode("follower").collect()
    }

    fn of_mode(&self, mode: &str) -> impl Iterator<Item = usize> {
        let reachable = (0..SERVERS).filter(|number| !self.links.is_cut(*number));
        reachable.filter(move |number| self.servers[*number].mode() == mode)
    }

    /// Waits until a server takes requests that write.
    #[track_caller]
    pub fn wait_until_serving(&self, number: usize) {
        wait_for("the server belongs to a majority", || self.is_serving(number));
    }

    /// Cuts a server off from the others: their connections break, and new ones are refused. Clients still reach it.
    pub fn cut(&self, number: usize) {
        self.links.cut(number);
    }

    /// Lets a server reach the others again.
    pub fn heal(&self, number: usize) {
        self.links.heal(number);
    }
}

fn spawn(options: &ZookeeperOptions) -> (Links, Vec<ZookeeperServer>) {
    let ports: Vec<_> = iter::repeat_with(|| [free_port(), free_port()]).take(SERVERS).collect();
    let links = Links::start(ports.iter().map(|ports| ports.to_vec()).collect());
    let members = (1..).zip(&links.ways).map(|(id, &way)| Membership { id, ports: ports.clone(), way });
    let servers = members.map(|member| ZookeeperServer::spawn(options.clone(), Some(member))).collect();
    (links, servers)
}

/// Waits until all servers serve clients; returns false if a port was taken.
fn serve(servers: &mut [ZookeeperServer]) -> bool {
    let deadline = Instant::now() + START_WITHIN;
    while Instant::now() < deadline {
        if servers.iter().all(|server| server.is_at(server.port()) && server.is_serving()) {
            return true;
        }
        // One that cannot bind a port for the others goes on without it.
        if servers.iter_mut().any(|server| !server.process.is_running() || server.log().contains("BindException")) {
            return false;
        }
        thread::sleep(Duration::from_millis(10));
    }
    let logs: Vec<_> = servers.iter().map(ZookeeperServer::log).collect();
    panic!("the servers did not form an ensemble within {START_WITHIN:?}:\n{}", logs.join("\n"));
}
