//! What a measured process is asked to do.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use serde::{Deserialize, Serialize};

/// What is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Subject {
    /// `SET NX PX` and a script that compares and deletes, over a connection of redis-rs; no token, no queue.
    Bare,
    /// The scripts of this library, sent over a connection of redis-rs.
    ByHand,
    /// The same for a lock that it reads.
    ReadByHand,
    /// The same for the one permit of a semaphore.
    PermitByHand,
    /// This library with its default settings.
    Leasehold,
    /// The same for a lock that it reads.
    Read,
    /// The same for the one permit of a semaphore.
    Permit,
    /// This library without local hand-over.
    Chain0,
    /// This library over a pool, with a URL for notifications.
    Pool,
    /// This library, while another process holds one in sixteen of the locks.
    SixteenthHeld,
    /// This library, whose grants wait for one replica.
    OneReplica,
    /// The same for two replicas.
    TwoReplicas,
    /// This library, which takes no free lock from a server that may have forgotten leases until they have ended.
    Dwell,
    /// `rslock` with its default settings.
    Rslock,
    /// `rslock` with tries at most 10 ms apart.
    RslockEager,
}

/// The runtime that the work is done on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Runtime {
    /// tokio on the main thread.
    CurrentThread,
    /// tokio on two worker threads.
    TwoThreads,
    /// Plain threads.
    Blocking,
}

/// How a hold is ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Ending {
    /// By a release whose answer is awaited.
    Awaited,
    /// By dropping the guard, where that releases; else as `Awaited`.
    Dropped,
}

/// How the locks of a process are called.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Names {
    /// All of them are this one.
    One(String),
    /// Each has its own, with this beginning.
    Each(String),
}

impl Names {
    /// The name of the lock with this number.
    pub fn name(&self, number: u32) -> String {
        match self {
            Self::One(name) => name.clone(),
            Self::Each(beginning) => format!("{beginning}:{number}"),
        }
    }
}

/// The work of one measured process.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum Work {
    /// Tasks that acquire and release, each its own lock.
    Pairs {
        /// How many.
        tasks: u32,
        /// How they release.
        ending: Ending,
        /// How long, before anything counts.
        warm_up: Duration,
        /// How long.
        span: Duration,
    },
    /// Each task tries its own [`LOCKS_OF_A_TASK`](crate::LOCKS_OF_A_TASK) locks in turn, without waiting.
    Tries {
        /// How many.
        tasks: u32,
        /// How long, before anything counts.
        warm_up: Duration,
        /// How long.
        span: Duration,
    },
    /// Tasks that all want one lock, again and again.
    Contend {
        /// How many.
        waiters: u32,
        /// How long, before anything counts.
        warm_up: Duration,
        /// How long.
        span: Duration,
        /// Where every turn is written down.
        turns: PathBuf,
    },
    /// Holds locks and keeps them.
    Hold {
        /// How many.
        locks: u32,
        /// For how long after the bench has said that it may continue.
        span: Duration,
    },
    /// Waits for locks that somebody else holds, until the first was had.
    Wait {
        /// How many tasks wait.
        waiters: u32,
        /// For what.
        names: Names,
    },
}

/// What a measured process is asked to do.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Plan {
    /// What is measured.
    pub subject: Subject,
    /// Where the servers are: one, or the nodes of a quorum.
    pub servers: Vec<String>,
    /// How long a lease lasts without renewal.
    pub ttl: Duration,
    /// What the work is done on.
    pub runtime: Runtime,
    /// The work.
    pub work: Work,
}

impl Plan {
    /// The plan in the one argument of a measured process.
    ///
    /// # Errors
    /// If there is none that can be read.
    pub fn from_argument(argument: Option<String>) -> Result<Self> {
        let argument = argument.context("the plan is missing; this program is started by the bench")?;
        serde_json::from_str(&argument).context("cannot read the plan")
    }

    /// Where the one server is.
    ///
    /// # Errors
    /// If there are several.
    pub fn server(&self) -> Result<&str> {
        let [server] = self.servers.as_slice() else { bail!("this is measured with one server") };
        Ok(server)
    }
}
