//! A server that is cut off answers from the past.

use std::io::{Read, Seek, Write};
use std::process::{Child, Stdio};
use std::time::Duration;

use test_support::{EtcdCluster, EtcdServer, EtcdVersion, Finish, RedisServer};

use crate::failures::by_hand::{unplanned, until};
use crate::failures::history::{Ended, Kind, Lane, Tone};
use crate::failures::holder::{Holder, LOCK, Lanes, Work};
use crate::failures::recorder::Recorder;
use crate::failures::scene::Scene;
use crate::shared::failure::Failure;

pub(super) const SCENE: Scene = Scene {
    name: "stale-follower",
    title: "Stale follower",
    what_happens: "A talks to a follower of an etcd cluster, which is cut off from the two other servers. So the renewals of A do not arrive, \
                   its lease ends, and B gets the lock. The follower has not heard of that. It still answers serializable reads, which \
                   need no majority.",
    locks: ["by hand: a key with a lease, and a serializable read before the work", "leasehold with etcd://"],
    without,
    with,
};

const TTL: Duration = Duration::from_secs(3);

/// Three servers. One of them is cut off.
struct Servers {
    cluster: EtcdCluster,
    leader: usize,
    follower: usize,
    lanes: [Lane; 2],
}

/// A request that gets no answer.
struct Unanswered(Child);

fn without(story: &mut Recorder) -> Result<Ended, Failure> {
    let [a, follower, leader, b] = story.lanes(["A", "follower", "leader", "B"]);
    let servers = Servers::start([follower, leader]);
    let lease = create(story, (a, "A"), (follower, servers.follower()), TTL)?;
    servers.granted_to(story, a);
    servers.cut(story);
    let renewal = Unanswered::send(servers.follower(), &["lease", "keep-alive", &lease])?;
    story.lost(a, leader, "renews its lease");
    servers.until_expired(story, a, LOCK)?;
    story.end(a, Kind::Valid);
    create(story, (b, "B"), (leader, servers.leader()), Duration::from_secs(60))?;
    story.granted(leader, b);
    let owner = ask(servers.follower(), &["get", LOCK, "--consistency=s", "--print-value-only"])?;
    story.message(a, follower, format!("get {LOCK} --consistency=s → {owner}"), Tone::Wrong);
    renewal.was_in_vain("keepalived")?;
    if owner != "A" {
        return Err(unplanned("a read at the follower", &owner));
    }
    story.note(a, "works as the holder", Tone::Wrong);
    story.begin(a, Kind::Believed);
    Ok(Ended::violation("B holds the lock that A relies on: the follower does not know that the lease of A has ended"))
}

fn with(story: &mut Recorder) -> Result<Ended, Failure> {
    let [a, follower, leader, b] = story.lanes(["A", "follower", "leader", "B"]);
    let (servers, unused) = (Servers::start([follower, leader]), RedisServer::start());
    let start = |lane, store, server: &EtcdServer| {
        let work = Work { locks: &server.url(), resource: &unused.url(), key: "unused", ttl: TTL };
        Holder::start(lane, Lanes { store, resource: store }, &work)
    };
    let (mut holder, mut other) = (start(a, follower, servers.follower())?, start(b, leader, servers.leader())?);
    holder.acquire(story)?;
    story.begin(leader, Kind::Stored(a));
    servers.cut(story);
    holder.loses(story)?;
    let entries = format!("leasehold/{LOCK}/");
    if !servers.has(&entries)? {
        return Err(unplanned("the end of a lease", "the holder heard of it late"));
    }
    other.is_refused(story)?;
    servers.until_expired(story, a, &entries)?;
    other.acquire(story)?;
    Ok(Ended::prevented(
        "a renewal counts only if a majority has it, so A lost its lease in time, although its follower did not know",
    ))
}

