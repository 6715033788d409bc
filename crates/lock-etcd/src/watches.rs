//! The watches of names that somebody waits for. Each begins before the waiter's entry is written, and is not resumed from an earlier revision:
//! a server sends the changes since then only every 100 ms.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};

use futures_util::stream::unfold;
use tokio::runtime::Handle;
use tokio::sync::{mpsc, oneshot};
use tonic::{Status, Streaming};

use crate::directory::Directory;
use crate::proto::{WatchAct, WatchCancel, WatchCreate, WatchFilter, WatchRequest, WatchResponse};
use crate::servers::Servers;

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
}

/// What the task that reads the stream shares with the requests: who waits for a watch to begin.
#[derive(Default)]
struct Shared(Mutex<HashMap<i64, Vec<oneshot::Sender<()>>>>);

impl Watches {
    pub(crate) fn new(servers: Arc<Servers>, runtime: Handle) -> Self {
        Self { servers, runtime, state: Mutex::default() }
    }

    /// Has the ends in a directory told, and the changes of the lock, from some moment before this returns.
    /// Lasts for a minute; asking again makes it last longer.
    /// Returns whether it began only now.
    pub(crate) async fn watch(&self, directory: &Directory, watcher: &Weak<dyn Watcher>) -> Result<bool, Status> {
        let began = {
            let mut state = lock(&self.state);
            let current = self.servers.current();
            let open = state.take().filter(|open| open.server == current && !open.requests.is_closed());
            let open = state.insert(open.unwrap_or_else(|| self.open(current, watcher)));
            [open.watch(directory.range(), &[WatchFilter::NoPut]), open.watch(directory.changes(), &[])]
        };
        let mut is_new = false;
        for began in began.into_iter().flatten() {
            began.await.map_err(|_| Status::unavailable("the connection for watches has ended"))?;
            is_new = true;
        }
        Ok(is_new)
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
            lock(&told.0).clear();
            if let Some(watcher) = watcher.upgrade() {
                watcher.missed();
            }
        });
        Open { server, requests, known: HashMap::new(), next_id: 1, shared }
    }
}

async fn follow(mut answers: Streaming<WatchResponse>, shared: &Shared, watcher: &Weak<dyn Watcher>) {
    while let Ok(Some(answer)) = answers.message().await {
        let Some(watcher) = watcher.upgrade().filter(|_| !answer.canceled) else { return };
        let began = if answer.created { lock(&shared.0).remove(&answer.watch_id) } else { None };
        began.into_iter().flatten().for_each(|began| _ = began.send(()));
        for ended in answer.events.iter().filter_map(|event| event.kv.as_ref()) {
            watcher.ended(&ended.key, ended.mod_revision);
        }
    }
}

impl Open {
    /// Watches these keys. Returns what tells that the watch has begun, unless it has.
    fn watch(
        &mut self,
        (key, range_end): (Vec<u8>, Vec<u8>),
        filters: &[WatchFilter],
    ) -> Option<oneshot::Receiver<()>> {
        if let Some(watch) = self.known.get_mut(&key) {
            watch.asked = Instant::now();
            let mut beginning = lock(&self.shared.0);
            let waiting = beginning.get_mut(&watch.id)?;
            let (begins, began) = oneshot::channel();
            waiting.push(begins);
            return Some(began);
        }
        self.end_unused();
        let (id, (begins, began)) = (self.next_id, oneshot::channel());
        self.next_id += 1;
        self.known.insert(key.clone(), Watch { id, asked: Instant::now() });
        lock(&self.shared.0).insert(id, vec![begins]);
        let filters = filters.iter().map(|filter| i32::from(*filter)).collect();
        _ = self.requests.send(WatchAct::Create(WatchCreate { key, range_end, filters, watch_id: id }));
        Some(began)
    }

    fn end_unused(&mut self) {
        let requests = &self.requests;
        self.known.retain(|_, watch| {
            let is_used = watch.asked.elapsed() < KEPT_FOR;
            if !is_used {
                _ = requests.send(WatchAct::Cancel(WatchCancel { watch_id: watch.id }));
            }
            is_used
        });
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
