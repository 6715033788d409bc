//! Requests of a tokio client that leave in one write, those of one verb for different locks as one command: how they are sent, and
//! how each gets its answer.

use std::mem;
use std::slice;

use redis::aio::{ConnectionLike, MultiplexedConnection};
use redis::{Cmd, Pipeline, RedisResult, Value};
use tokio::sync::oneshot;

use crate::replicas::Wait;
use crate::runs::{apart, grouped, together};
use crate::script::Many;
use crate::wire::Call;

pub(crate) struct Request {
    pub(crate) call: Call,
    pub(crate) answer: oneshot::Sender<RedisResult<Value>>,
}

/// Runs of requests that leave in one write.
pub(crate) struct Write(Vec<Run>);

/// The size of a write.
#[derive(Clone, Copy)]
pub(crate) struct Size {
    /// How many requests there are.
    pub(crate) requests: usize,
    /// One if it waits for replicas.
    pub(crate) waits: usize,
}

/// Divides requests into writes of so many at most. What waits for replicas is not divided: all of it shares one wait.
pub(crate) fn writes(requests: Vec<Request>, together: usize) -> Vec<Write> {
    let together = wait_of(requests.iter()).map_or(together, |_| usize::MAX);
    let (mut writes, mut room) = (Vec::<Write>::new(), 0);
    for run in runs(requests) {
        let length = run.len();
        match writes.last_mut() {
            Some(Write(runs)) if length <= room => runs.push(run),
            Some(_) | None => {
                writes.push(Write(vec![run]));
                room = together;
            }
        }
        room = room.saturating_sub(length);
    }
    writes
}

impl Write {
    pub(crate) fn size(&self) -> Size {
        let requests = self.0.iter().map(Run::len).sum();
        Size { requests, waits: wait_of(self.0.iter().flat_map(Run::each)).iter().count() }
    }

    /// Its requests, if it is not to be sent now.
    pub(crate) fn requests(self) -> impl Iterator<Item = Request> {
        self.0.into_iter().flat_map(Run::requests)
    }

    /// Sends the requests, and delivers the answers. Returns how many there were.
    pub(crate) async fn send(self, connection: MultiplexedConnection) -> Size {
        let size = self.size();
        send_runs(connection, self.0).await;
        size
    }
}

/// One wait for replicas for all of these requests, if any of them has to wait.
fn wait_of<'a>(requests: impl Iterator<Item = &'a Request>) -> Option<Wait> {
    Wait::for_all(requests.filter_map(|request| request.call.wait))
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

async fn send_runs(mut connection: MultiplexedConnection, mut runs: Vec<Run>) {
    let mut pipeline = Pipeline::with_capacity(runs.len() + 1);
    let wait = wait_of(runs.iter().flat_map(Run::each));
    runs.iter_mut().for_each(|run| _ = pipeline.add_command(run.command()));
    match exchange(&mut connection, pipeline, wait).await {
        Ok((replies, waited)) => {
            runs.into_iter().zip(replies).for_each(|(run, reply)| run.answered(reply, waited.as_ref()));
        }
        Err(error) => {
            runs.into_iter().flat_map(Run::requests).for_each(|request| request.answered(Err(error.clone()), None));
        }
    }
}

/// Sends commands, and returns the replies, and that to the wait for replicas if there is one.
async fn exchange(
    connection: &mut MultiplexedConnection,
    mut pipeline: Pipeline,
    wait: Option<Wait>,
) -> RedisResult<(Vec<Value>, Option<RedisResult<Value>>)> {
    wait.iter().for_each(|wait| _ = pipeline.add_command(wait.command()));
    let mut replies = connection.req_packed_commands(&pipeline, 0, pipeline.len()).await?;
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

    fn each(&self) -> &[Request] {
        match self {
            Self::Alone(request) => slice::from_ref(request),
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
            Self::Together(many, requests) => {
                let command = together(many, requests.iter().map(|request| &request.call));
                // Many may be in flight, and this has their contents.
                requests.iter_mut().for_each(|request| drop(request.command()));
                command
            }
        }
    }

    /// Gives each request its answer. If the server did not run them, each one is told, and asks again alone.
    fn answered(self, reply: Value, waited: Option<&RedisResult<Value>>) {
        match self {
            Self::Alone(request) => request.answered(Ok(reply), waited),
            Self::Together(many, requests) => {
                let answers = apart(many, reply, requests.len());
                requests.into_iter().zip(answers).for_each(|(request, answer)| request.answered(Ok(answer), waited));
            }
        }
    }
}
