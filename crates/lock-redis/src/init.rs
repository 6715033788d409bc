//! Declares that a deployment is new, so that its free locks are granted at once.

use std::sync::Arc;
use std::time::Duration;

use lock_core::inspect::Query;
use lock_core::{BackendError, BlockingBackend, Effect, ErrorKind, Operation, Prefix};

use crate::blocking::{Connections, Redis};
use crate::connect::CONNECT_WITHIN;
use crate::hash_slot::HashSlot;
use crate::keys::Scope;
use crate::requests::end_dwell::{EndDwell, longest_ttl, mark_dwell};
use crate::server::verification::VerifySlot;
use crate::servers::Server;
use crate::span::Span;
use crate::wire::Question;
use crate::{BACKEND, RedisConfig};

/// How many hash slots are asked about in one write. Chosen: a server is busy with them for some milliseconds.
const TOGETHER: usize = 128;
/// How many locks are listed at a time, and how long that may take: a cluster has thousands of keys that are no locks.
const LISTED: u32 = 1000;
const LISTED_WITHIN: Duration = Duration::from_secs(5);

/// What it took to make a deployment new.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Declared {
    /// For how much longer clients with `failover=dwell` would have been granted no free lock; `None` if they were granted them
    /// already.
    pub dwell: Option<Duration>,
    /// The longest ttl that any client has configured. A dwell lasts for so long and ten seconds; nothing lowers it.
    pub max_ttl: Duration,
}

/// Declares that no lock of this server, or of this cluster, was ever granted: clients with `failover=dwell` are granted free locks at
/// once.
///
/// A server without data looks like one that has lost its data, so such clients are granted nothing at first. If the server did
/// lose its data, this may give a lock to a second holder. All databases and prefixes of a server have their own locks; this is
/// about one database, with all its prefixes.
///
/// # Errors
/// `Config`, and nothing is changed, if a lock is held or waited for. `Unavailable`, and free locks still wait, if the server is
/// restarted, promoted or emptied meanwhile. Otherwise as [`Redis::connect`](crate::blocking::Redis::connect).
///
/// # Blocking
/// For a few seconds at most for each of a few requests, and for as long as it takes to look at all keys.
pub fn declare_new(config: &RedisConfig) -> Result<Declared, BackendError> {
    let config = config.clone().under(Prefix::default());
    let redis = Redis::connect(&config)?;
    let parts = parts(&redis)?;
    let mark = new_mark()?;
    let marked = parts.iter().map(|part| part.begin(&mark)).collect::<Result<Vec<_>, _>>()?;
    check_unused(&redis)?;
    let (mut dwell, mut max_ttl) = (None, config.failover.longest());
    for (part, incarnations) in parts.iter().zip(marked) {
        dwell = dwell.max(part.end(&mark, &incarnations)?);
        max_ttl = part.longest_ttl()?.map_or(max_ttl, |stored| stored.max(max_ttl));
    }
    Ok(Declared { dwell, max_ttl })
}

fn parts(redis: &Redis) -> Result<Vec<Part>, BackendError> {
    Ok(redis.each()?.into_iter().map(|(server, slots)| Part::new(server, slots)).collect())
}

/// What tells these dwells from others that begin while the locks are listed.
fn new_mark() -> Result<String, BackendError> {
    let failed = |_| {
        let message = "the system's random source failed";
        BackendError::new(BACKEND, Operation::Connect, ErrorKind::Unsupported, Effect::None, message)
    };
    Ok(lock_host::new_owner().map_err(failed)?.to_wire().to_string())
}

/// A server, and what dwells there.
struct Part {
    server: Arc<Server<Connections>>,
    scopes: Vec<Scope>,
    /// What was not verified on connecting.
    unverified: Vec<HashSlot>,
}

impl Part {
    fn new(server: Arc<Server<Connections>>, slots: Vec<HashSlot>) -> Self {
        let scopes =
            if slots.is_empty() { vec![Scope::Database] } else { slots.iter().copied().map(Scope::HashSlot).collect() };
        Self { server, scopes, unverified: slots }
    }

    /// Marks the dwells as they are before the locks are listed. Gives the incarnation in which each was marked.
    fn begin(&self, mark: &str) -> Result<Vec<String>, BackendError> {
        self.ask_all(self.unverified.iter().copied().map(VerifySlot))?;
        self.ask_all(self.scopes.iter().map(|scope| mark_dwell(*scope, mark)))
    }

