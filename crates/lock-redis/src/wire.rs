//! How requests to Redis are encoded and its replies decoded, for every kind of connection. No I/O.

mod call;

use std::sync::Arc;
use std::time::{Duration, Instant};

use lock_core::{EventSink, Location, LockName, Operation, Prefix, Released, Waiting};
use redis::{Cmd, FromRedisValue, Value, from_redis_value};

pub(crate) use self::call::{Call, Ownership, SCRIPT_AND_COUNT};
use crate::RedisConfig;
use crate::channel::Channel;
use crate::deployment::Deployment;
use crate::failure::{Failure, Scene, Stage};
use crate::hash_slot::HashSlot;
use crate::keys::Keys;
use crate::replicas::{Copies, Wait, without_wait};
use crate::script::Script;
use crate::server::server_info::ServerInfo;
use crate::target::Target;

/// How many leases one script renews, or locks it looks at, at most, so that other clients wait for it no longer than about a
/// millisecond. A script that looks ends sooner where many wait or share a lock.
pub(crate) const LEASES_PER_SCRIPT: usize = 100;

/// How many scripts look at one lock each before others of this connection have their turn. Chosen: enough that a listing over a
/// slow network does not wait for each lock.
const LOOKS_AT_ONCE: usize = 16;

/// What is the same for all questions of a client.
#[derive(Clone, Debug)]
pub(crate) struct Wire {
    pub(crate) prefix: Prefix,
    pub(crate) deployment: Deployment,
    /// The server as it is shown to users.
    pub(crate) server: String,
    /// The server with its database; `None` if only the connections know it.
    pub(crate) store: Option<String>,
    /// Where waiters are notified of their grants; `None` if they have to poll.
    pub(crate) channel: Option<Arc<Channel>>,
    /// Who must have each grant and each renewal before it counts, if not the server alone.
    pub(crate) copies: Option<Copies>,
}

impl Wire {
    /// To a server, over connections that are made here.
    pub(crate) fn own(target: &Target, channel: Option<Arc<Channel>>) -> Self {
        let (server, store, deployment) = (target.shown(), Some(target.store()), target.deployment);
        Self { prefix: Prefix::default(), deployment, server, store, channel, copies: None }
    }

    /// To the servers of a configuration as a whole. Each of them has a wire of its own.
    pub(crate) fn of(config: &RedisConfig) -> Self {
        let (server, prefix, servers) = (config.shown_url().to_owned(), config.prefix.clone(), &config.servers);
        let (store, copies) = (Some(servers.store()), config.copies());
        Self { prefix, deployment: servers.deployment, server, store, channel: None, copies }
    }

    /// To a server that is known only to the connections that were passed in.
    #[cfg(any(feature = "async", feature = "r2d2", test))]
    pub(crate) fn handed_in() -> Self {
        let (prefix, deployment, server) = (Prefix::default(), Deployment::OneServer, "the server".to_owned());
        Self { prefix, deployment, server, store: None, channel: None, copies: None }
    }

    /// The keys of a lock.
    pub(crate) fn keys<'a>(&'a self, name: &'a LockName) -> Keys<'a> {
        Keys::of(self.deployment, &self.prefix, name)
    }

    /// Which part of a cluster keeps a lock. Every name has a hash slot, whatever braces it contains.
    pub(crate) fn hash_slot(&self, name: &LockName) -> HashSlot {
        HashSlot::of(self.prefix.key(name.as_str()).as_bytes())
    }

    /// How many locks one script looks at or renews at most. Those in different hash slots of a cluster need one each.
    pub(crate) fn locks_per_script(&self) -> usize {
        if self.deployment == Deployment::Cluster { 1 } else { LEASES_PER_SCRIPT }
    }

    /// How many scripts that look at locks are sent at a time at most: the server may run them without a break.
    pub(crate) fn looks_at_once(&self) -> usize {
        if self.deployment == Deployment::Cluster { LOOKS_AT_ONCE } else { 1 }
    }

    /// Where the server keeps a lock.
    pub(crate) fn locate(&self, name: &LockName) -> Option<Location> {
        Some(Location { store: self.store.clone()?, key: self.prefix.key(name.as_str()) })
    }

    pub(crate) fn with_prefix(mut self, prefix: &Prefix) -> Self {
        self.prefix = prefix.clone();
        if let Some(channel) = &self.channel {
            channel.set_prefix(prefix);
        }
        self
    }

    /// Grants and renewals count once these have them.
    pub(crate) fn with_copies(self, copies: Option<Copies>) -> Self {
        if let (Some(channel), Some(_)) = (&self.channel, copies) {
            channel.pushes_need_an_answer();
        }
        Self { copies, ..self }
    }

    /// The same for a connection on which nobody waits.
    pub(crate) fn without_inbox(&self) -> Self {
        Self { channel: None, ..self.clone() }
    }

    pub(crate) fn listen(&self, sink: EventSink) {
        if let Some(channel) = &self.channel {
            channel.listen(sink);
        }
    }

    pub(crate) fn waiting(&self) -> Waiting {
        if self.channel.is_some() { Waiting::QueueWithPush } else { Waiting::Queue }
    }

