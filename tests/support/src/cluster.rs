//! A Redis Cluster: three primaries with a replica each, or one server that has all hash slots.

use std::net::Ipv4Addr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::bounds::wait_for;
use crate::cluster_node::{Row, contains, id, rows, start, works};
use crate::detour::Detour;
use crate::permit::Permit;
use crate::redis_answers::{ask, info};
use crate::redis_server::free_port;
use crate::sentinels::PASSWORDS;
use crate::{Certificates, RedisOptions, RedisServer, RedisVersion, Shared, must};

/// How many hash slots each cluster has.
const HASH_SLOTS: u16 = 16_384;
/// How many primaries a cluster has, unless it is of one server.
const PRIMARIES: usize = 3;
/// How long a server may be silent once another one has been killed, before the others say that it failed.
const HASTY: Duration = Duration::from_secs(1);

/// When a planned fail-over that has not happened will not happen any more: the servers' own limit, and a second.
const FAILS_AFTER: Duration = Duration::from_secs(6);

/// The servers of a cluster, which all have the password of [`PASSWORDS`]. Dropping this kills them.
#[derive(Debug)]
pub struct Cluster {
    /// In the beginning, the first three are primaries, and each of the last three is the replica of the one three places
    /// before it.
    pub servers: Vec<RedisServer>,
    /// Last, because the servers end first.
    _permit: Option<Permit>,
}

impl Cluster {
    /// Starts three primaries with a replica each, and waits until all agree that the cluster works. Takes about three seconds,
    /// because a new primary takes no requests for two.
    pub fn start() -> Self {
        Self::start_with(RedisOptions::default())
    }

    /// The same, with these options and a password for each server.
    pub fn start_with(options: RedisOptions) -> Self {
        Self::start_within(Some(Permit::wait()), options)
    }

    fn start_within(permit: Option<Permit>, options: RedisOptions) -> Self {
        let servers = start_six(options);
        let buses: Vec<_> = servers.iter().map(RedisServer::bus).collect();
        Self::of_six(permit, servers, &buses)
    }

    /// Makes six servers a cluster, in which each reaches each other one's bus at this port.
    pub(crate) fn of_six(permit: Option<Permit>, servers: Vec<RedisServer>, buses: &[u16]) -> Self {
        let cluster = Self { servers, _permit: permit };
        let (primaries, replicas) = cluster.servers.split_at(PRIMARIES);
        for (number, primary) in primaries.iter().enumerate() {
            primary.command::<()>(&["CLUSTER", "SET-CONFIG-EPOCH", &(number + 1).to_string()]);
            let bound = |number: usize| number * usize::from(HASH_SLOTS) / PRIMARIES;
            let (first, last) = (bound(number).to_string(), (bound(number + 1) - 1).to_string());
            primary.command::<()>(&["CLUSTER", "ADDSLOTSRANGE", &first, &last]);
        }
        cluster.introduce_all(buses);
        for (primary, replica) in primaries.iter().zip(replicas) {
            replica.command::<()>(&["CLUSTER", "REPLICATE", &id(primary)]);
        }
        cluster.wait_until_ready();
        let follows = |replica: &RedisServer| info(replica).contains("master_link_status:up").then_some(());
        replicas.iter().for_each(|replica| wait_for("a replica follows", || follows(replica)));
        cluster
    }

    /// Starts one server with all hash slots, which is a whole cluster to clients, and which keeps its data when it is killed.
    /// Takes about two seconds.
    pub fn of_one() -> Self {
        Self::of_one_with(RedisOptions::default().append_only())
    }

    /// The same of a server with these options and a password.
    pub fn of_one_with(options: RedisOptions) -> Self {
        let cluster = Self { servers: start(1, options), _permit: None };
        cluster.servers[0].command::<()>(&["CLUSTER", "ADDSLOTSRANGE", "0", &(HASH_SLOTS - 1).to_string()]);
        cluster.wait_until_ready();
        cluster
    }

    /// The same with certificates. Returns its port for TLS as well.
    pub fn of_one_with_tls(certificates: &Certificates) -> (Self, u16) {
        let port = free_port();
        let arguments = [certificates.arguments(port), vec!["--tls-cluster".to_owned(), "yes".to_owned()]].concat();
        let arguments: Vec<_> = arguments.iter().map(String::as_str).collect();
        (Self::of_one_with(RedisOptions::default().arguments(&arguments)), port)
    }

