//! A backend that writes down what is asked of it, in order.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use lock_core::{
    Answer, AsyncBackend, Backend, BackendError, Capabilities, Claim, EventSink, Fenced, Lease, Owner, Parting,
    Released, Renewed,
};

/// What was asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Call {
    Acquire(Owner),
    Renew(Vec<Owner>),
    Release(Owner),
}

/// The calls so far.
pub(crate) type Calls = Arc<Mutex<Vec<Call>>>;

#[derive(Clone, Debug)]
pub(crate) struct Recorder {
    backend: Arc<dyn AsyncBackend>,
    calls: Calls,
}

impl Recorder {
    pub(crate) fn new(backend: Arc<dyn AsyncBackend>) -> (Self, Calls) {
        let calls = Calls::default();
        (Self { backend, calls: Arc::clone(&calls) }, calls)
    }

    fn write_down(&self, call: Call) {
        self.calls.lock().unwrap().push(call);
    }
}

impl Backend for Recorder {
    fn capabilities(&self) -> Capabilities {
        self.backend.capabilities()
    }

    fn listen(&self, sink: EventSink) {
        self.backend.listen(sink);
    }
}

#[async_trait]
impl AsyncBackend for Recorder {
    fn for_keeper(self: Arc<Self>) -> Arc<dyn AsyncBackend> {
        self
    }

    async fn acquire(&self, claim: &Claim, within: Duration) -> Result<Answer, BackendError> {
        self.write_down(Call::Acquire(claim.owner));
        self.backend.acquire(claim, within).await
    }

    async fn renew(&self, leases: &[Lease], within: Duration) -> Result<Vec<Renewed>, BackendError> {
        self.write_down(Call::Renew(leases.iter().map(|lease| lease.owner).collect()));
        self.backend.renew(leases, within).await
    }

    async fn release(&self, parting: &Parting, within: Duration) -> Result<Released, BackendError> {
        self.write_down(Call::Release(parting.owner));
        self.backend.release(parting, within).await
    }

    async fn fence(&self, lease: &Lease, within: Duration) -> Result<Fenced, BackendError> {
        self.backend.fence(lease, within).await
    }
}
