//! The watches of names that somebody waits for. Each begins before the waiter's entry is written, and is not resumed from an earlier revision:
//! a server sends the changes since then only every 100 ms.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, Weak};
use std::time::{Duration, Instant};

use futures_util::stream::unfold;
use tokio::runtime::Handle;
use tokio::sync::{mpsc, watch};
use tonic::{Status, Streaming};

use crate::directory::Directory;
use crate::proto::{WatchAct, WatchCancel, WatchCreate, WatchFilter, WatchRequest, WatchResponse};
use crate::servers::Servers;
use crate::unpoisoned::lock;

/// How long a watch is kept that nobody asks for. Chosen: far longer than waiters take to ask again.
const KEPT_FOR: Duration = Duration::from_secs(60);

/// What learns of ends.
pub(crate) trait Watcher: Send + Sync + 'static {
    /// This key of a watched directory was deleted, or this key of its changes was written.
    fn ended(&self, key: &[u8], revision: i64);

    /// The watches have ended, and some ends may have been missed.
    fn missed(&self);
}

/// The watches of a client: two for each lock that it waits for, all on one stream.
pub(crate) struct Watches {
    servers: Arc<Servers>,
    runtime: Handle,
    state: Mutex<Option<Open>>,
}

/// An open stream.
struct Open {
    server: usize,
    requests: mpsc::UnboundedSender<WatchAct>,
    /// The watch of each directory.
    known: HashMap<Vec<u8>, Watch>,
    next_id: i64,
    shared: Arc<Shared>,
}

struct Watch {
    id: i64,
    /// When it was last asked for.
    asked: Instant,
    /// The revision of its beginning; 0 before that.
    began: watch::Receiver<i64>,
}

/// What the task that reads the stream shares with the requests.
#[derive(Default)]
struct Shared {
    /// The watches that have not begun.
    beginning: Mutex<HashMap<i64, watch::Sender<i64>>>,
    /// The watches that were asked to end.
    ending: Mutex<HashSet<i64>>,
}

impl Watches {
    pub(crate) fn new(servers: Arc<Servers>, runtime: Handle) -> Self {
        Self { servers, runtime, state: Mutex::default() }
    }

    /// Has the ends in a directory delivered, and the changes of the lock, from some moment before this returns.
    /// Lasts for a minute; asking again makes it last longer.
    /// Returns the revision at which it began.
    pub(crate) async fn watch(&self, directory: &Directory, watcher: &Weak<dyn Watcher>) -> Result<i64, Status> {
        let began = {
            let mut state = lock(&self.state);
            let current = self.servers.current();
            let open = state.take().filter(|open| open.server == current && !open.requests.is_closed());
            let open = state.insert(open.unwrap_or_else(|| self.open(current, watcher)));
            [open.watch(directory.range(), &[WatchFilter::NoPut]), open.watch(directory.changes(), &[])]
        };
        let mut latest = 0;
        for mut began in began {
            let revision = began.wait_for(|revision| *revision > 0).await.ok().map(|revision| *revision);
            let Some(revision) = revision else {
                self.servers.check_login().await?;
                return Err(Status::unavailable("the connection for watches has ended"));
            };
            latest = latest.max(revision);
        }
        Ok(latest)
    }

    fn open(&self, server: usize, watcher: &Weak<dyn Watcher>) -> Open {
        let (requests, to_send) = mpsc::unbounded_channel();
        let shared = Arc::<Shared>::default();
        let (servers, watcher, told) = (Arc::clone(&self.servers), Weak::clone(watcher), Arc::clone(&shared));
        self.runtime.spawn(async move {
            let messages = unfold(to_send, |mut to_send: mpsc::UnboundedReceiver<WatchAct>| async move {
                let act = to_send.recv().await?;
                Some((WatchRequest { act: Some(act) }, to_send))
            });
            let followed = async {
                if let Ok(answers) = servers.stream(server, "/etcdserverpb.Watch/Watch", messages).await {
                    follow(answers, &told, &watcher).await;
                }
            };
            tokio::select! {
                () = followed => {}
                () = servers.left(server) => {}
            }
            servers.leave(server);
            lock(&told.beginning).clear();
            if let Some(watcher) = watcher.upgrade() {
                watcher.missed();
            }
        });
        Open { server, requests, known: HashMap::new(), next_id: 1, shared }
    }
}