    /// A cluster of six for tests that leave it as it is. Those that run at the same time share it, so a program that uses
    /// this uses it with one version.
    pub fn shared(version: RedisVersion) -> Arc<Self> {
        static SHARED: Shared<Cluster> = Shared::new();
        SHARED.get(|| Self::start_within(None, RedisOptions::default().version(version)))
    }

    /// The URL of the cluster, with the password. Free locks are granted at once, although the deployment is new.
    pub fn url(&self) -> String {
        self.url_at(Ipv4Addr::LOCALHOST)
    }

    /// Puts a proxy in front of each server, on an address of their own for all of them. The servers tell clients of
    /// ports only, so that each client stays at the address of its URL. After a restart, they name an address, and the proxy puts in its own.
    pub fn detour(&self) -> Detour {
        let by_port = ["CONFIG", "SET", "cluster-preferred-endpoint-type", "unknown-endpoint"];
        self.servers.iter().for_each(|server| server.command(&by_port));
        Detour::around(self.servers.iter().map(RedisServer::port), |host| self.url_at(host))
    }

    fn url_at(&self, host: Ipv4Addr) -> String {
        let nodes: Vec<_> = self.servers.iter().map(|server| format!("{host}:{}", server.port())).collect();
        format!("redis+cluster://:{}@{}?failover=grant", PASSWORDS.0, nodes.join(","))
    }

    /// The hash slot of a key.
    pub fn hash_slot_of(&self, key: &str) -> u16 {
        wait_for("a server that says where a key belongs", || {
            self.servers.iter().find_map(|server| ask(server, &["CLUSTER", "KEYSLOT", key]))
        })
    }

    /// A name that begins so, and whose key belongs to this server.
    pub fn name_at(&self, server: usize, stem: &str) -> String {
        let rows = rows(&self.servers[server]).unwrap_or_default();
        let own = rows.iter().find(|row| row.flags.starts_with("myself"));
        let hash_slots = own.map(|row| row.hash_slots.clone()).unwrap_or_default();
        let mut connection = self.servers[server].connection();
        let is_there = |name: &String| {
            let hash_slot = redis::cmd("CLUSTER").arg("KEYSLOT").arg(name).query(&mut connection);
            contains(&hash_slots, must("ask where a key belongs", hash_slot))
        };
        let found = (0..1000).map(|number| format!("{stem}-{number}")).find(is_there);
        found.unwrap_or_else(|| panic!("server {server} has no hash slot of a name like {stem}"))
    }

    /// Which server is the primary of a hash slot. All servers that answer agree on it.
    pub fn primary_of(&self, hash_slot: u16) -> usize {
        wait_for("the primary of a hash slot", || self.agreed(hash_slot))
    }

    /// Which server is the replica of this primary.
    pub fn replica_of(&self, primary: usize) -> usize {
        let id = id(&self.servers[primary]);
        wait_for("the replica of a primary", || {
            let rows = rows(&self.servers[primary])?;
            self.at(rows.iter().find(|row| row.primary == id)?.port)
        })
    }

    /// Has the replica of a hash slot replace its primary without losing anything, and waits until all know it. Returns the
    /// number of the old primary, which is then the replica.
    pub fn fail_over(&self, hash_slot: u16) -> usize {
        let old = self.primary_of(hash_slot);
        let replica = self.replica_of(old);
        let mut last: Option<Instant> = None;
        wait_for("a planned fail-over", || {
            // A busy machine may be too slow for the first one.
            if last.is_none_or(|last| last.elapsed() > FAILS_AFTER) {
                ask::<()>(&self.servers[replica], &["CLUSTER", "FAILOVER"]);
                last = Some(Instant::now());
            }
            (self.agreed(hash_slot)? == replica).then_some(())
        });
        old
    }

    /// Kills the primary of a hash slot, which the others notice within one or two seconds, and returns its number.
    pub fn kill_primary_of(&mut self, hash_slot: u16) -> usize {
        let primary = self.primary_of(hash_slot);
        self.notice_soon();
        self.servers[primary].kill();
        primary
    }

    /// Kills all servers and starts them again with their data on disk.
    pub fn restart_with_data(&mut self) {
        self.servers.iter_mut().for_each(RedisServer::restart_with_data);
        self.wait_until_ready();
    }

    /// Has the servers notice within one or two seconds that another one is silent.
    pub fn notice_soon(&self) {
        let timeout = HASTY.as_millis().to_string();
        for server in &self.servers {
            ask::<()>(server, &["CONFIG", "SET", "cluster-node-timeout", &timeout]);
        }
    }

