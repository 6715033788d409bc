//! The stream of renewals.

use std::collections::hash_map::Entry;
use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use futures_util::stream::unfold;
use tokio::runtime::Handle;
use tokio::sync::oneshot::error::RecvError;
use tokio::sync::{mpsc, oneshot};
use tokio::time::timeout;

use crate::proto::{LeaseKeepAliveRequest, LeaseKeepAliveResponse};
use crate::servers::Servers;
use crate::unpoisoned::lock;

/// The open stream of renewals.
#[derive(Clone)]
pub(super) struct Renewing {
    server: usize,
    ids: mpsc::UnboundedSender<(i64, Answer)>,
    /// How many answers there were.
    answers: Arc<AtomicU64>,
}

/// What learns of the answer to a renewal.
type Answer = oneshot::Sender<LeaseKeepAliveResponse>;

/// The renewals that were not answered yet, by lease. Those of one lease are answered in their order.
#[derive(Default)]
struct Unanswered(HashMap<i64, VecDeque<Answer>>);

impl Unanswered {
    fn asked(&mut self, id: i64, answer: Answer) {
        self.0.entry(id).or_default().push_back(answer);
    }

    fn answered(&mut self, answer: LeaseKeepAliveResponse) {
        let Entry::Occupied(mut waiting) = self.0.entry(answer.id) else { return };
        let first = waiting.get_mut().pop_front();
        if waiting.get().is_empty() {
            waiting.remove();
        }
        if let Some(first) = first {
            _ = first.send(answer);
        }
    }
}

impl Renewing {
    /// Opens it. The server answers the opening together with the first renewal.
    pub(super) fn open(servers: &Arc<Servers>, runtime: &Handle, server: usize) -> Self {
        let (ids, mut to_send) = mpsc::unbounded_channel::<(i64, Answer)>();
        let (servers, answers) = (Arc::clone(servers), Arc::<AtomicU64>::default());
        let counted = Arc::clone(&answers);
        runtime.spawn(async move {
            let waiting = Arc::<Mutex<Unanswered>>::default();
            let asked = Arc::clone(&waiting);
            let Some(first) = to_send.recv().await else { return };
            let messages = unfold((Some(first), to_send), move |(first, mut to_send)| {
                let asked = Arc::clone(&asked);
                async move {
                    let next = match first {
                        Some(first) => Some(first),
                        None => to_send.recv().await,
                    };
                    let (id, answer) = next?;
                    lock(&asked).asked(id, answer);
                    Some((LeaseKeepAliveRequest { id }, (None, to_send)))
                }
            });
            let opened = tokio::select! {
                opened = servers.stream(server, "/etcdserverpb.Lease/LeaseKeepAlive", messages) => opened,
                () = servers.left(server) => return lock(&waiting).0.clear(),
            };
            let Ok(mut told) = opened else { return servers.leave(server) };
            loop {
                tokio::select! {
                    answer = told.message() => {
                        let Ok(Some(answer)) = answer else { return servers.leave(server) };
                        counted.fetch_add(1, Ordering::Relaxed);
                        lock(&waiting).answered(answer);
                    }
                    () = servers.left(server) => return lock(&waiting).0.clear(),
                }
            }
        });
        Self { server, ids, answers }
    }

    /// Whether it is open, and to this server.
    pub(super) fn is_to(&self, server: usize) -> bool {
        self.server == server && !self.ids.is_closed()
    }

    /// Asks for a renewal, and waits for as long as others are answered: a follower asks the leader for one after the other. Returns `None` if
    /// the server is silent.
    pub(super) async fn ask(&self, servers: &Servers, id: i64) -> Option<Result<LeaseKeepAliveResponse, RecvError>> {
        let (tell, mut told) = oneshot::channel();
        _ = self.ids.send((id, tell));
        loop {
            let (answers, patience) = (self.answers.load(Ordering::Relaxed), servers.patience());
            match timeout(patience, &mut told).await {
                Ok(answer) => return Some(answer),
                Err(_) if self.answers.load(Ordering::Relaxed) > answers => {}
                Err(_) => {
                    // It may only be slow.
                    servers.answered_after(patience);
                    return None;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_that_of_the_first_request_for_its_lease() {
        let mut unanswered = Unanswered::default();
        let mut ask = |id| {
            let (answer, answered) = oneshot::channel();
            unanswered.asked(id, answer);
            answered
        };
        let [mut one, mut two, mut again] = [ask(1), ask(2), ask(1)];
        let mut tell = |id, ttl| unanswered.answered(LeaseKeepAliveResponse { header: None, id, ttl });
        tell(2, 20);
        tell(3, 30);
        assert_eq!((two.try_recv().unwrap().ttl, one.try_recv().is_err()), (20, true));
        tell(1, 10);
        assert_eq!((one.try_recv().unwrap().ttl, again.try_recv().is_err()), (10, true));
        tell(1, 11);
        assert_eq!(again.try_recv().unwrap().ttl, 11);
        assert!(unanswered.0.is_empty());
    }
}
