//! A client of `leasehold` in a process of its own. Each step is an order to it, and a line of the story.

use std::time::{Duration, SystemTime};

use leasehold::FencingToken;
use test_support::Machine;

use super::by_hand::unplanned;
use super::child::Child;
use super::history::{Kind, Lane, Tone};
use super::orders::{Answer, Order, Setup, brief, done, failed_as, granted, lost, value};
use super::recorder::Recorder;
use crate::shared::failure::{Exit, Failure};
use crate::shared::millis;

/// The name of the lock, for `leasehold` and by hand.
pub(crate) const LOCK: &str = "lock";

/// The lanes of a scene with a lock and a resource.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Lanes {
    pub(crate) store: Lane,
    pub(crate) resource: Lane,
}

/// Where a holder gets its lock, and what it works on.
pub(crate) struct Work<'a> {
    /// The store of the locks, as a URL for `leasehold`.
    pub(crate) locks: &'a str,
    /// The server of the resource: a Redis, or the PostgreSQL of the locks.
    pub(crate) resource: &'a str,
    /// The key of the resource in Redis.
    pub(crate) key: &'a str,
    pub(crate) ttl: Duration,
}

/// What the resource did with a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Written {
    Accepted,
    Refused,
}

/// A client.
pub(crate) struct Holder {
    child: Child,
    lane: Lane,
    lanes: Lanes,
    /// The name of the token of its last grant.
    token: String,
}

impl Holder {
    /// Starts a process, which connects to both servers.
    pub(crate) fn start(lane: Lane, lanes: Lanes, work: &Work<'_>) -> Result<Self, Failure> {
        Ok(Self { child: Child::start(&setup(work), Vec::new())?, lane, lanes, token: String::new() })
    }

    /// The same, on a machine whose clock the scene sets.
    pub(crate) fn start_on(machine: &Machine, lane: Lane, lanes: Lanes, work: &Work<'_>) -> Result<Self, Failure> {
        Ok(Self { child: Child::start(&setup(work), machine.environment())?, lane, lanes, token: String::new() })
    }

    /// Its wall clock.
    pub(crate) fn date(&mut self) -> Result<SystemTime, Failure> {
        self.child.order(&Order::Date, |answer| if let Answer::Date(time) = answer { Ok(time) } else { Err(answer) })
    }

    /// Has been warned about the store, with this word, when it connected.
    pub(crate) fn warns(&mut self, story: &mut Recorder, word: &str) -> Result<(), Failure> {
        self.child.order(&Order::Warnings, |answer| {
            let is_it = matches!(&answer, Answer::Warnings(warnings) if warnings.contains(word));
            if is_it { Ok(()) } else { Err(answer) }
        })?;
        story.note(self.lane, format!("warnings() → may drop held locks: {word}"), Tone::Guarded);
        Ok(())
    }

    /// Acquires the lock, and waits for it.
    pub(crate) fn acquire(&mut self, story: &mut Recorder) -> Result<(), Failure> {
        let token = self.child.order(&Order::Acquire, granted)?;
        self.acquired(story, token)
    }

    /// Begins to acquire the lock, and does not wait for it.
    pub(crate) fn asks(&mut self, story: &mut Recorder) -> Result<(), Failure> {
        story.message(self.lane, self.lanes.store, "acquire()", Tone::Plain);
        self.child.give(&Order::Acquire)
    }

    /// Waits until it has the lock.
    pub(crate) fn gets_it(&mut self, story: &mut Recorder) -> Result<(), Failure> {
        let token = self.child.answer(&Order::Acquire, granted)?;
        self.acquired(story, token)
    }

    /// Tries to acquire the lock, and gets no answer in time.
    pub(crate) fn tries_in_vain(&mut self, story: &mut Recorder) -> Result<(), Failure> {
        self.child.order(&Order::TryAcquire, failed_as("no answer from"))?;
        story.note(self.lane, "try_acquire() fails: no answer in time", Tone::Guarded);
        Ok(())
    }

    fn acquired(&mut self, story: &mut Recorder, token: FencingToken) -> Result<(), Failure> {
        self.token = story.token(token)?;
        story.message(self.lane, self.lanes.store, format!("acquire() → token {}", self.token), Tone::Plain);
        story.granted(self.lanes.store, self.lane);
        Ok(())
    }

