//! The requests that wait to be sent over one connection: a few dozen leave in one write, and those of one verb for
//! different locks as one command.

use std::io;
use std::iter;
use std::mem;
use std::sync::atomic::{AtomicUsize, Ordering};

use futures_util::future::{Either, FutureExt};
use futures_util::stream::{FuturesUnordered, StreamExt};
use redis::aio::{ConnectionLike, MultiplexedConnection};
use redis::{Cmd, Pipeline, RedisResult, Value};
use tokio::sync::{mpsc, oneshot};
use tokio::task::{unconstrained, yield_now};

use crate::replicas::Wait;
use crate::runs::{NOT_RUN, apart, grouped, together};
use crate::script::Many;
use crate::wire::{Call, load};

/// How many requests are sent in one write at most, since the first of them waits for the answer to the last. With several
/// writes under way, the server answers one while the client prepares another.
pub(crate) const TOGETHER_MAX: usize = 32;
/// The same for a node of a quorum. There the client can turn to other nodes meanwhile, and small batches cost all of
/// them time.
pub(crate) const TOGETHER_AT_NODES_MAX: usize = 128;
/// How many waiting requests are grouped at a time. Chosen: enough for full runs of several verbs, and little to look at.
const GROUPED_MAX: usize = 128;

/// Sends requests over one connection. Those for one lock take effect in the order in which they were handed over.
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

    /// Sends a command and waits for its answer. Not an `async fn`, whose future would hold the command twice.
    pub(crate) fn ask(&self, call: Call) -> impl Future<Output = RedisResult<Value>> + Send {
        let (under_way, others) = UnderWay::begin(&self.under_way);
        // Nothing can be overtaken, and there is nothing to send together with.
        let asked = if others == 0 && call.wait.is_none() {
            Either::Left(self.alone(call.command))
        } else {
            Either::Right(self.queued(call))
        };
        asked.map(move |reply| {
            drop(under_way);
            reply?.extract_error()
        })
    }

    fn alone(&self, command: Cmd) -> impl Future<Output = RedisResult<Value>> + Send + use<> {
        let mut connection = self.connection.clone();
        // A task that has used up its time slice would otherwise lose its place here to later requests.
        async move { unconstrained(connection.req_packed_command(&command)).await }
    }

    fn queued(&self, call: Call) -> impl Future<Output = RedisResult<Value>> + Send + use<> {
        let (answer, answered) = oneshot::channel();
        // What cannot be sent is dropped, and so answered.
        _ = self.requests.send(Request { call, answer });
        answered.map(|reply| reply.unwrap_or_else(|_| Err(io::Error::from(io::ErrorKind::BrokenPipe).into())))
    }
}

async fn send_all(mut requests: mpsc::UnboundedReceiver<Request>, connection: MultiplexedConnection, together: usize) {
    let mut under_way = FuturesUnordered::new();
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
            Some(Size { count, waits: over }) = under_way.next(), if !under_way.is_empty() => {
                unanswered -= count;
                delivered += count;
                waits -= over;
                // Measured: if all answers are delivered before the next requests are sent, client and server take
                // turns, at half the rate.
                if delivered >= many {
                    delivered = 0;
                    yield_now().await;
                }
            }
        }
        // Waits are shared by as many as possible.
        let together = if wait_of(waiting.iter()).is_some() { GROUPED_MAX } else { together };
        let mut writes = writes(runs(mem::take(&mut waiting)), together).into_iter();
        while waits == 0
            && let Some(write) = writes.next()
        {
            let size = Size::of(&write);
            // A task that has used up its time slice would otherwise turn it away, and send later ones first.
            let mut sending = Box::pin(unconstrained(send(connection.clone(), write)));
            // The first poll sends it. Left to the set, it would come after the answers that are there already.
            if sending.as_mut().now_or_never().is_none() {
                unanswered += size.count;
                waits += size.waits;
                under_way.push(sending);
            }
        }
        waiting.extend(writes.flatten().flat_map(Run::requests));
    }
    while under_way.next().await.is_some() {}
}

/// Divides runs into writes of so many requests at most.
fn writes(runs: Vec<Run>, together: usize) -> Vec<Vec<Run>> {
    let (mut writes, mut room) = (Vec::<Vec<Run>>::new(), 0);
    for run in runs {
        let length = run.len();
        match writes.last_mut() {
            Some(write) if length <= room => write.push(run),
            Some(_) | None => {
                writes.push(vec![run]);
                room = together;
            }
        }
        room = room.saturating_sub(length);
    }
    writes
}

/// The size of a write.
#[derive(Clone, Copy)]
struct Size {
    count: usize,
    /// One if it waits for replicas.
    waits: usize,
}

impl Size {
    fn of(runs: &[Run]) -> Self {
        let count = runs.iter().map(Run::len).sum();
        Self { count, waits: wait_of(runs.iter().flat_map(Run::each)).iter().count() }
    }
}

