//! The one reader of the store, for all pages.

use std::collections::VecDeque;
use std::fmt;
use std::time::{Duration, SystemTime};

use leasehold::BackendError;
use leasehold::clock::{Clock, HostClock};
use leasehold::inspect::Watch;
use leasehold::inspect::watch::Change;

use crate::pages::Feed;
use crate::snapshot::{Event, Snapshot, locks, millis};
use crate::source::Source;

/// For how long events are kept. Chosen: what happened since somebody was called.
const HISTORY_FOR: Duration = Duration::from_secs(15 * 60);
/// How many events are kept at most. Chosen: more than a person reads.
const HISTORY_MAX: usize = 200;

type Hear = dyn Fn(Option<&str>) + Send + Sync;

/// The callback for when the store cannot be read any more, and when it can.
pub(crate) struct OnTrouble {
    hear: Box<Hear>,
    is_away: bool,
}

impl OnTrouble {
    pub(crate) fn new(hear: impl Fn(Option<&str>) + Send + Sync + 'static) -> Self {
        Self { hear: Box::new(hear), is_away: false }
    }

    fn tell(&mut self, trouble: Option<&str>) {
        if self.is_away != trouble.is_some() {
            self.is_away = trouble.is_some();
            (self.hear)(trouble);
        }
    }
}

impl Default for OnTrouble {
    fn default() -> Self {
        Self::new(|_| ())
    }
}

impl fmt::Debug for OnTrouble {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OnTrouble").finish_non_exhaustive()
    }
}

/// Reads the locks of a store while a page is open.
pub(crate) struct Reader {
    source: Source,
    store: String,
    every: Duration,
    /// What was seen; `None` before the store has answered.
    watch: Option<Watch>,
    /// What happened while a page was open, the latest event first.
    history: VecDeque<Event>,
    on_trouble: OnTrouble,
}

impl Reader {
    pub(crate) fn new(source: Source, store: String, every: Duration, on_trouble: OnTrouble) -> Self {
        Self { source, store, every, watch: None, history: VecDeque::new(), on_trouble }
    }

    /// Tells the pages what there is, until they are closed for good. While no page is open, the store is not read.
    pub(crate) async fn feed(mut self, mut feed: Feed) {
        let mut looked = false;
        loop {
            if !feed.is_read() {
                looked = false;
                if !feed.await_reader().await {
                    return;
                }
            }
            let happened = self.look().await;
            let trouble = happened.as_ref().err().map(ToString::to_string);
            self.on_trouble.tell(trouble.as_deref());
            // What happened while nobody looked is not known well enough.
            if let Ok(changes) = happened
                && looked
            {
                self.keep(changes);
            }
            looked = true;
            let Ok(text) = self.snapshot(trouble.as_deref()).await else { return };
            feed.tell(text);
            if !feed.pause(self.watch.as_ref().map_or(self.every, |watch| watch.pause(self.every))).await {
                return;
            }
        }
    }

    /// Looks, and says what has happened since the last look.
    async fn look(&mut self) -> Result<Vec<Change>, BackendError> {
        match &mut self.watch {
            Some(watch) => self.source.changes(watch).await,
            None => {
                self.watch = Some(Watch::new(self.source.list().await?));
                Ok(Vec::new())
            }
        }
    }

    fn keep(&mut self, changes: Vec<Change>) {
        let now = SystemTime::now();
        changes.into_iter().for_each(|change| self.history.push_front(Event { time: now, change }));
        let is_old = |event: &Event| now.duration_since(event.time).is_ok_and(|age| age > HISTORY_FOR);
        self.history.truncate(HISTORY_MAX);
        while self.history.back().is_some_and(is_old) {
            self.history.pop_back();
        }
    }

    /// As JSON.
    async fn snapshot(&self, trouble: Option<&str>) -> serde_json::Result<String> {
        let last = self.watch.as_ref().map(Watch::last);
        let entries = last.map(|last| last.entries()).unwrap_or_default();
        #[cfg(feature = "redlock")]
        let (quorum, missed) = match self.source.nodes().await {
            Some(Ok(report)) => (Some(report), None),
            Some(Err(error)) => (None, Some(error.to_string())),
            None => (None, None),
        };
        #[cfg(feature = "redlock")]
        let trouble = trouble.or(missed.as_deref());
        serde_json::to_string(&Snapshot {
            time: SystemTime::now(),
            store: &self.store,
            pattern: &self.source.pattern,
            endless: self.source.endless(),
            age_ms: last.map(|last| millis(HostClock.now().since(last.at()))),
            trouble,
            held: entries.len(),
            locks: locks(entries),
            #[cfg(feature = "redlock")]
            quorum,
            history: self.history.iter().collect(),
        })
    }
}