    /// Tries to acquire a lock that somebody else has.
    pub(crate) fn is_refused(&mut self, story: &mut Recorder) -> Result<(), Failure> {
        self.child.order(&Order::TryAcquire, |answer| if let Answer::Busy = answer { Ok(()) } else { Err(answer) })?;
        story.refused(self.lane, self.lanes.store, "try_acquire() → busy", Tone::Guarded);
        Ok(())
    }

    /// Tries to acquire a lock at a store that may have forgotten its leases.
    pub(crate) fn is_refused_for_now(&mut self, story: &mut Recorder) -> Result<(), Failure> {
        self.child.order(&Order::TryAcquire, failed_as("may have forgotten locks"))?;
        let text = "try_acquire() → refused: it may have forgotten locks that are still held";
        story.refused(self.lane, self.lanes.store, text, Tone::Guarded);
        Ok(())
    }

    /// Tries to acquire a lock at a server whose replicas do not acknowledge the grant.
    pub(crate) fn is_unacknowledged(&mut self, story: &mut Recorder) -> Result<(), Failure> {
        self.child.order(&Order::TryAcquire, failed_as("0 of 1 replicas acknowledged it"))?;
        let text = "try_acquire() → fails: 0 of 1 replicas acknowledged it";
        story.refused(self.lane, self.lanes.store, text, Tone::Guarded);
        Ok(())
    }

    /// Releases the lock in time.
    pub(crate) fn release(&mut self, story: &mut Recorder) -> Result<(), Failure> {
        self.child.order(&Order::Release, done)?;
        story.message(self.lane, self.lanes.store, "release() → Ok", Tone::Plain);
        story.end(self.lanes.store, Kind::Stored(self.lane));
        story.end(self.lane, Kind::Valid);
        Ok(())
    }

    /// Releases the lock over a network that delivers the request later.
    pub(crate) fn release_unanswered(&mut self, story: &mut Recorder) -> Result<(), Failure> {
        story.note(self.lane, "release() is held up in the network", Tone::Fault);
        story.end(self.lane, Kind::Valid);
        self.child.order(&Order::Release, failed_as("no answer from"))
    }

    /// Releases a lock that is lost: the release says so.
    pub(crate) fn releases_late(&mut self, story: &mut Recorder) -> Result<(), Failure> {
        let reason = self.child.order(&Order::Release, lost)?;
        story.note(self.lane, format!("release() → Lost: {reason}"), Tone::Guarded);
        Ok(())
    }

    /// The guard says that the lock is lost.
    pub(crate) fn notices_loss(&mut self, story: &mut Recorder) -> Result<(), Failure> {
        let reason = self.child.order(&Order::Check, lost)?;
        story.note(self.lane, format!("check() → Lost: {}", brief(&reason)), Tone::Guarded);
        Ok(())
    }

    /// The guard says that the lock is held, although the store has ended the lease.
    pub(crate) fn is_deceived(&mut self, story: &mut Recorder) -> Result<(), Failure> {
        self.child.order(&Order::Check, |answer| if let Answer::Valid = answer { Ok(()) } else { Err(answer) })?;
        story.note(self.lane, "check() → Ok", Tone::Fault);
        story.deceives(self.lane);
        Ok(())
    }

    /// Waits until a renewal tells the guard that the lock is lost.
    pub(crate) fn learns_of_loss(&mut self, story: &mut Recorder) -> Result<(), Failure> {
        self.hears_of_loss(story, Kind::Believed)
    }

    /// Waits until the guard says that the lock is lost.
    pub(crate) fn loses(&mut self, story: &mut Recorder) -> Result<(), Failure> {
        self.hears_of_loss(story, Kind::Valid)
    }

    fn hears_of_loss(&mut self, story: &mut Recorder, ends: Kind) -> Result<(), Failure> {
        let reason = self.child.order(&Order::Lose, lost)?;
        story.note(self.lane, format!("lost() returns: {}", brief(&reason)), Tone::Guarded);
        story.end(self.lane, ends);
        Ok(())
    }

    /// Raises the fence of the resource.
    pub(crate) fn raise(&mut self, story: &mut Recorder) -> Result<(), Failure> {
        self.child.order(&Order::Raise, done)?;
        story.message(self.lane, self.lanes.resource, format!("raise the fence to {}", self.token), Tone::Plain);
        Ok(())
    }