    /// The context of errors of a request over an existing connection.
    pub(crate) fn asked(&self, within: Duration) -> Scene<'_> {
        Scene { stage: Stage::Asked, server: &self.server, within }
    }
}

/// What a question is sent over: what is the same for all questions of a client, and the server at the other end.
#[derive(Clone, Copy)]
pub(crate) struct Line<'a> {
    pub(crate) wire: &'a Wire,
    pub(crate) server_info: &'a ServerInfo,
    pub(crate) attempt: Attempt<'a>,
}

/// Which attempt at a question this is; the first one, at the server that owns the keys, unless something else is said.
#[derive(Clone, Copy, Default)]
pub(crate) struct Attempt<'a> {
    /// How the first attempt failed, if this is the retry.
    pub(crate) first: Option<&'a Failure>,
    pub(crate) ownership: Ownership,
}

impl<'a> Attempt<'a> {
    /// The retry after this failure.
    pub(crate) fn after(first: &'a Failure) -> Self {
        Self { first: Some(first), ..Self::default() }
    }
}

impl Line<'_> {
    /// The command that asks, with what its answer waits for besides, for as long as the request has time.
    ///
    /// What depends on the counter of its hash slot has several keys. Some of them are not yet at a server that does not own them yet.
    pub(crate) fn call<Q: Question>(self, question: &Q, until: Instant) -> Result<Call, Failure> {
        let wait = self.copies(question).map(|copies| Wait { copies, until });
        let call = Call { wait, ..question.call(self)? };
        match (self.attempt.ownership, call.slot) {
            (Ownership::Owned, _) => Ok(call),
            (Ownership::Moving, None) => Ok(call.asking()),
            (Ownership::Moving, Some(hash_slot)) => Err(Failure::moving(hash_slot)),
        }
    }

    /// Reads the reply to that command. A grant that too few replicas have is an error whose outcome is unknown, so the machine gives it
    /// back, or asks again under the same owner.
    pub(crate) fn read<Q: Question>(self, question: &Q, reply: Value) -> Result<Q::Answer, Failure> {
        let Some(copies) = self.copies(question) else { return question.read(self, reply) };
        let (own, had) = without_wait(&self.wire.server, reply)?;
        let answer = question.read(self, own)?;
        if question.gives(Some(&answer)) {
            copies.check(had?, self.server_info.replicas)?;
        }
        Ok(answer)
    }

    fn copies<Q: Question>(self, question: &Q) -> Option<Copies> {
        self.wire.copies.filter(|_| question.gives(None))
    }

    /// The meaning of the answer to a release. If a retry finds nothing, the first attempt may have ended the hold or
    /// the place. Not so if another incarnation answers: what broke the connection may have lost the lease as well.
    pub(crate) fn released(self, answer: Released) -> Released {
        match answer {
            Released::NotHeld
                if self.attempt.first.and_then(Failure::broke_at) == Some(&self.server_info.incarnation()) =>
            {
                Released::Released
            }
            Released::NotHeld | Released::Released | Released::Left => answer,
        }
    }
}

/// A question to Redis: how to ask it, and how to read its answer.
pub(crate) trait Question {
    /// The decoded answer.
    type Answer: Send;

    /// What is being done, for errors.
    const OPERATION: Operation = Operation::Inspect;
    /// Whether it may be asked once more if its connection breaks.
    const RETRY: Retry = Retry::Never;

    /// What is being done, where that differs.
    fn operation(&self) -> Operation {
        Self::OPERATION
    }

    /// The command that asks; for a retry, the line says how the first attempt failed.
    fn call(&self, line: Line<'_>) -> Result<Call, Failure>;

    /// Reads the reply.
    fn read(&self, line: Line<'_>, reply: Value) -> Result<Self::Answer, Failure>;

    /// Whether this answer, or any, may give somebody a lease, more time with it, or a limit. If the client's URL says so, that counts
    /// once replicas have acknowledged it, or once it is on disk. A refusal needs no acknowledgement: it gives nothing that a promoted
    /// replica could give to somebody else.
    fn gives(&self, _answer: Option<&Self::Answer>) -> bool {
        false
    }

    /// Whether it may be asked once more, where that differs.
    fn retry(&self) -> Retry {
        Self::RETRY
    }
}

/// What to do with a question whose connection broke before the answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Retry {
    /// The error is the answer: an acquire that may have taken effect is followed by a release.
    Never,
    /// It is idempotent, so it is asked again over another connection in the rest of its time.
    Once,
}

/// Takes a reply apart.
pub(crate) fn read<T: FromRedisValue>(reply: Value) -> Result<T, Failure> {
    from_redis_value(reply).map_err(|_| Failure::strange_answer())
}

/// How long until a key expires; `None` if it never does.
pub(crate) fn remaining(pttl: i64) -> Option<Duration> {
    u64::try_from(pttl).ok().map(Duration::from_millis)
}

pub(crate) fn to_millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

/// Loads a script that the server has forgotten.
pub(crate) fn load(script: &Script) -> Cmd {
    let mut command = redis::cmd("SCRIPT");
    command.arg("LOAD").arg(script.text());
    command
}
