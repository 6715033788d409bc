//! The one reader of the store, for all pages.

use std::collections::VecDeque;
use std::time::{Duration, SystemTime};

use humantime::format_rfc3339_millis;
use leasehold::BackendConfig;
use leasehold::redlock::{Purpose, Report};
use lock_host::{Clock, HostClock};

use super::server::Feed;
use super::snapshot::{Snapshot, rows};
use crate::durations::millis;
use crate::exit::{Exit, Failure};
use crate::looks::Looks;
use crate::quorum::{Health, Quorum};
use crate::redlock::Status;
use crate::report::{json, say_warning};
use crate::store::Store;
use crate::watching::{Change, Following, Line};

/// For how long events are kept. Chosen: what happened since somebody was called.
const HISTORY_FOR: Duration = Duration::from_secs(15 * 60);
/// How many events are kept at most. Chosen: more than a person reads.
const HISTORY_MAX: usize = 200;

/// Reads the locks of a store while a page is open.
pub(super) struct Reader {
    /// The store, without user and password.
    store: String,
    pattern: String,
    every: Duration,
    following: Following,
    quorum: Option<Quorum>,
    /// What happened while a page was open, the latest event first.
    history: VecDeque<Change>,
}

impl Reader {
    /// Looks for the first time. A store that does not answer is an error.
    pub(super) fn begin(store: &Store, pattern: &str, every: Duration) -> Result<Self, Failure> {
        let config = store.config().map_err(|invalid| Failure::new(Exit::Config, invalid.to_string()))?;
        let quorum = if let BackendConfig::Redlock(config) = &config { Some(Quorum::open(config)?) } else { None };
        Ok(Self {
            store: config.shown(),
            pattern: pattern.to_owned(),
            every,
            following: Following::begin(Looks::of(store, pattern)?)?,
            quorum,
            history: VecDeque::new(),
        })
    }

    /// Tells the pages what there is, until they are closed for good. While no page is open, the store is not read.
    pub(super) fn feed(mut self, feed: Feed) {
        let mut looked = false;
        loop {
            if !feed.is_read() {
                looked = false;
                if !feed.await_reader() {
                    return;
                }
            }
            match self.look(looked) {
                Ok(snapshot) => feed.tell(snapshot),
                Err(failure) => say_warning(&failure.message),
            }
            looked = true;
            feed.pause(self.following.pause(self.every));
        }
    }

    /// Looks, and writes down what happened if somebody has looked just before.
    fn look(&mut self, looked: bool) -> Result<String, Failure> {
        let followed = self.following.again();
        let nodes = self.quorum.as_ref().map(|quorum| quorum.pass(Purpose::Look)).transpose();
        let trouble = match (&followed, &nodes) {
            (Err(failure), _) | (_, Err(failure)) => Some(failure.message.clone()),
            (Ok(_), Ok(_)) => self.following.away().map(str::to_owned),
        };
        if looked {
            self.keep(followed.unwrap_or_default());
        }
        self.snapshot(trouble.as_deref(), nodes.ok().flatten().as_ref())
    }

    fn keep(&mut self, changes: Vec<Change>) {
        changes.into_iter().for_each(|change| self.history.push_front(change));
        let now = SystemTime::now();
        let is_old = |change: &Change| now.duration_since(change.time).is_ok_and(|age| age > HISTORY_FOR);
        self.history.truncate(HISTORY_MAX);
        while self.history.back().is_some_and(is_old) {
            self.history.pop_back();
        }
    }

    fn snapshot(&self, trouble: Option<&str>, nodes: Option<&Report>) -> Result<String, Failure> {
        let locks = self.following.locks();
        json(&Snapshot {
            time: format_rfc3339_millis(SystemTime::now()).to_string(),
            store: &self.store,
            pattern: &self.pattern,
            endless: self.following.endless(),
            age_ms: millis(HostClock.now().since(self.following.at())),
            trouble,
            held: locks.len(),
            locks: rows(locks),
            quorum: nodes.map(|report| Status::of(report, Health::of(report))),
            history: self.history.iter().map(Line::from).collect(),
        })
    }
}