    fn end(&self, mark: &str, incarnations: &[String]) -> Result<Option<Duration>, BackendError> {
        let marked = self.scopes.iter().zip(incarnations);
        let ends = marked.map(|(scope, incarnation)| EndDwell { scope: *scope, mark, incarnation });
        Ok(self.ask_all(ends)?.into_iter().flatten().max())
    }

    fn longest_ttl(&self) -> Result<Option<Duration>, BackendError> {
        let asked = self.scopes.iter().copied().map(longest_ttl);
        Ok(self.ask_all(asked)?.into_iter().flatten().max())
    }

    /// Asks many questions, a few in each write. The first one alone loads the script.
    fn ask_all<Q: Question>(&self, questions: impl Iterator<Item = Q>) -> Result<Vec<Q::Answer>, BackendError> {
        let (mut questions, mut answers) = (questions.peekable(), Vec::new());
        while questions.peek().is_some() {
            let count = if answers.is_empty() { 1 } else { TOGETHER };
            let write: Vec<_> = questions.by_ref().take(count).collect();
            for answer in self.server.answer_each(&write, Span::from_now(CONNECT_WITHIN)) {
                answers.push(answer.map_err(|failure| failure.into_error(Operation::Connect))?);
            }
        }
        Ok(answers)
    }
}

/// Refuses a server with a lock that is held or waited for.
fn check_unused(locks: &Redis) -> Result<(), BackendError> {
    let mut query = Query::all();
    query.limit = LISTED;
    loop {
        let page = locks.list(&query, LISTED_WITHIN)?;
        if let Some(entry) = page.entries.first() {
            let message = format!(
                "the lock \"{}\" is held or waited for, so the server is not new; nothing was changed",
                entry.name
            );
            let remedy = "wait: free locks are granted again once the longest ttl and ten seconds have passed";
            return Err(BackendError::new(BACKEND, Operation::Connect, ErrorKind::Config, Effect::None, message)
                .with_remedy(remedy));
        }
        match page.next {
            Some(next) => query.cursor = Some(next),
            None => return Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use test_support::{RedisOptions, RedisServer};

    use super::*;

    type Loss = (&'static str, fn(&mut RedisServer));

    /// Each of them begins another dwell once a client has connected.
    const LOSSES: [Loss; 3] = [
        ("restarted with its data", RedisServer::restart_with_data),
        ("restarted without data", RedisServer::restart_empty),
        ("emptied", |server| server.command(&["FLUSHALL"])),
    ];

    fn dwell(server: &RedisServer) -> i64 {
        server.command(&["PTTL", "leasehold:dwell"])
    }

    #[test]
    fn a_loss_while_the_locks_are_listed_is_not_declared_to_be_none() {
        for (how, lose) in LOSSES {
            let mut server = RedisServer::start_with(RedisOptions::default().append_only());
            let config = RedisConfig::from_url(&format!("{}?failover=dwell", server.url())).unwrap();
            let redis = Redis::connect(&config).unwrap();
            let [part] = &parts(&redis).unwrap()[..] else { panic!("it is one server") };
            let (mark, incarnations) = ("mine", part.begin("mine").unwrap());
            check_unused(&redis).unwrap();
            lose(&mut server);
            Redis::connect(&config).unwrap();
            let error =
                part.end(mark, &incarnations).expect_err("a dwell was ended that nobody had looked for locks in");
            assert_eq!(error.kind(), ErrorKind::Unavailable, "{how}: {error}");
            assert!(error.to_string().contains("try again"), "{how}: {error}");
            assert!(dwell(&server) > 60_000, "{how}");
            assert!(declare_new(&config).unwrap().dwell.is_some(), "{how}");
            assert_eq!((dwell(&server), declare_new(&config).unwrap().dwell), (-2, None), "{how}");
        }
    }

    #[test]
    fn a_dwell_without_an_end_belongs_to_one_incarnation_as_well() {
        let mut server = RedisServer::start_with(RedisOptions::default().append_only());
        let config = RedisConfig::from_url(&format!("{}?failover=dwell", server.url())).unwrap();
        let redis = Redis::connect(&config).unwrap();
        let [part] = &parts(&redis).unwrap()[..] else { panic!("it is one server") };
        server.command::<()>(&["PERSIST", "leasehold:dwell"]);
        let incarnations = part.begin("mine").unwrap();
        server.restart_with_data();
        Redis::connect(&config).unwrap();
        assert!(part.end("mine", &incarnations).is_err());
        assert_eq!(dwell(&server), -1);
    }
}
