//! The requests that wait to be sent over one connection: all of them leave in one write.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use futures_util::stream::{FuturesUnordered, StreamExt};
use redis::aio::{ConnectionLike, MultiplexedConnection};
use redis::{Cmd, Pipeline, RedisResult, Value};
use tokio::sync::{mpsc, oneshot};
use tokio::task::unconstrained;

/// How many requests are sent together at most, since the first of them waits for the answer to the last. Measured:
/// when all requests of 64 tasks were sent together, client and server took turns, at half the rate.
pub(crate) const TOGETHER_MAX: usize = 32;
/// The same for a node of a quorum. There the client can turn to other nodes meanwhile, and small batches cost all of
/// them time.
pub(crate) const TOGETHER_AT_NODES_MAX: usize = 128;

/// Sends requests over one connection, in the order in which they were handed over.
#[derive(Clone)]
pub(crate) struct Batcher {
    connection: MultiplexedConnection,
    requests: mpsc::UnboundedSender<Request>,
    under_way: Arc<AtomicUsize>,
}

struct Request {
    command: Cmd,
    answer: oneshot::Sender<RedisResult<Value>>,
}

/// Counts a request for as long as it is under way.
struct UnderWay<'a>(&'a AtomicUsize);

impl<'a> UnderWay<'a> {
    /// Begins a request, and returns how many others are under way.
    fn begin(count: &'a AtomicUsize) -> (Self, usize) {
        let others = count.fetch_add(1, Ordering::Relaxed);
        (Self(count), others)
    }
}

impl Drop for UnderWay<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Batcher {
    /// Starts the task that sends, at most this many requests together. It ends with the last handle, once everything
    /// was answered.
    pub(crate) fn new(connection: MultiplexedConnection, together: usize) -> Self {
        let (batcher, requests) = mpsc::unbounded_channel();
        tokio::spawn(send_all(requests, connection.clone(), together));
        Self { connection, requests: batcher, under_way: Arc::default() }
    }

    /// Sends a command and waits for its answer.
    pub(crate) async fn ask(&self, command: Cmd) -> RedisResult<Value> {
        let (_under_way, others) = UnderWay::begin(&self.under_way);
        // Nothing can be overtaken, and there is nothing to send together with. A task that has used up its time slice
        // would otherwise lose its place here to later requests.
        if others == 0 {
            let mut connection = self.connection.clone();
            return unconstrained(connection.req_packed_command(&command)).await?.extract_error();
        }
        let (answer, answered) = oneshot::channel();
        // What cannot be sent is dropped, and so answered.
        _ = self.requests.send(Request { command, answer });
        answered.await.unwrap_or_else(|_| Err(io::Error::from(io::ErrorKind::BrokenPipe).into()))?.extract_error()
    }
}

async fn send_all(mut requests: mpsc::UnboundedReceiver<Request>, connection: MultiplexedConnection, together: usize) {
    let mut under_way = FuturesUnordered::new();
    let mut waiting = Vec::new();
    loop {
        tokio::select! {
            biased;
            count = requests.recv_many(&mut waiting, together) => {
                if count == 0 {
                    break;
                }
                under_way.push(send(connection.clone(), std::mem::take(&mut waiting)));
            }
            Some(()) = under_way.next(), if !under_way.is_empty() => {}
        }
    }
    while under_way.next().await.is_some() {}
}

async fn send(mut connection: MultiplexedConnection, mut requests: Vec<Request>) {
    requests.retain(|request| !request.answer.is_closed());
    if requests.len() > 1 {
        return send_together(connection, requests).await;
    }
    if let Some(Request { command, answer }) = requests.pop() {
        _ = answer.send(connection.req_packed_command(&command).await);
    }
}

async fn send_together(mut connection: MultiplexedConnection, requests: Vec<Request>) {
    let mut pipeline = Pipeline::with_capacity(requests.len());
    let mut answers = Vec::with_capacity(requests.len());
    for Request { command, answer } in requests {
        pipeline.add_command(command);
        answers.push(answer);
    }
    match connection.req_packed_commands(&pipeline, 0, answers.len()).await {
        Ok(values) => answers.into_iter().zip(values).for_each(|(answer, value)| _ = answer.send(Ok(value))),
        Err(error) => answers.into_iter().for_each(|answer| _ = answer.send(Err(error.clone()))),
    }
}
