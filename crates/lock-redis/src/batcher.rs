//! The requests that wait to be sent over one connection: all of them leave in one write, and those of one verb for
//! different locks as one command.

use std::io;
use std::sync::atomic::{AtomicUsize, Ordering};

use futures_util::stream::{FuturesUnordered, StreamExt};
use redis::aio::{ConnectionLike, MultiplexedConnection};
use redis::{Cmd, Pipeline, RedisResult, Value};
use tokio::sync::{mpsc, oneshot};
use tokio::task::unconstrained;

use crate::runs::{NOT_RUN, apart, first_run, together};
use crate::script::Many;
use crate::wire::{Call, load};

/// How many requests are sent together at most, since the first of them waits for the answer to the last. Measured:
/// when all requests of 64 tasks were sent together, client and server took turns, at half the rate.
pub(crate) const TOGETHER_MAX: usize = 32;
/// The same for a node of a quorum. There the client can turn to other nodes meanwhile, and small batches cost all of
/// them time.
pub(crate) const TOGETHER_AT_NODES_MAX: usize = 128;

/// Sends requests over one connection, in the order in which they were handed over.
pub(crate) struct Batcher {
    connection: MultiplexedConnection,
    requests: mpsc::UnboundedSender<Request>,
    under_way: AtomicUsize,
}

struct Request {
    call: Call,
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
        Self { connection, requests: batcher, under_way: AtomicUsize::new(0) }
    }

    /// Sends a command and waits for its answer.
    pub(crate) async fn ask(&self, call: Call) -> RedisResult<Value> {
        let (_under_way, others) = UnderWay::begin(&self.under_way);
        // Nothing can be overtaken, and there is nothing to send together with. A task that has used up its time slice
        // would otherwise lose its place here to later requests.
        if others == 0 {
            let mut connection = self.connection.clone();
            return unconstrained(connection.req_packed_command(&call.command)).await?.extract_error();
        }
        let (answer, answered) = oneshot::channel();
        // What cannot be sent is dropped, and so answered.
        _ = self.requests.send(Request { call, answer });
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
                // A task that has used up its time slice would otherwise turn them away, and poll later ones first.
                under_way.push(unconstrained(send(connection.clone(), std::mem::take(&mut waiting))));
            }
            Some(()) = under_way.next(), if !under_way.is_empty() => {}
        }
    }
    while under_way.next().await.is_some() {}
}

/// Sends requests in one write, and brings the answers.
async fn send(connection: MultiplexedConnection, requests: Vec<Request>) {
    let left = send_runs(connection.clone(), runs(requests)).await;
    if !left.is_empty() {
        send_one_by_one(connection, left).await;
    }
}

/// Requests that are one command.
enum Run {
    Alone(Request),
    Together(&'static Many, Vec<Request>),
}

fn runs(mut requests: Vec<Request>) -> Vec<Run> {
    requests.retain(Request::is_wanted);
    let (mut lengths, mut rest) = (Vec::new(), requests.as_slice());
    while !rest.is_empty() {
        let length = first_run(rest.iter().map(|request| &request.call));
        lengths.push(length);
        rest = rest.get(length..).unwrap_or_default();
    }
    let mut requests = requests.into_iter();
    let run = |length| match requests.next()? {
        first if length == 1 => Some(Run::Alone(first)),
        first => Some(Run::Together(
            first.call.many?,
            [first].into_iter().chain(requests.by_ref().take(length - 1)).collect(),
        )),
    };
    lengths.into_iter().filter_map(run).collect()
}

/// Returns what the server refused to run together.
async fn send_runs(mut connection: MultiplexedConnection, mut runs: Vec<Run>) -> Vec<Run> {
    let mut pipeline = Pipeline::with_capacity(runs.len());
    runs.iter_mut().for_each(|run| _ = pipeline.add_command(run.command()));
    match connection.req_packed_commands(&pipeline, 0, runs.len()).await {
        Ok(replies) => runs.into_iter().zip(replies).filter_map(|(run, reply)| run.answered(reply)).collect(),
        Err(error) => {
            runs.into_iter().flat_map(Run::requests).for_each(|request| request.answered(Err(error.clone())));
            Vec::new()
        }
    }
}

/// Loads the scripts for many, in case the server has forgotten them, but does without them this time.
async fn send_one_by_one(mut connection: MultiplexedConnection, runs: Vec<Run>) {
    let mut pipeline = redis::pipe();
    let loads = runs.iter().filter_map(Run::many).map(|many| _ = pipeline.add_command(load(&many.script))).count();
    let mut requests: Vec<_> = runs.into_iter().flat_map(Run::requests).filter(Request::is_wanted).collect();
    requests.iter_mut().for_each(|request| _ = pipeline.add_command(request.command()));
    match connection.req_packed_commands(&pipeline, loads, requests.len()).await {
        Ok(replies) => requests.into_iter().zip(replies).for_each(|(request, reply)| request.answered(Ok(reply))),
        Err(error) => requests.into_iter().for_each(|request| request.answered(Err(error.clone()))),
    }
}

impl Request {
    fn is_wanted(&self) -> bool {
        !self.answer.is_closed()
    }

    /// The command that asks this alone.
    fn command(&mut self) -> Cmd {
        std::mem::take(&mut self.call.command)
    }

    fn answered(self, answer: RedisResult<Value>) {
        _ = self.answer.send(answer);
    }
}

impl Run {
    fn many(&self) -> Option<&'static Many> {
        match self {
            Self::Alone(_) => None,
            Self::Together(many, _) => Some(many),
        }
    }

    fn requests(self) -> Vec<Request> {
        match self {
            Self::Alone(request) => vec![request],
            Self::Together(_, requests) => requests,
        }
    }

    fn command(&mut self) -> Cmd {
        match self {
            Self::Alone(request) => request.command(),
            Self::Together(many, requests) => together(many, requests.iter().map(|request| &request.call)),
        }
    }

    /// Gives each request its answer, or the run back if the server refused to run it.
    fn answered(self, reply: Value) -> Option<Self> {
        match (self, reply) {
            (Self::Alone(request), reply) => request.answered(Ok(reply)),
            (run @ Self::Together(..), Value::ServerError(error)) if NOT_RUN.contains(&error.code()) => {
                return Some(run);
            }
            (Self::Together(_, requests), reply) => {
                let answers = apart(reply, requests.len());
                requests.into_iter().zip(answers).for_each(|(request, answer)| request.answered(Ok(answer)));
            }
        }
        None
    }
}