/// Creates the key with a lease, unless it exists. Returns the lease.
fn create(
    story: &mut Recorder,
    (lane, owner): (Lane, &str),
    (to, server): (Lane, &EtcdServer),
    ttl: Duration,
) -> Result<String, Failure> {
    let granted = ask(server, &["lease", "grant", &ttl.as_secs().to_string()])?;
    let lease = granted.split(' ').nth(1).ok_or_else(|| unplanned("a lease", &granted))?;
    let words = format!("create(\"{LOCK}\") = \"0\"\n\nput {LOCK} {owner} --lease={lease}\n\n\n");
    let reply = ask_with(server, &["txn"], &words)?;
    if !reply.starts_with("SUCCESS") {
        return Err(unplanned("a transaction", &reply));
    }
    let text = format!("create {LOCK} = {owner}, lease of {} s → SUCCESS", ttl.as_secs());
    story.message(lane, to, text, Tone::Plain);
    Ok(lease.to_owned())
}

/// Sends a request of the client program, and returns the answer.
fn ask(server: &EtcdServer, words: &[&str]) -> Result<String, Failure> {
    ask_with(server, words, "")
}

/// The same, with this as its input.
fn ask_with(server: &EtcdServer, words: &[&str], input: &str) -> Result<String, Failure> {
    let system = |error| Failure::system("a request to etcd", error);
    let mut file = tempfile::tempfile().map_err(system)?;
    file.write_all(input.as_bytes()).and_then(|()| file.rewind()).map_err(system)?;
    let output = server.etcdctl(words).stdin(file).finish();
    let said = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim().to_owned();
    if output.status.success() { Ok(said(&output.stdout)) } else { Err(unplanned(words[0], &said(&output.stderr))) }
}

impl Servers {
    fn start(lanes: [Lane; 2]) -> Self {
        let cluster = EtcdCluster::start(EtcdVersion::default());
        let leader = cluster.leader();
        let [follower, _] = cluster.others(leader);
        Self { cluster, leader, follower, lanes }
    }

    fn leader(&self) -> &EtcdServer {
        self.cluster.server(self.leader)
    }

    fn follower(&self) -> &EtcdServer {
        self.cluster.server(self.follower)
    }

    /// With the last event, both servers have the lock for a client.
    fn granted_to(&self, story: &mut Recorder, client: Lane) {
        let [follower, leader] = self.lanes;
        story.granted(follower, client);
        story.begin(leader, Kind::Stored(client));
    }

    /// From now on, the follower hears nothing of the others.
    fn cut(&self, story: &mut Recorder) {
        self.cluster.cut(self.follower);
        story.note(self.lanes[0], "is cut off from the others", Tone::Fault);
    }

    /// Whether a majority of the servers has a key with this prefix.
    fn has(&self, key: &str) -> Result<bool, Failure> {
        Ok(!ask(self.leader(), &["get", "--prefix", "--keys-only", key])?.is_empty())
    }

    /// Waits until the lease of a holder has ended, and with it its key.
    fn until_expired(&self, story: &mut Recorder, holder: Lane, key: &str) -> Result<(), Failure> {
        until("a lease to expire", || self.has(key).map(|has| !has))?;
        let leader = self.lanes[1];
        story.note(leader, "the lease ends", Tone::Fault);
        story.end(leader, Kind::Stored(holder));
        Ok(())
    }
}

impl Unanswered {
    fn send(server: &EtcdServer, words: &[&str]) -> Result<Self, Failure> {
        let child = server.etcdctl(words).stdout(Stdio::piped()).stderr(Stdio::null()).spawn();
        child.map(Self).map_err(|error| Failure::system("a request to etcd", error))
    }

    /// Ends the request, whose answer would have had this word.
    fn was_in_vain(mut self, word: &str) -> Result<(), Failure> {
        self.0.kill().ok();
        let mut said = String::new();
        if let Some(output) = &mut self.0.stdout {
            output.read_to_string(&mut said).map_err(|error| Failure::system("a request to etcd", error))?;
        }
        if said.contains(word) { Err(unplanned("a request without an answer", &said)) } else { Ok(()) }
    }
}

impl Drop for Unanswered {
    fn drop(&mut self) {
        self.0.kill().ok();
        self.0.wait().ok();
    }
}
