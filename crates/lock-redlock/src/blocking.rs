//! The quorum for plain threads: one thread for each node, so that all are asked at once and each in order.
//!
//! `verbs` is that of async code; `threads` asks the nodes.

mod threads;
#[path = "nonblocking/verbs.rs"]
mod verbs;

use std::collections::BTreeMap;
use std::io;
use std::sync::mpsc;
use std::sync::{Arc, Condvar, Mutex};
use std::thread;
use std::time::Duration;

use lock_core::node::BlockingQuorumNode as Node;
use lock_core::{BackendError, Effect, ErrorKind, Operation, Ttl};
use lock_forms::blocking as both;
use lock_host::SharedClock;

use crate::BACKEND;
use crate::epochs::HostEpochs;
use crate::quorum::{Quorum, Request, Verdict, no_verdict};
use threads::{Shared, State, serve};

/// A quorum for threads. The nodes' threads also finish what callers no longer wait for.
#[derive(Debug)]
pub struct Redlock<N> {
    shared: Arc<Shared<N>>,
}

impl<N: Node> Redlock<N> {
    /// As [`of`](Self::of), with the caller's clock.
    ///
    /// # Errors
    /// As [`of`](Self::of).
    pub fn on_clock(nodes: Vec<N>, max_ttl: Ttl, clock: SharedClock) -> Result<Self, BackendError> {
        let addresses: Vec<_> = nodes.iter().map(|node| node.address().to_owned()).collect();
        let quorum = Quorum::new(&addresses, max_ttl, Box::new(HostEpochs))?;
        let state = Arc::new(Mutex::new(State { quorum, callers: BTreeMap::new() }));
        Self::with(nodes, state, Arc::default(), clock).map_err(|error| no_thread(&error))
    }

    fn with(nodes: Vec<N>, state: Arc<Mutex<State>>, quiet: Arc<Condvar>, clock: SharedClock) -> io::Result<Self> {
        let nodes: Arc<[N]> = nodes.into();
        let mut jobs = Vec::with_capacity(nodes.len());
        for index in 0..nodes.len() {
            let (sender, receiver) = mpsc::channel();
            let nodes = Arc::clone(&nodes);
            thread::Builder::new().name("leasehold-node".into()).spawn(move || serve(&nodes[index], &receiver))?;
            jobs.push(sender);
        }
        Ok(Self { shared: Arc::new(Shared { nodes, jobs, state, quiet, clock }) })
    }

    /// Runs a request up to its verdict. The nodes' threads continue with the rest of it.
    fn run(&self, request: Request, within: Duration) -> Result<Verdict, BackendError> {
        let (caller, told) = mpsc::channel();
        self.shared.update(|state, now| {
            let id = state.quorum.begin(now, request, within);
            state.callers.insert(id, caller);
        });
        told.recv().map_err(|_| no_verdict())
    }

    fn knows_its_nodes(&self) -> bool {
        self.shared.state().quorum.knows_its_nodes()
    }

    /// On threads of the keeper's.
    fn on_keepers_connections(self: Arc<Self>) -> Arc<Self> {
        let Shared { nodes, state, quiet, clock, .. } = &*self.shared;
        let nodes = nodes.iter().map(Node::for_keeper).collect();
        match Self::with(nodes, Arc::clone(state), Arc::clone(quiet), Arc::clone(clock)) {
            Ok(another) => Arc::new(another),
            // If no more threads can be started, the keeper shares these.
            Err(_) => self,
        }
    }

    fn settle(&self, within: Duration) {
        self.shared.settle(within);
    }
}

fn no_thread(error: &io::Error) -> BackendError {
    let told = format!("this host cannot start a thread for each node: {error}");
    BackendError::new(BACKEND, Operation::Connect, ErrorKind::Config, Effect::None, told)
}

/// Waits for the nodes' threads, because what they still have to send would be lost if the process ended.
impl<N> Drop for Redlock<N> {
    fn drop(&mut self) {
        self.shared.settle(lock_core::FLUSH_WITHIN);
    }
}