    /// Waits until all servers that answer agree that this one is the primary of the hash slot, and that the cluster works.
    pub fn wait_for_primary(&self, hash_slot: u16, primary: usize) {
        wait_for("another primary of a hash slot", || (self.agreed(hash_slot)? == primary).then_some(()));
        wait_for("a cluster that works", || {
            self.servers.iter().all(|server| works(server) != Some(false)).then_some(())
        });
    }

    /// Ends the replication of a primary. Its replica keeps what it has, and can still replace it.
    pub fn cut_replica_of(&self, primary: usize) {
        let server = &self.servers[primary];
        server.command::<()>(&["ACL", "SETUSER", "default", "-psync", "-sync"]);
        server.command::<()>(&["CLIENT", "KILL", "TYPE", "replica"]);
        wait_for("a primary without a replica", || info(server).contains("connected_slaves:0").then_some(()));
    }

    /// Has the replica of a primary replace it while the two parts cannot talk: the old primary goes on without the others, and
    /// answers that the cluster is down. Lasts for a minute.
    pub fn part_from(&self, primary: usize) {
        let (old, new) = (&self.servers[primary], &self.servers[self.replica_of(primary)]);
        let others = self.servers.iter().filter(|server| server.port() != old.port());
        others.for_each(|other| old.command(&["CLUSTER", "FORGET", &id(other)]));
        wait_for("a primary that is alone", || (works(old) == Some(false)).then_some(()));
        new.command::<()>(&["CLUSTER", "FAILOVER", "TAKEOVER"]);
    }

    /// The number of the server at this port.
    pub(crate) fn at(&self, port: u16) -> Option<usize> {
        self.servers.iter().position(|server| server.port() == port)
    }

    fn introduce_all(&self, buses: &[u16]) {
        for (number, server) in self.servers.iter().enumerate() {
            for (other, bus) in self.servers.iter().zip(buses).skip(number + 1) {
                let (port, bus) = (other.port().to_string(), bus.to_string());
                server.command::<()>(&["CLUSTER", "MEET", "127.0.0.1", &port, &bus]);
            }
        }
        for server in &self.servers {
            wait_for("a server knows the others", || {
                let rows = rows(server)?;
                let known = rows.iter().filter(|row| !row.flags.contains("handshake")).count();
                (rows.len() == self.servers.len() && known == rows.len()).then_some(())
            });
        }
    }

    fn wait_until_ready(&self) {
        let replicas = self.servers.len() / 2;
        for server in &self.servers {
            wait_for("a server knows the replicas", || {
                let rows = rows(server)?;
                (rows.iter().filter(|row| row.flags.contains("slave")).count() == replicas).then_some(())
            });
            wait_for("a server says that the cluster works", || works(server)?.then_some(()));
        }
    }

    /// The primary of a hash slot, if all servers that answer name the same.
    pub(crate) fn agreed(&self, hash_slot: u16) -> Option<usize> {
        let told = self.servers.iter().filter_map(rows).map(|rows| {
            let has = |row: &&Row| row.flags.contains("master") && contains(&row.hash_slots, hash_slot);
            rows.iter().find(has).map(|row| row.port)
        });
        let mut named: Vec<_> = told.collect();
        named.dedup();
        match named[..] {
            [Some(port)] => self.at(port),
            _ => None,
        }
    }
}

/// Starts the servers of a cluster, which do not know each other yet.
pub(crate) fn start_six(options: RedisOptions) -> Vec<RedisServer> {
    start(PRIMARIES * 2, options)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cluster_moves_its_hash_slots_as_asked() {
        let mut cluster = Cluster::start();
        let name = cluster.name_at(0, "a");
        let hash_slot = cluster.hash_slot_of(&name);
        cluster.servers[0].command::<()>(&["SET", &name, "one"]);
        let migration = cluster.migrate(hash_slot, 1);
        migration.move_keys();
        let asked: redis::RedisResult<String> =
            redis::cmd("GET").arg(&name).query(&mut cluster.servers[0].connection());
        assert_eq!(asked.unwrap_err().code(), Some("ASK"));
        migration.finish();
        assert_eq!(cluster.servers[1].command::<String>(&["GET", &name]), "one");
        assert_eq!((cluster.fail_over(hash_slot), cluster.primary_of(hash_slot)), (1, 4));
        cluster.cut_replica_of(4);
        cluster.servers[4].command::<()>(&["SET", &name, "two"]);
        assert_eq!(cluster.kill_primary_of(hash_slot), 4);
        cluster.wait_for_primary(hash_slot, 1);
        assert_eq!(cluster.servers[1].command::<String>(&["GET", &name]), "one");
    }
}
