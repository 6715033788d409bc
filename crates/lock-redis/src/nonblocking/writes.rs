//! Requests of a tokio client that leave in one write, those of one verb for different locks as one command: how they are sent, and
//! how each gets its answer.

use std::mem;

use redis::aio::{ConnectionLike, MultiplexedConnection};
use redis::{Cmd, Pipeline, RedisResult, Value};
use tokio::sync::oneshot;

use crate::replicas::Wait;
use crate::runs::{apart, grouped, many, together};
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
        let length = run.0.len();
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
        let requests = self.0.iter().map(|run| run.0.len()).sum();
        Size { requests, waits: wait_of(self.0.iter().flat_map(|run| &run.0)).iter().count() }
    }

    /// Its requests, if it is not to be sent now.
    pub(crate) fn requests(self) -> impl Iterator<Item = Request> {
        self.0.into_iter().flat_map(|run| run.0)
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
struct Run(Vec<Request>);

fn runs(mut requests: Vec<Request>) -> impl Iterator<Item = Run> {
    requests.retain(|request| !request.answer.is_closed());
    grouped(requests, |request| &request.call).into_iter().map(Run)
}

async fn send_runs(mut connection: MultiplexedConnection, mut runs: Vec<Run>) {
    let mut pipeline = Pipeline::with_capacity(runs.len() + 1);
    let wait = wait_of(runs.iter().flat_map(|run| &run.0));
    runs.iter_mut().for_each(|run| _ = pipeline.add_command(run.command()));
    match exchange(&mut connection, pipeline, wait).await {
        Ok((replies, waited)) => {
            runs.into_iter().zip(replies).for_each(|(run, reply)| run.answered(reply, waited.as_ref()));
        }
        Err(error) => {
            runs.into_iter().flat_map(|run| run.0).for_each(|request| request.answered(Err(error.clone()), None));
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
    /// The script for all of them, unless there is one request.
    fn many(&self) -> Option<&'static Many> {
        many(self.0.iter().map(|request| &request.call))
    }

    fn command(&mut self) -> Cmd {
        let joined = self.many().map(|many| together(many, self.0.iter().map(|request| &request.call)));
        // Many may be in flight, and a joined command has the contents of all.
        let own = self.0.iter_mut().map(Request::command).last();
        joined.or(own).unwrap_or_default()
    }

    /// Gives each request its answer. If the server did not run them, each one gets the error, and is sent again alone.
    fn answered(self, reply: Value, waited: Option<&RedisResult<Value>>) {
        let answers = match self.many() {
            Some(many) => apart(many, reply, self.0.len()),
            None => vec![reply],
        };
        self.0.into_iter().zip(answers).for_each(|(request, answer)| request.answered(Ok(answer), waited));
    }
}
