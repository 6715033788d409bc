//! Hash slots that move from one primary of a cluster to another.

use crate::bounds::wait_for;
use crate::cluster_node::id;
use crate::redis_answers::info;
use crate::sentinels::PASSWORDS;
use crate::{Cluster, RedisServer};

/// A hash slot on its way between two primaries, both of which know of it. Each of its keys is at either.
#[derive(Debug)]
pub struct Migration<'a> {
    cluster: &'a Cluster,
    hash_slot: u16,
    from: &'a RedisServer,
    to: &'a RedisServer,
}

impl Cluster {
    /// Begins to move a hash slot to another primary. Its keys stay where they are.
    pub fn migrate(&self, hash_slot: u16, to: usize) -> Migration<'_> {
        let (from, to) = (&self.servers[self.primary_of(hash_slot)], &self.servers[to]);
        let slot = hash_slot.to_string();
        to.command::<()>(&["CLUSTER", "SETSLOT", &slot, "IMPORTING", &id(from)]);
        from.command::<()>(&["CLUSTER", "SETSLOT", &slot, "MIGRATING", &id(to)]);
        Migration { cluster: self, hash_slot, from, to }
    }
}

impl Migration<'_> {
    /// Moves the keys that the hash slot has now. From then on the old primary answers `ASK`.
    pub fn move_keys(&self) {
        let keys = self.keys();
        self.move_these(&keys.iter().map(String::as_str).collect::<Vec<_>>());
    }

    /// Moves some keys. Requests that need both these and others are answered with `TRYAGAIN`.
    pub fn move_these(&self, keys: &[&str]) {
        let port = self.to.port().to_string();
        let words = ["MIGRATE", "127.0.0.1", &port, "", "0", "5000", "AUTH", PASSWORDS.0, "KEYS"];
        if !keys.is_empty() {
            self.from.command::<String>(&[&words, keys].concat());
        }
    }

    /// The keys of the hash slot that are still at the old primary.
    pub fn keys(&self) -> Vec<String> {
        self.from.command(&["CLUSTER", "GETKEYSINSLOT", &self.hash_slot.to_string(), "1000"])
    }

    /// Moves what is left, and tells all primaries who has the hash slot now.
    pub fn finish(self) {
        wait_for("an empty hash slot", || {
            self.move_keys();
            self.keys().is_empty().then_some(())
        });
        let (hash_slot, id) = (self.hash_slot.to_string(), id(self.to));
        let to = self.cluster.at(self.to.port());
        for server in [self.to, self.from].into_iter().chain(&self.cluster.servers) {
            // Replicas follow their primaries.
            if info(server).contains("role:master") {
                server.command::<()>(&["CLUSTER", "SETSLOT", &hash_slot, "NODE", &id]);
            }
        }
        wait_for("all know who has the hash slot", || (self.cluster.agreed(self.hash_slot) == to).then_some(()));
    }
}
