//! A cluster for plain threads.

mod verbs;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use lock_core::{BackendError, LockName, Operation};

use super::client::{Client, Inbox, Shard};
use super::redirect::Address;
use super::routing::{Asked, Form, Routing, Step, unserved};
use crate::RedisConfig;
use crate::blocking::{Listening, Redis};
use crate::channel::Channel;
use crate::failure::Failure;
use crate::hash_slot::HashSlot;
use crate::span::Span;
use crate::target::Target;
use crate::wire::Question;

/// The client of a primary, and the hash slots that it serves.
type Primary = (Arc<Redis>, Vec<HashSlot>);

/// A Redis Cluster, used from threads over a few connections to each primary, and others for renewals. Once somebody has to wait at
/// a primary, or has held a lock there for half a second, a thread with a connection of its own learns when locks there are handed over or
/// revoked.
pub struct Cluster {
    client: Client<Redis>,
    warnings: Vec<String>,
}

impl Cluster {
    /// Connects to the cluster of `config`: its servers are asked who serves what, and one of its primaries is greeted. Others are
    /// connected when they are first needed.
    ///
    /// # Errors
    /// If no server of the cluster can be reached, they refuse the client, or they are no cluster. Nothing was changed.
    ///
    /// # Blocking
    /// For about a second at most for each primary that does not answer, and the time that the system takes to look up host names.
    pub fn connect(config: &RedisConfig) -> Result<Self, BackendError> {
        Self::try_connect(config).map_err(failed)
    }

    fn try_connect(config: &RedisConfig) -> Result<Self, Failure> {
        let client = Client::<Redis>::new(config)?;
        client.topology.refresh_first()?;
        let mut last = None;
        for address in client.topology.primaries() {
            match client.node(&address)?.greet(config) {
                Ok(warnings) => return Ok(Self { client, warnings }),
                Err(failure) if failure.may_pass() => last = Some(failure),
                Err(failure) => return Err(failure),
            }
        }
        Err(last.unwrap_or_else(Failure::strange_answer))
    }

    /// The same cluster over connections of its own, on which nobody waits.
    fn another(&self) -> Self {
        Self { client: self.client.with_inbox(Inbox::None), warnings: Vec::new() }
    }

    /// All primaries, and the hash slots that each of them serves.
    pub(crate) fn primaries(&self) -> Result<Vec<Primary>, BackendError> {
        let mut served = BTreeMap::<_, Vec<_>>::new();
        for slot in HashSlot::all() {
            let primary = self.client.topology.primary_of(slot).ok_or_else(|| unserved(slot));
            served.entry(primary.map_err(failed)?).or_default().push(slot);
        }
        served.into_iter().map(|(address, slots)| Ok((self.node(&address).map_err(failed)?, slots))).collect()
    }

    fn node(&self, address: &Arc<Address>) -> Result<Arc<Redis>, Failure> {
        self.client.node(address)
    }

    /// Asks the server that has a lock.
    fn answer<Q: Question>(&self, name: &LockName, question: &Q, span: Span) -> Result<Q::Answer, Failure> {
        self.follow(self.client.routing(name, span), question, span)
    }

    fn follow<Q: Question>(&self, mut routing: Routing<'_>, question: &Q, span: Span) -> Result<Q::Answer, Failure> {
        loop {
            let (address, form) = match routing.step() {
                Step::Send(address, form) => (address, form),
                Step::Refresh => {
                    // Whether that helped shows in the map.
                    _ = self.client.topology.refresh(span);
                    continue;
                }
                Step::Fail(failure) => return Err(failure),
            };
            let node = self.node(&address)?;
            let answer = match form {
                Form::Plain => node.answer(question, span),
                Form::Asking => node.answer(&Asked(question), span),
            };
            match answer {
                Ok(answer) => return Ok(answer),
                Err(failure) => routing.failed(address, failure),
            }
        }
    }

    /// Calls this with how waiters for a lock are notified.
    fn listening<T>(&self, name: &LockName, span: Span, ask: impl FnOnce(Listening<'_>) -> T) -> Result<T, Failure> {
        match self.client.primary_of(name) {
            Some(address) => Ok(ask(self.node(&address)?.listening(span))),
            // The request finds out why there is none.
            None => Ok(ask(Listening::none(span))),
        }
    }
}

fn failed(failure: Failure) -> BackendError {
    failure.into_error(Operation::Connect)
}

impl Shard for Redis {
    fn shard(target: Target, config: &RedisConfig, channel: Option<Arc<Channel>>) -> Self {
        Self::shard(target, config, channel)
    }

    fn forget_verified(&self) {
        self.forget_verified();
    }
}

impl fmt::Debug for Cluster {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.client.fmt(f)
    }
}
