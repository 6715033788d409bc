//! What a program with Curator is told, and what it answers.

use std::time::Duration;

/// Which of Curator's locks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CuratorLock {
    /// `InterProcessMutex`.
    Mutex,
    /// The readers' lock of `InterProcessReadWriteLock`.
    Read,
    /// The writer's lock of `InterProcessReadWriteLock`.
    Write,
}

/// One acquire of a peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CuratorClaim(pub(super) u64);

/// What a peer says about a claim.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CuratorAnswer {
    /// It has the lock.
    Acquired,
    /// It did not get the lock in time.
    TimedOut,
    /// It released the lock.
    Released,
    /// Curator threw this.
    Failed(String),
}

/// The connection of a peer, as Curator reports it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CuratorState {
    /// It has its first session.
    Connected,
    /// It has no connection, and its locks are in doubt.
    Suspended,
    /// Its session has ended, as far as it knows.
    Lost,
    /// It has a connection again, with the old session or a new one.
    Reconnected,
    /// It is connected to a server without a majority.
    ReadOnly,
}

/// The line that lets threads take locks again and again.
pub(super) fn turns(claim: CuratorClaim, paths: &[String], span: Duration) -> String {
    format!("turns {} {} {}", claim.0, span.as_millis(), paths.join(" "))
}

/// A line of a peer.
#[derive(Debug)]
pub(super) enum Told {
    Claim(CuratorClaim, CuratorAnswer),
    /// The nodes in the queue of this claim's lock.
    Queue(CuratorClaim, Vec<String>),
    /// Whether `isAcquiredInThisProcess`.
    Held(CuratorClaim, bool),
    /// The threads are done, and this file has their turns.
    Turns(CuratorClaim, String),
    State(CuratorState),
}

/// The line that begins to acquire a lock.
pub(super) fn acquire(claim: CuratorClaim, lock: CuratorLock, path: &str, at_most: Duration) -> String {
    let word = match lock {
        CuratorLock::Mutex => "mutex",
        CuratorLock::Read => "read",
        CuratorLock::Write => "write",
    };
    format!("acquire {} {word} {path} {}", claim.0, at_most.as_millis())
}

impl Told {
    /// Reads a line; nothing if it has another form.
    pub(super) fn read(line: &str) -> Option<Self> {
        let (subject, what) = line.split_once(' ')?;
        if subject == "state" {
            return CuratorState::read(what).map(Self::State);
        }
        let claim = CuratorClaim(subject.parse().ok()?);
        if let Some(nodes) = what.strip_prefix("queue") {
            return Some(Self::Queue(claim, nodes.split_whitespace().map(str::to_owned).collect()));
        }
        if let Some(held) = what.strip_prefix("held ") {
            return held.parse().ok().map(|held| Self::Held(claim, held));
        }
        if let Some(file) = what.strip_prefix("turns ") {
            return Some(Self::Turns(claim, file.to_owned()));
        }
        CuratorAnswer::read(what).map(|answer| Self::Claim(claim, answer))
    }
}

impl CuratorAnswer {
    fn read(what: &str) -> Option<Self> {
        Some(match what {
            "acquired" => Self::Acquired,
            "timed out" => Self::TimedOut,
            "released" => Self::Released,
            _ => Self::Failed(what.strip_prefix("failed ")?.to_owned()),
        })
    }
}

impl CuratorState {
    fn read(what: &str) -> Option<Self> {
        Some(match what {
            "connected" => Self::Connected,
            "suspended" => Self::Suspended,
            "lost" => Self::Lost,
            "reconnected" => Self::Reconnected,
            "read only" => Self::ReadOnly,
            _ => return None,
        })
    }
}
