//! A scene on one Redis, which has the lock and the resource.

use std::time::Duration;

use redis::Connection;
use test_support::{Machine, RedisOptions, RedisServer};

use super::by_hand::{self, ByHand, unplanned};
use super::history::{Kind, Lane, Tone};
use super::holder::{Holder, LOCK, Lanes, Work};
use super::recorder::Recorder;
use crate::shared::failure::Failure;

/// How long a lease lasts. A holder that is suspended for longer loses it.
pub(crate) const TTL: Duration = Duration::from_millis(900);

/// The server, and how it is observed.
pub(crate) struct OneRedis {
    server: RedisServer,
    observer: Connection,
    lanes: Lanes,
    key: &'static str,
}

impl OneRedis {
    /// Starts the server. The key is that of the resource.
    pub(crate) fn start(store: Lane, resource: Lane, key: &'static str) -> Result<Self, Failure> {
        Self::start_with(RedisOptions::default(), store, resource, key)
    }

    /// The same, with options for the server.
    pub(crate) fn start_with(
        options: RedisOptions,
        store: Lane,
        resource: Lane,
        key: &'static str,
    ) -> Result<Self, Failure> {
        let server = RedisServer::start_with(options);
        let observer = by_hand::connect(&server.url())?;
        Ok(Self { server, observer, lanes: Lanes { store, resource }, key })
    }

    /// A client that sends plain requests.
    pub(crate) fn by_hand(&self, lane: Lane) -> Result<ByHand, Failure> {
        ByHand::connect(lane, &self.server.url())
    }

    /// A client that uses `leasehold`.
    pub(crate) fn holder(&self, lane: Lane) -> Result<Holder, Failure> {
        self.holder_through(lane, self.server.port())
    }

    /// The same, with its locks through another port.
    pub(crate) fn holder_through(&self, lane: Lane, port: u16) -> Result<Holder, Failure> {
        self.holder_for(lane, port, TTL)
    }

    /// The same, with leases of this length.
    pub(crate) fn holder_for(&self, lane: Lane, port: u16, ttl: Duration) -> Result<Holder, Failure> {
        let locks = format!("{}?op_timeout=300ms", self.server.url_at(port));
        let work = Work { locks: &locks, resource: &self.server.url(), key: self.key, ttl };
        Holder::start(lane, self.lanes, &work)
    }

    /// Its URL through another port.
    pub(crate) fn url_at(&self, port: u16) -> String {
        self.server.url_at(port)
    }

    pub(crate) fn port(&self) -> u16 {
        self.server.port()
    }

    /// Sends a request that is not part of the story.
    pub(crate) fn ask(&mut self, words: &str) -> Result<String, Failure> {
        by_hand::ask(&mut self.observer, words)
    }

    /// The resource has this value in the end.
    pub(crate) fn resource_is(&mut self, expected: &str) -> Result<(), Failure> {
        let value = self.ask(&format!("GET {}", self.key))?;
        if value == expected { Ok(()) } else { Err(unplanned("the resource", &value)) }
    }

    /// Its machine loses power, and what was not on the disk. Returns what is lost.
    pub(crate) fn lose_power(&mut self, machine: &Machine) -> Vec<u8> {
        self.server.kill();
        machine.lose_unflushed(self.server.directory())
    }

    /// It starts again with what the disk has.
    pub(crate) fn start_again(&mut self) -> Result<(), Failure> {
        self.server.restart_with_data();
        self.observer = by_hand::connect(&self.server.url())?;
        Ok(())
    }

    /// From now on, the server logs each request.
    pub(crate) fn log_requests(&mut self) -> Result<(), Failure> {
        self.ask("CONFIG SET slowlog-log-slower-than 0").map(|_| ())
    }

    /// Waits until the server has run the release of this lease, which it has logged. Of all scripts, only a release ends with the lock's
    /// prefix and the owner; the address of the client follows.
    pub(crate) fn until_release_of(&mut self, lease: &str) -> Result<(), Failure> {
        let owner: String = lease.split_inclusive(':').take(2).collect();
        let release = format!(" {LOCK} leasehold:{{ {owner} 127.0.0.1:");
        by_hand::until("the late release to arrive", || Ok(self.ask("SLOWLOG GET 100")?.contains(&release)))
    }

    /// What the server has stored as the owner of the lock.
    pub(crate) fn owner(&mut self) -> Result<String, Failure> {
        self.ask(&format!("GET {LOCK}"))
    }

    /// Waits until somebody has the lock.
    pub(crate) fn until_held(&mut self) -> Result<(), Failure> {
        by_hand::until("the lock to be granted", || Ok(self.owner()? != "nil"))
    }

    /// Waits until this lease of this client has expired.
    pub(crate) fn until_expired(&mut self, story: &mut Recorder, holder: Lane, lease: &str) -> Result<(), Failure> {
        by_hand::until("a lease to expire", || Ok(self.owner()? != lease))?;
        story.note(self.lanes.store, "the lease ends", Tone::Fault);
        story.end(self.lanes.store, Kind::Stored(holder));
        Ok(())
    }
}

/// The request of a plain lock whose lease expires in the scene.
pub(crate) fn set(owner: &str) -> String {
    format!("SET {LOCK} {owner} NX PX {}", TTL.as_millis())
}

/// The request of a plain lock whose lease lasts longer than the scene.
pub(crate) fn set_for_long(owner: &str) -> String {
    format!("SET {LOCK} {owner} NX PX 30000")
}
