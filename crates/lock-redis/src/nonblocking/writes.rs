//! Requests of a tokio client that leave in one write, those of one verb for different locks as one command.

use redis::aio::{ConnectionLike, MultiplexedConnection};
use redis::{Pipeline, RedisResult, Value};
use tokio::sync::oneshot;

use crate::runs::{self, Run};

/// Who waits for the answer.
type Asker = oneshot::Sender<RedisResult<Value>>;
pub(crate) type Request = runs::Request<Asker>;

/// Runs of requests that leave in one write.
pub(crate) struct Write(Vec<Run<Asker>>);

/// The size of a write.
#[derive(Clone, Copy)]
pub(crate) struct Size {
    /// How many requests there are.
    pub(crate) requests: usize,
    /// One if it waits for replicas.
    pub(crate) waits: usize,
}

/// Divides requests into writes of so many at most. What waits for replicas is not divided: all of it shares one wait.
pub(crate) fn writes(mut requests: Vec<Request>, together: usize) -> Vec<Write> {
    requests.retain(|request| !request.answer.is_closed());
    let runs = Run::of(requests);
    let together = Run::wait(&runs).map_or(together, |_| usize::MAX);
    let (mut writes, mut room) = (Vec::<Write>::new(), 0);
    for run in runs {
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
        Size { requests: self.0.iter().map(Run::len).sum(), waits: Run::wait(&self.0).iter().count() }
    }

    /// Its requests, if it is not to be sent now.
    pub(crate) fn requests(self) -> impl Iterator<Item = Request> {
        self.0.into_iter().flat_map(|run| run.0)
    }

    /// Sends the requests, and delivers the answers. Returns how many there were.
    pub(crate) async fn send(self, mut connection: MultiplexedConnection) -> Size {
        let (size, Self(mut runs)) = (self.size(), self);
        let (mut pipeline, wait) = (Pipeline::with_capacity(runs.len() + 1), Run::wait(&runs));
        runs.iter_mut().for_each(|run| _ = pipeline.add_command(run.command()));
        wait.iter().for_each(|wait| _ = pipeline.add_command(wait.command()));
        let (replies, waited) = match connection.req_packed_commands(&pipeline, 0, pipeline.len()).await {
            Ok(mut replies) => {
                let waited = wait.and_then(|_| replies.pop()).map(Ok);
                (replies.into_iter().map(Ok).collect(), waited)
            }
            Err(error) => (vec![Err(error); runs.len()], None),
        };
        let answers = runs.into_iter().zip(replies).flat_map(|(run, reply)| run.answers(reply, waited.as_ref()));
        answers.for_each(|(asker, answer)| _ = asker.send(answer));
        size
    }
}
