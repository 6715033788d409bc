//! Claims and renewals, locks that are kept and limits: they count only once replicas have acknowledged them, or once they are on disk.
//! No I/O.
//!
//! A grant that too few replicas have is an error whose outcome is unknown, so the machine gives it back, or asks again under the
//! same owner. A refusal needs no acknowledgement: it gives nothing that a promoted replica could give to somebody else.

use std::time::Duration;

use lock_core::limit::{self, Act, Usage};
use lock_core::{Answer, Operation, ReleaseRequest, Released, Renewed};
use redis::Value;

use super::simple::Simple;
use crate::failure::Failure;
use crate::replicas::{Copies, Wait, without_wait};
use crate::span::Span;
use crate::wire::{Call, Line, Question, Retry, Wire};

/// Whether the server can wait until what it wrote is on disk: to check on connecting, if grants have to be.
pub(crate) fn disk_check(copies: Option<Copies>) -> Option<Simple<()>> {
    let copies = copies.filter(|copies| copies.fsync().is_some())?;
    let wait = copies.command(Duration::from_millis(1));
    Some(Simple::repeatable(Operation::Connect, wait, |_line, _reply| Ok(())))
}

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

/// A lock that is kept: nobody may have it for a while, which a promoted replica has to know. Other releases give nothing.
impl Giving for Released {
    fn gives(&self) -> bool {
        *self == Self::Released
    }
}

/// A limit that was set. What is only looked at does not wait.
impl Giving for Usage {
    fn gives(&self) -> bool {
        true
    }
}

impl<Q> Acknowledged<Q> {
    /// A question with this much time for both: the server's answer, and the replicas' acknowledgements.
    pub(crate) fn new(question: Q, wire: &Wire, span: Span) -> Self {
        let wait = wire.copies.map(|copies| Wait { copies, until: span.until });
        Self { question, wait }
    }
}

impl<'a> Acknowledged<&'a ReleaseRequest> {
    /// A release, which waits for nobody unless the lock is kept.
    pub(crate) fn release(request: &'a ReleaseRequest, wire: &Wire, span: Span) -> Self {
        let released = Self::new(request, wire, span);
        if request.keep.is_some() { released } else { Self { wait: None, ..released } }
    }
}

impl<'a> Acknowledged<&'a limit::Request> {
    /// A request about a limit, which waits for nobody unless it sets one.
    pub(crate) fn limit(request: &'a limit::Request, wire: &Wire, span: Span) -> Self {
        let asked = Self::new(request, wire, span);
        match request.act {
            Act::Set(_) => asked,
            Act::Look => Self { wait: None, ..asked },
        }
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
        let Some(Wait { copies, .. }) = self.wait else { return self.question.read(line, reply) };
        let (own, had) = without_wait(&line.wire.server, reply)?;
        let answer = self.question.read(line, own)?;
        if !answer.gives() {
            return Ok(answer);
        }
        copies.check(had?, line.server_info.replicas)?;
        Ok(answer)
    }

    fn retry(&self) -> Retry {
        self.question.retry()
    }
}