    /// Reads the resource.
    pub(crate) fn read(&mut self, story: &mut Recorder) -> Result<(), Failure> {
        let value = self.child.order(&Order::Read, value)?;
        story.message(self.lane, self.lanes.resource, format!("read → {value}"), Tone::Plain);
        Ok(())
    }

    /// Writes with its token, and says whether the resource accepted it.
    pub(crate) fn write(&mut self, story: &mut Recorder, value: &str) -> Result<Written, Failure> {
        let refusal = self.child.order(&Order::Write(value.to_owned()), |answer| {
            if let Answer::Refused { token, highest } = answer {
                return Ok(Some([token, highest]));
            }
            done(answer).map(|()| None)
        })?;
        let (lane, resource, what) = (self.lane, self.lanes.resource, format!("write {value} with {}", self.token));
        let Some([token, highest]) = refusal else {
            story.message(lane, resource, format!("{what} → accepted"), Tone::Plain);
            return Ok(Written::Accepted);
        };
        let why = format!("refused, {} < {}", story.token(token)?, story.token(highest)?);
        story.refused(lane, resource, format!("{what} → {why}"), Tone::Guarded);
        Ok(Written::Refused)
    }

    /// Writes with a token that is too low.
    pub(crate) fn writes_in_vain(&mut self, story: &mut Recorder, value: &str) -> Result<(), Failure> {
        match self.write(story, value)? {
            Written::Refused => Ok(()),
            Written::Accepted => {
                Err(Failure::new(Exit::Broken, "the resource accepted a write with a token that is too low"))
            }
        }
    }

    /// Begins a transaction that is fenced by the lock.
    pub(crate) fn begin_fenced(&mut self, story: &mut Recorder) -> Result<(), Failure> {
        self.child.order(&Order::Begin, done)?;
        story.message(self.lane, self.lanes.resource, format!("BEGIN; fence({}) → held", self.token), Tone::Plain);
        Ok(())
    }

    /// Tries to begin such a transaction without the lock.
    pub(crate) fn is_fenced_off(&mut self, story: &mut Recorder) -> Result<(), Failure> {
        self.child.order(&Order::Begin, failed_as("LH001"))?;
        let text = format!("BEGIN; fence({}) → refused: LH001", self.token);
        story.refused(self.lane, self.lanes.resource, text, Tone::Guarded);
        Ok(())
    }

    /// Sends statements to the database, and expects this reply.
    pub(crate) fn asks_for(&mut self, story: &mut Recorder, statements: &str, expected: &str) -> Result<(), Failure> {
        let reply = self.child.order(&Order::Ask(statements.to_owned()), value)?;
        story.message(self.lane, self.lanes.resource, format!("{statements} → {reply}"), Tone::Plain);
        if reply == expected { Ok(()) } else { Err(unplanned(statements, &reply)) }
    }

    /// Suspends the process, with the threads that renew its lease.
    pub(crate) fn pause(&mut self, story: &mut Recorder) -> Result<(), Failure> {
        let remaining = self.child.order(&Order::Remaining, |answer| {
            if let Answer::Remaining(time) = answer { Ok(time) } else { Err(answer) }
        })?;
        story.ends_in(self.lane, Kind::Valid, remaining);
        self.child.suspend()?;
        story.note(self.lane, "is suspended (SIGSTOP)", Tone::Fault);
        story.begin(self.lane, Kind::Paused);
        Ok(())
    }

    /// Resumes it.
    pub(crate) fn resume(&self, story: &mut Recorder) -> Result<(), Failure> {
        story.note(self.lane, "resumes (SIGCONT)", Tone::Fault);
        story.end(self.lane, Kind::Paused);
        self.child.resume()
    }

    /// Kills it.
    pub(crate) fn kill(&mut self, story: &mut Recorder) -> Result<(), Failure> {
        self.child.kill()?;
        story.note(self.lane, "dies (SIGKILL)", Tone::Fault);
        story.end(self.lane, Kind::Valid);
        story.begin(self.lane, Kind::Down);
        Ok(())
    }
}

fn setup(work: &Work<'_>) -> Setup {
    Setup {
        locks: work.locks.to_owned(),
        lock: LOCK.to_owned(),
        ttl_ms: millis(work.ttl),
        resource: work.resource.to_owned(),
        key: work.key.to_owned(),
    }
}
