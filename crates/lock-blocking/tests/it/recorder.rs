//! A backend that writes down what is asked of it, in order.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use lock_core::{
    Answer, Backend, BackendError, BlockingBackend, Capabilities, Claim, EventSink, Fenced, Lease, Owner, Parting,
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
    backend: Arc<dyn BlockingBackend>,
    calls: Calls,
}

impl Recorder {
    pub(crate) fn new(backend: Arc<dyn BlockingBackend>) -> (Self, Calls) {
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

impl BlockingBackend for Recorder {
    fn for_keeper(self: Arc<Self>) -> Arc<dyn BlockingBackend> {
        self
    }

    fn acquire(&self, claim: &Claim, within: Duration) -> Result<Answer, BackendError> {
        self.write_down(Call::Acquire(claim.owner));
        self.backend.acquire(claim, within)
    }

    fn renew(&self, leases: &[Lease], within: Duration) -> Result<Vec<Renewed>, BackendError> {
        self.write_down(Call::Renew(leases.iter().map(|lease| lease.owner).collect()));
        self.backend.renew(leases, within)
    }

    fn release(&self, parting: &Parting, within: Duration) -> Result<Released, BackendError> {
        self.write_down(Call::Release(parting.owner));
        self.backend.release(parting, within)
    }

    fn fence(&self, lease: &Lease, within: Duration) -> Result<Fenced, BackendError> {
        self.backend.fence(lease, within)
    }
}