/// One wait for replicas for all of these requests, if any of them has to wait.
fn wait_of<'a>(requests: impl Iterator<Item = &'a Request>) -> Option<Wait> {
    Wait::for_all(requests.filter_map(|request| request.call.wait))
}

/// Sends requests in one write, and delivers the answers. Returns how many there were.
async fn send(connection: MultiplexedConnection, runs: Vec<Run>) -> Size {
    let size = Size::of(&runs);
    let left = send_runs(connection.clone(), runs).await;
    if !left.is_empty() {
        send_one_by_one(connection, left).await;
    }
    size
}

/// Requests that are sent as one command.
enum Run {
    Alone(Request),
    Together(&'static Many, Vec<Request>),
}

fn runs(mut requests: Vec<Request>) -> Vec<Run> {
    requests.retain(Request::is_wanted);
    grouped(requests, |request| &request.call).into_iter().filter_map(Run::of).collect()
}

/// Receives the requests that the server refused to run together.
async fn send_runs(mut connection: MultiplexedConnection, mut runs: Vec<Run>) -> Vec<Run> {
    let mut pipeline = Pipeline::with_capacity(runs.len() + 1);
    let wait = wait_of(runs.iter().flat_map(Run::each));
    runs.iter_mut().for_each(|run| _ = pipeline.add_command(run.command()));
    match exchange(&mut connection, pipeline, 0, wait).await {
        Ok((replies, waited)) => {
            let answered = |(run, reply): (Run, Value)| run.answered(reply, waited.as_ref());
            runs.into_iter().zip(replies).filter_map(answered).collect()
        }
        Err(error) => {
            runs.into_iter().flat_map(Run::requests).for_each(|request| request.answered(Err(error.clone()), None));
            Vec::new()
        }
    }
}

/// Loads the scripts for many, in case the server has forgotten them, but does without them this time.
async fn send_one_by_one(mut connection: MultiplexedConnection, runs: Vec<Run>) {
    let mut pipeline = redis::pipe();
    let loads = runs.iter().filter_map(Run::many).map(|many| _ = pipeline.add_command(load(&many.script))).count();
    let mut requests: Vec<_> = runs.into_iter().flat_map(Run::requests).filter(Request::is_wanted).collect();
    let wait = wait_of(requests.iter());
    requests.iter_mut().for_each(|request| _ = pipeline.add_command(request.command()));
    match exchange(&mut connection, pipeline, loads, wait).await {
        Ok((replies, waited)) => {
            requests.into_iter().zip(replies).for_each(|(request, reply)| request.answered(Ok(reply), waited.as_ref()));
        }
        Err(error) => requests.into_iter().for_each(|request| request.answered(Err(error.clone()), None)),
    }
}

/// Sends commands, and returns the replies except the first few, and that to the wait for replicas if there is one.
async fn exchange(
    connection: &mut MultiplexedConnection,
    mut pipeline: Pipeline,
    skipped: usize,
    wait: Option<Wait>,
) -> RedisResult<(Vec<Value>, Option<RedisResult<Value>>)> {
    wait.iter().for_each(|wait| _ = pipeline.add_command(wait.command()));
    let mut replies = connection.req_packed_commands(&pipeline, skipped, pipeline.len() - skipped).await?;
    let waited = wait.and_then(|_| replies.pop()).map(Ok);
    Ok((replies, waited))
}

impl Request {
    fn is_wanted(&self) -> bool {
        !self.answer.is_closed()
    }

    /// The command that asks this alone.
    fn command(&mut self) -> Cmd {
        mem::take(&mut self.call.command)
    }

    fn answered(self, answer: RedisResult<Value>, waited: Option<&RedisResult<Value>>) {
        let answer = self.call.reply(answer, waited);
        _ = self.answer.send(answer);
    }
}

impl Run {
    fn of(mut requests: Vec<Request>) -> Option<Self> {
        match requests.as_slice() {
            [_] => requests.pop().map(Self::Alone),
            several => Some(Self::Together(several.first()?.call.many?, requests)),
        }
    }

    fn len(&self) -> usize {
        match self {
            Self::Alone(_) => 1,
            Self::Together(_, requests) => requests.len(),
        }
    }

    fn many(&self) -> Option<&'static Many> {
        match self {
            Self::Alone(_) => None,
            Self::Together(many, _) => Some(many),
        }
    }

    fn each(&self) -> &[Request] {
        match self {
            Self::Alone(request) => std::slice::from_ref(request),
            Self::Together(_, requests) => requests,
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
    fn answered(self, reply: Value, waited: Option<&RedisResult<Value>>) -> Option<Self> {
        match (self, reply) {
            (Self::Alone(request), reply) => request.answered(Ok(reply), waited),
            (run @ Self::Together(..), Value::ServerError(error)) if NOT_RUN.contains(&error.code()) => {
                return Some(run);
            }
            (Self::Together(_, requests), reply) => {
                let answers = apart(reply, requests.len());
                requests.into_iter().zip(answers).for_each(|(request, answer)| request.answered(Ok(answer), waited));
            }
        }
        None
    }
}