async fn follow(mut answers: Streaming<WatchResponse>, shared: &Shared, watcher: &Weak<dyn Watcher>) {
    while let Ok(Some(answer)) = answers.message().await {
        let Some(watcher) = watcher.upgrade() else { return };
        // A watch that the server ends has missed what follows. Such an answer may name none.
        if answer.canceled && !lock(&shared.ending).remove(&answer.watch_id) {
            return;
        }
        let began = if answer.created { lock(&shared.beginning).remove(&answer.watch_id) } else { None };
        let revision = answer.header.map_or(0, |header| header.revision);
        began.into_iter().for_each(|began| _ = began.send(revision));
        for ended in answer.events.iter().filter_map(|event| event.kv.as_ref()) {
            watcher.ended(&ended.key, ended.mod_revision);
        }
    }
}

impl Open {
    /// Watches these keys. Returns what tells when the watch has begun.
    fn watch(&mut self, (key, range_end): (Vec<u8>, Vec<u8>), filters: &[WatchFilter]) -> watch::Receiver<i64> {
        if let Some(watch) = self.known.get_mut(&key) {
            watch.asked = Instant::now();
            return watch.began.clone();
        }
        self.end_unused();
        let (id, (begins, began)) = (self.next_id, watch::channel(0));
        self.next_id += 1;
        self.known.insert(key.clone(), Watch { id, asked: Instant::now(), began: began.clone() });
        lock(&self.shared.beginning).insert(id, begins);
        let filters = filters.iter().map(|filter| i32::from(*filter)).collect();
        _ = self.requests.send(WatchAct::Create(WatchCreate { key, range_end, filters, watch_id: id }));
        began
    }

    fn end_unused(&mut self) {
        let (requests, mut ending) = (&self.requests, lock(&self.shared.ending));
        self.known.retain(|_, watch| {
            let is_used = watch.asked.elapsed() < KEPT_FOR;
            if !is_used {
                ending.insert(watch.id);
                _ = requests.send(WatchAct::Cancel(WatchCancel { watch_id: watch.id }));
            }
            is_used
        });
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};

    use lock_core::{LockName, Prefix};
    use test_support::EtcdServer;
    use test_support::bounds::wait_for;

    use super::*;
    use crate::EtcdConfig;

    /// Notes the keys that have ended, and whether some may have been missed.
    #[derive(Default)]
    struct Told(Mutex<Vec<Vec<u8>>>, AtomicBool);

    impl Watcher for Told {
        fn ended(&self, key: &[u8], _: i64) {
            lock(&self.0).push(key.to_vec());
        }

        fn missed(&self) {
            self.1.store(true, Ordering::SeqCst);
        }
    }

    #[test]
    fn the_end_of_a_watch_that_nobody_uses_ends_no_other() {
        let server = EtcdServer::start();
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
        let servers = Servers::new(&EtcdConfig::from_url(&server.url()).unwrap(), runtime.handle()).unwrap();
        let watches = Watches::new(Arc::new(servers), runtime.handle().clone());
        let noted = Arc::<Told>::default();
        let watcher: Weak<dyn Watcher> = Arc::downgrade(&noted) as Weak<dyn Watcher>;
        let watch = |name: &str| {
            let directory = Directory::of("r/", &Prefix::default(), &name.parse::<LockName>().unwrap());
            runtime.block_on(watches.watch(&directory, &watcher)).unwrap()
        };
        let (old, used) = (watch("old"), watch("used"));
        server.run(&["put", "other", ""]);
        {
            let mut state = lock(&watches.state);
            let old = state.as_mut().unwrap().known.values_mut().find(|watch| watch.id == 1).unwrap();
            old.asked = old.asked.checked_sub(KEPT_FOR).unwrap();
        }
        assert!(watch("next") > used, "it begins, and ends the old one");
        wait_for("the end of the old watch", || {
            lock(&watches.state).as_ref().is_some_and(|open| lock(&open.shared.ending).is_empty())
        });
        assert!(watch("used") == used && watch("old") > old, "the others are there, and the old one begins anew");
        for name in ["used", "next", "old"] {
            server.run(&["put", &format!("r/{name}/1"), ""]);
            server.run(&["del", &format!("r/{name}/1")]);
        }
        wait_for("the ends", || lock(&noted.0).len() == 3);
        assert!(!noted.1.load(Ordering::SeqCst), "nothing was missed");
        // A server refuses a watch by its end, which names none.
        lock(&watches.state).as_mut().unwrap().next_id = 2;
        let directory = Directory::of("r/", &Prefix::default(), &"again".parse::<LockName>().unwrap());
        runtime.block_on(watches.watch(&directory, &watcher)).unwrap_err();
        wait_for("the news that ends may have been missed", || noted.1.load(Ordering::SeqCst));
    }
}
