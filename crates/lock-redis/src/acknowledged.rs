//! Claims and renewals that count only once replicas have acknowledged them. No I/O.
//!
//! A grant that too few replicas have is an error whose outcome is unknown, so the machine gives it back, or asks again under the
//! same owner. A refusal needs no acknowledgement: it gives nothing that a promoted replica could give to somebody else.

use lock_core::{Answer, Operation, Renewed};
use redis::Value;

use crate::failure::Failure;
use crate::replicas::{Wait, without_wait};
use crate::span::Span;
use crate::wire::{Call, Line, Question, Retry, Wire};

/// A question whose answer counts once enough replicas have acknowledged it, if the client's URL says so.
pub(crate) struct Acknowledged<Q> {
    question: Q,
    wait: Option<Wait>,
}

/// An answer that may give somebody a lease, or more time with it.
pub(crate) trait Giving {
    fn gives(&self) -> bool;
}

impl Giving for Answer {
    fn gives(&self) -> bool {
        matches!(self, Self::Granted { .. })
    }
}

impl Giving for Vec<Renewed> {
    fn gives(&self) -> bool {
        self.iter().any(|renewed| matches!(renewed, Renewed::Renewed { .. }))
    }
}

impl<Q> Acknowledged<Q> {
    /// A question with this much time for both: the server's answer, and the replicas' acknowledgements.
    pub(crate) fn new(question: Q, wire: &Wire, span: Span) -> Self {
        let wait = wire.replicas.map(|replicas| Wait { replicas, until: span.until });
        Self { question, wait }
    }
}

impl<Q: Question> Question for Acknowledged<Q>
where
    Q::Answer: Giving,
{
    type Answer = Q::Answer;

    fn operation(&self) -> Operation {
        self.question.operation()
    }

    fn call(&self, line: Line<'_>) -> Result<Call, Failure> {
        Ok(Call { wait: self.wait, ..self.question.call(line)? })
    }

    fn read(&self, line: Line<'_>, reply: Value) -> Result<Q::Answer, Failure> {
        let Some(Wait { replicas, .. }) = self.wait else { return self.question.read(line, reply) };
        let (own, acknowledged) = without_wait(&line.wire.server, reply)?;
        let answer = self.question.read(line, own)?;
        if !answer.gives() {
            return Ok(answer);
        }
        let acknowledged = acknowledged?;
        if acknowledged < u64::from(replicas.get()) {
            return Err(Failure::too_few_replicas(acknowledged, replicas.get(), line.server_info.replicas));
        }
        Ok(answer)
    }

    fn retry(&self) -> Retry {
        self.question.retry()
    }
}
