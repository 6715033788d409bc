//! Publishes texts to the open pages.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{mpsc, watch};
use tokio::time::timeout;

/// How many pages may be open at the same time. Chosen: more than one person opens.
const PAGES_MAX: usize = 32;

/// Where pages get what they show. An empty text says that nobody has looked yet.
#[derive(Clone)]
pub(crate) struct Pages {
    told: Arc<watch::Sender<Arc<str>>>,
    opened: mpsc::Sender<()>,
}

/// The other end: where the reader of the store says what it found.
pub(crate) struct Feed {
    told: Arc<watch::Sender<Arc<str>>>,
    opened: mpsc::Receiver<()>,
}

impl Pages {
    pub(crate) fn with_feed() -> (Self, Feed) {
        let told = Arc::new(watch::Sender::new(Arc::default()));
        let (tell, opened) = mpsc::channel(1);
        (Self { told: Arc::clone(&told), opened: tell }, Feed { told, opened })
    }

    /// The texts for one more page: the present one and then each new one; `None` if too many are open.
    pub(crate) fn open(&self) -> Option<watch::Receiver<Arc<str>>> {
        if self.told.receiver_count() >= PAGES_MAX {
            return None;
        }
        let mut page = self.told.subscribe();
        page.mark_changed();
        // If it is full, the reader is about to look anyway.
        let _ = self.opened.try_send(());
        Some(page)
    }
}

impl Feed {
    /// Whether a page is open.
    pub(crate) fn is_read(&self) -> bool {
        self.told.receiver_count() > 0
    }

    /// Waits for a page, which will not see earlier texts; `false` if there will be none.
    pub(crate) async fn await_reader(&mut self) -> bool {
        self.told.send_replace(Arc::default());
        self.opened.recv().await.is_some()
    }

    pub(crate) fn tell(&self, text: String) {
        self.told.send_replace(text.into());
    }

    /// Waits until it is time to look again, or a page is opened; `false` if there will be none any more.
    pub(crate) async fn pause(&mut self, time: Duration) -> bool {
        timeout(time, self.opened.recv()).await.map_or(true, |opened| opened.is_some())
    }
}
