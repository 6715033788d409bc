//! The requests that wait to be sent over one connection: when they are sent, and how many together.

use std::io;
use std::iter;
use std::mem;
use std::sync::atomic::{AtomicUsize, Ordering};

use futures_util::future::{Either, FutureExt};
use futures_util::stream::{FuturesUnordered, StreamExt};
use redis::aio::{ConnectionLike, MultiplexedConnection};
use redis::{Cmd, RedisResult, Value};
use tokio::sync::{mpsc, oneshot};
use tokio::task::{unconstrained, yield_now};

use super::writes::{Request, Size, Write, writes};
use crate::wire::{Call, Ownership};

/// When requests share a write.
#[derive(Clone, Copy)]
pub(crate) struct Sharing {
    /// Beside how many others a request may leave at once, in a write of its own.
    beside_max: usize,
    /// How many requests one write takes while few are in flight. The first of them waits for the answer to the last.
    together: usize,
}

impl Sharing {
    /// With several writes in flight, the server answers one while the client prepares another.
    pub(crate) const AT_A_SERVER: Self = Self { beside_max: 0, together: 32 };
    /// At a node of a quorum. There the client can turn to other nodes meanwhile, and small batches cost all of them time.
    /// Chosen: a task has at most two pairs at a slow node, the one that is nearly over and the next.
    pub(crate) const AT_A_NODE: Self = Self { beside_max: 3, together: 128 };
}

/// How many waiting requests are grouped at a time. Chosen: enough for several writes while a thousand are in flight.
const GROUPED_MAX: usize = 512;
/// One write takes up to a quarter of the requests in flight, if that is more. Measured: with 1,000 tasks, the server's time for a pair
/// is a tenth less, and client and server still work at the same time.
const SHARE_OF_A_WRITE: usize = 4;

/// Sends requests over one connection. Those for one lock take effect in the order in which they were handed over.
pub(crate) struct Batcher {
    connection: MultiplexedConnection,
    requests: mpsc::UnboundedSender<Request>,
    sharing: Sharing,
    /// How many requests are in flight.
    in_flight: AtomicUsize,
    /// How many of them share writes. Some of these may not have been sent yet.
    queued: AtomicUsize,
}

/// Counts a request, until it is answered or dropped.
struct Counted<'a>(&'a AtomicUsize);

impl<'a> Counted<'a> {
    fn begin(count: &'a AtomicUsize) -> Self {
        count.fetch_add(1, Ordering::Relaxed);
        Self(count)
    }
}

impl Drop for Counted<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Batcher {
    /// Starts the task that sends requests together. It ends with the last handle, once everything was answered.
    pub(crate) fn new(connection: MultiplexedConnection, sharing: Sharing) -> Self {
        let (batcher, requests) = mpsc::unbounded_channel();
        tokio::spawn(send_all(requests, connection.clone(), sharing.together));
        let (in_flight, queued) = (AtomicUsize::new(0), AtomicUsize::new(0));
        Self { connection, requests: batcher, in_flight, sharing, queued }
    }

    /// Sends a command, and waits for its answer. Not an `async fn`, whose future would hold the command twice.
    pub(crate) fn ask(&self, call: Call) -> impl Future<Output = RedisResult<Value>> + Send {
        let in_flight = Counted::begin(&self.in_flight);
        let asked = if call.ownership == Ownership::Moving {
            Either::Left(self.asking(call).boxed())
        } else if self.may_leave_at_once() && call.wait.is_none() {
            // Boxed: there are few of these, and each of many others would have the space for it.
            Either::Left(self.alone(call.command).boxed())
        } else {
            Either::Right(self.queued(call))
        };
        asked.map(move |reply| {
            drop(in_flight);
            reply?.extract_error()
        })
    }

    /// Whether a request, which is counted already, would overtake none, and there are too few to send it together with.
    fn may_leave_at_once(&self) -> bool {
        self.in_flight.load(Ordering::Relaxed) <= self.sharing.beside_max + 1
            && self.queued.load(Ordering::Relaxed) == 0
    }

    fn alone(&self, command: Cmd) -> impl Future<Output = RedisResult<Value>> + Send + use<> {
        let mut connection = self.connection.clone();
        // A task that has used up its time slice would otherwise lose its place here to later requests.
        async move { unconstrained(connection.req_packed_command(&command)).await }
    }

    /// In one write with what has to come right before it.
    fn asking(&self, call: Call) -> impl Future<Output = RedisResult<Value>> + Send + use<> {
        let mut connection = self.connection.clone();
        async move {
            let all = call.pipeline();
            call.reply_of(connection.req_packed_commands(&all, 0, all.len()).await?)
        }
    }

    fn queued(&self, call: Call) -> impl Future<Output = RedisResult<Value>> + Send {
        let (answer, answered) = oneshot::channel();
        let queued = Counted::begin(&self.queued);
        // What cannot be sent is dropped, and so answered.
        _ = self.requests.send(Request { call, answer });
        answered.map(move |reply| {
            drop(queued);
            reply.unwrap_or_else(|_| Err(io::Error::from(io::ErrorKind::BrokenPipe).into()))
        })
    }
}

async fn send_all(mut requests: mpsc::UnboundedReceiver<Request>, connection: MultiplexedConnection, together: usize) {
    let mut in_flight = FuturesUnordered::new();
    let (mut waiting, mut unanswered, mut delivered) = (Vec::new(), 0, 0);
    // Writes that wait for replicas. The server runs nothing else of this connection meanwhile, so what is sent later can as
    // well be collected here, and its wait measured when it begins.
    let mut waits = 0;
    let many = together / 2;
    loop {
        tokio::select! {
            biased;
            count = requests.recv_many(&mut waiting, GROUPED_MAX), if waits == 0 => {
                if count == 0 {
                    break;
                }
                // While many wait for answers, others have just got theirs and are about to ask for more.
                if count < many && unanswered >= many {
                    yield_now().await;
                    waiting.extend(iter::from_fn(|| requests.try_recv().ok()).take(GROUPED_MAX));
                }
            }
            Some(Size { requests, waits: over }) = in_flight.next(), if !in_flight.is_empty() => {
                unanswered -= requests;
                delivered += requests;
                waits -= over;
                // Measured: if all answers are delivered before the next requests are sent, client and server take
                // turns, at half the rate.
                if delivered >= many {
                    delivered = 0;
                    yield_now().await;
                }
            }
        }
        if waiting.is_empty() {
            continue;
        }
        let mut writes = writes(mem::take(&mut waiting), together.max(unanswered / SHARE_OF_A_WRITE)).into_iter();
        while waits == 0
            && let Some(write) = writes.next()
        {
            let size = write.size();
            // A task that has used up its time slice would otherwise turn it away, and send later ones first.
            let mut sending = Box::pin(unconstrained(write.send(connection.clone())));
            // The first poll sends it. Left to the set, it would come after the answers that are there already.
            if sending.as_mut().now_or_never().is_none() {
                unanswered += size.requests;
                waits += size.waits;
                in_flight.push(sending);
            }
        }
        waiting.extend(writes.flat_map(Write::requests));
    }
    while in_flight.next().await.is_some() {}
}
