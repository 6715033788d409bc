//! A server loses power before the lock is on its disk.
//!
//! The protection is `appendfsync always`, which every Redis has. With `fsync=wait`, a client of `leasehold` would itself wait until each grant is
//! on the disk, but that needs Redis 7.2.

use std::time::Duration;

use test_support::{Machine, RedisOptions};

use crate::failures::by_hand::{unplanned, until};
use crate::failures::history::{Ended, Kind, Lane, Tone};
use crate::failures::holder::{Holder, LOCK, Lanes, Work};
use crate::failures::one_redis::{OneRedis, set_for_long};
use crate::failures::recorder::Recorder;
use crate::failures::scene::Scene;
use crate::shared::failure::Failure;

pub(super) const SCENE: Scene = Scene {
    name: "power-loss",
    title: "Power failure",
    what_happens: "Redis appends every change to a file, and A has its lock. With appendfsync everysec, the usual setting, Redis has that \
                   file flushed to the disk once a second only. Before the next flush, the machine loses power. When Redis is back, it \
                   knows nothing of the lock, and B asks for it.",
    locks: [
        "by hand: SET NX PX, and appendfsync everysec",
        "leasehold, and appendfsync always, which makes each write wait for the disk",
    ],
    without,
    with,
};

/// Longer than the scene.
const TTL: Duration = Duration::from_secs(30);

/// A server on a machine that loses power.
struct Server {
    redis: OneRedis,
    machine: Machine,
    lane: Lane,
    disk: Lane,
}

fn without(story: &mut Recorder) -> Result<Ended, Failure> {
    let [a, b, redis, disk] = story.lanes(["A", "B", "Redis", "disk"]);
    let mut server = Server::start([redis, disk], "everysec")?;
    let mut holder = server.redis.by_hand(a)?;
    server.until_next_flush()?;
    server.until_next_flush()?;
    story.message(redis, disk, "fdatasync(), once a second", Tone::Plain);
    holder.expect(story, redis, &set_for_long("A"), "OK")?;
    story.granted(redis, a);
    let lost = server.lose_power(story, a)?;
    if !String::from_utf8_lossy(&lost).contains(LOCK) {
        return Err(unplanned("what was not flushed", "the lock is not in it"));
    }
    server.start_again(story, "is back, without the lock", Tone::Fault)?;
    story.deceives(a);
    server.redis.by_hand(b)?.expect(story, redis, &set_for_long("B"), "OK")?;
    story.judge_last(Tone::Wrong);
    story.granted(redis, b);
    Ok(Ended::violation(
        "A and B hold the lock at the same time: Redis had confirmed the lock of A before it was on the disk",
    ))
}

fn with(story: &mut Recorder) -> Result<Ended, Failure> {
    let [a, b, redis, disk] = story.lanes(["A", "B", "Redis", "disk"]);
    let mut server = Server::start([redis, disk], "always")?;
    let mut holder = server.holder(a)?;
    let before = server.machine.flushes();
    holder.acquire(story)?;
    if server.machine.flushes() == before {
        return Err(unplanned("a lock that was granted", "it was not flushed"));
    }
    story.message(redis, disk, "fdatasync(), before it answered", Tone::Guarded);
    server.lose_power(story, a)?;
    server.start_again(story, "is back, with the lock", Tone::Plain)?;
    story.begin(redis, Kind::Stored(a));
    server.holder(b)?.is_refused(story)?;
    holder.release(story)?;
    Ok(Ended::prevented(
        "the lock was on the disk before Redis confirmed it; B was refused, and A held the lock until it released it",
    ))
}

impl Server {
    fn start([lane, disk]: [Lane; 2], appendfsync: &str) -> Result<Self, Failure> {
        let machine = Machine::build();
        let options = RedisOptions::default().arguments(&["--appendonly", "yes", "--appendfsync", appendfsync]);
        let redis = OneRedis::start_with(options.on(&machine), lane, lane, "unused")?;
        Ok(Self { redis, machine, lane, disk })
    }

    /// A client that waits for a slow disk.
    fn holder(&self, lane: Lane) -> Result<Holder, Failure> {
        let url = self.redis.url_at(self.redis.port());
        let (locks, lanes) = (format!("{url}?op_timeout=3s"), Lanes { store: self.lane, resource: self.lane });
        Holder::start(lane, lanes, &Work { locks: &locks, resource: &url, key: "unused", ttl: TTL })
    }

    /// Waits until the server has had something flushed. The next flush comes a second later.
    fn until_next_flush(&mut self) -> Result<(), Failure> {
        let before = self.machine.flushes();
        until("a flush to the disk", || {
            self.redis.ask("INCR page")?;
            Ok(self.machine.flushes() > before)
        })
    }

    /// The machine loses power, and what was not on the disk. Returns what is lost.
    fn lose_power(&mut self, story: &mut Recorder, holder: Lane) -> Result<Vec<u8>, Failure> {
        let lost = self.redis.lose_power(&self.machine);
        story.note(self.lane, "loses power", Tone::Fault);
        story.end(self.lane, Kind::Stored(holder));
        story.begin(self.lane, Kind::Down);
        story.note(self.disk, format!("{} bytes had not been flushed", lost.len()), Tone::Fault);
        Ok(lost)
    }

    /// Starts again with what is on the disk.
    fn start_again(&mut self, story: &mut Recorder, how: &str, tone: Tone) -> Result<(), Failure> {
        self.redis.start_again()?;
        story.note(self.lane, how, tone);
        story.end(self.lane, Kind::Down);
        Ok(())
    }
}
