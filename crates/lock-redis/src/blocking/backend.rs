//! What the machine asks of every backend, on threads.

use std::sync::Arc;
use std::time::Duration;

use lock_core::latch::{Request, Seen};
use lock_core::limit::{self, Usage};
use lock_core::{
    Answer, Backend, BackendError, BlockingBackend, BlockingInspect, BlockingLatch, BlockingLimit, Capabilities, Claim,
    Durability, EventSink, Fenced, Isolation, Lease, Location, LockName, Operation, ReleaseRequest, Released, Renewed,
};

use super::Redis;
use super::source::Source;
use crate::acknowledged::Acknowledged;
use crate::renewal::Renewal;
use crate::span::Span;
use crate::{ABILITIES, BACKEND, MODES};

impl Backend for Redis {
    fn capabilities(&self) -> Capabilities {
        let redis = Capabilities::new(BACKEND, self.wire.waiting(), Durability::ClockFloor);
        let redis = redis.with_shared_counter().with_modes(MODES).with_abilities(ABILITIES);
        match &self.source {
            Source::Own(_) => redis.with_isolation(Isolation::Isolated),
            #[cfg(feature = "r2d2")]
            Source::Pool(_) => redis,
            #[cfg(feature = "r2d2")]
            Source::PoolAndStack(..) => redis.with_isolation(Isolation::Isolated),
        }
    }

    fn listen(&self, sink: EventSink) {
        self.wire.listen(sink);
    }

    fn locate(&self, name: &LockName) -> Option<Location> {
        self.wire.locate(name)
    }

    fn holds(&self, _lease: &Lease) {
        self.listen_in_time();
    }

    fn warnings(&self) -> Vec<String> {
        self.warnings.clone()
    }
}

impl BlockingBackend for Redis {
    fn for_keeper(self: Arc<Self>) -> Arc<dyn BlockingBackend> {
        Arc::new(self.another())
    }

    fn acquire(&self, claim: &Claim, within: Duration) -> Result<Answer, BackendError> {
        let span = Span::from_now(within);
        let asked = |claim: &Claim| self.answer(&Acknowledged::new(claim, &self.wire, span), span);
        self.listening(span).claim(claim, asked).map_err(|failure| failure.into_error(Operation::Acquire))
    }

    fn renew(&self, leases: &[Lease], within: Duration) -> Result<Vec<Renewed>, BackendError> {
        let span = Span::from_now(within);
        let mut answers = Vec::with_capacity(leases.len());
        for batch in leases.chunks(self.wire.locks_per_script()) {
            match self.answer(&Acknowledged::new(Renewal(batch), &self.wire, span), span) {
                Ok(renewed) => answers.extend(renewed),
                Err(failure) if answers.is_empty() => return Err(failure.into_error(Operation::Renew)),
                Err(failure) => return Err(failure.after_a_part().into_error(Operation::Renew)),
            }
        }
        Ok(answers)
    }

    fn release(&self, request: &ReleaseRequest, within: Duration) -> Result<Released, BackendError> {
        self.ask(Acknowledged::release(request, &self.wire, Span::from_now(within)), within)
    }

    fn fence(&self, lease: &Lease, within: Duration) -> Result<Fenced, BackendError> {
        self.ask(lease, within)
    }

    fn inspect(&self) -> Option<&dyn BlockingInspect> {
        Some(self)
    }

    fn latch(&self) -> Result<&dyn BlockingLatch, BackendError> {
        Ok(self)
    }

    fn limit(&self) -> Result<&dyn BlockingLimit, BackendError> {
        Ok(self)
    }
}

impl BlockingLatch for Redis {
    fn ask(&self, request: &Request, within: Duration) -> Result<Seen, BackendError> {
        let span = Span::from_now(within);
        let asked = || self.answer(&request, span);
        self.listening(span).latch(request, asked).map_err(|failure| failure.into_error(Operation::Latch))
    }
}

impl BlockingLimit for Redis {
    fn ask(&self, request: &limit::Request, within: Duration) -> Result<Usage, BackendError> {
        Self::ask(self, Acknowledged::limit(request, &self.wire, Span::from_now(within)), within)
    }
}
