//! The servers of a client, async or blocking: one, or those that a directory names. No I/O.

pub(crate) mod listing;
mod many;
mod server;
mod source;

use std::fmt;
use std::sync::Arc;

use lock_core::{
    Ability, BackendError, Capabilities, Durability, EventSink, Isolation, LockName, Operation, Prefix, Renewed,
    Waiting,
};

use crate::cluster::Topology;
use crate::deployment::Deployment;
use crate::directory::Directory;
use crate::failure::Failure;
use crate::sentinels::Primary;
use crate::target::Target;
use crate::wire::Wire;
use crate::{BACKEND, MODES, RedisConfig};

pub(crate) use many::Many;
pub(crate) use server::{Server, Serving};
pub(crate) use source::{Own, Source};

/// The clients of the servers that have the locks, over connections from such a source.
pub(crate) enum Servers<O: Own> {
    /// There is one, now and always.
    One(Arc<Server<O>>),
    /// A directory says which they are.
    Many(Arc<Many<O>>),
}

impl<O: Own> Servers<O> {
    /// Those of a configuration. Nothing is connected yet.
    pub(crate) fn of(config: &RedisConfig) -> Result<Self, Failure> {
        let servers = &config.servers;
        let directory: Arc<dyn Directory> = match servers.deployment {
            Deployment::OneServer | Deployment::Quorum => {
                return Ok(Self::one(Server::of(Target::of(config)?, config)));
            }
            Deployment::Sentinels => Arc::new(Primary::new(servers.clone())),
            Deployment::Cluster => Arc::new(Topology::new(servers.addresses(), servers.server.clone())),
        };
        Arc::clone(&directory).watch();
        Ok(Self::Many(Many::new(directory, config.clone(), Waiting::QueueWithPush)))
    }

    pub(crate) fn one(server: Server<O>) -> Self {
        Self::One(Arc::new(server))
    }

    /// The same with `PREFIX:` before the names of locks.
    pub(crate) fn with_prefix(self, prefix: &Prefix) -> Self {
        match self {
            Self::One(server) => {
                let Server { wire, source } = Server::clone(&server);
                Self::one(Server { wire: wire.with_prefix(prefix), source })
            }
            Self::Many(many) => Self::Many(many.with_prefix(prefix)),
        }
    }

    /// The same over other connections, on which nobody waits.
    pub(crate) fn another(&self) -> Self {
        match self {
            Self::One(server) => Self::one(server.another()),
            Self::Many(many) => Self::Many(many.unheard()),
        }
    }

    pub(crate) fn wire(&self) -> &Wire {
        match self {
            Self::One(server) => &server.wire,
            Self::Many(many) => &many.wire,
        }
    }

    /// The server that has a lock, if it is known. Otherwise the request finds out why it is not.
    pub(crate) fn server_of(&self, name: &LockName) -> Option<Arc<Server<O>>> {
        match self {
            Self::One(server) => Some(Arc::clone(server)),
            Self::Many(many) => many.node(&many.primary(name)?).ok(),
        }
    }

    /// All servers.
    pub(crate) fn each(&self) -> Result<Vec<Serving<O>>, Failure> {
        match self {
            Self::One(server) => Ok(vec![(Arc::clone(server), Vec::new())]),
            Self::Many(many) => many.each(),
        }
    }

    pub(crate) fn listen(&self, sink: EventSink) {
        match self {
            Self::One(server) => server.wire.listen(sink),
            Self::Many(many) => many.directory.listeners().add(sink),
        }
    }

    /// In a cluster, requests may overtake each other: one that was sent to another server first comes late. Each hash slot has its own
    /// counter.
    pub(crate) fn capabilities(&self) -> Capabilities {
        let redis = |waiting| {
            Capabilities::new(BACKEND, waiting, Durability::ClockFloor).with_modes(MODES).with_abilities(Ability::ALL)
        };
        match self {
            Self::One(server) => server.source.promise(redis(server.wire.waiting()).with_shared_counter()),
            Self::Many(many) if many.deployment() == Deployment::Sentinels => redis(many.waiting)
                .with_shared_counter()
                .with_ordering(O::order(None))
                .with_isolation(Isolation::Isolated),
            Self::Many(many) => redis(many.waiting).with_isolation(Isolation::Isolated),
        }
    }
}

impl<O: Own> fmt::Debug for Servers<O> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let wire = self.wire();
        f.debug_struct("Redis").field("server", &wire.server).field("prefix", &wire.prefix.as_deref()).finish()
    }
}

/// The answers to renewals that were sent each for itself. An error counts for its own leases only, which are renewed again soon.
pub(crate) fn renewed(
    answers: impl IntoIterator<Item = (usize, Result<Vec<Renewed>, Failure>)>,
) -> Result<Vec<Renewed>, BackendError> {
    let answers: Vec<_> = answers.into_iter().collect();
    if answers.iter().all(|(_, answer)| answer.is_err())
        && let Some((_, Err(failure))) = answers.first()
    {
        return Err(failure.clone().into_error(Operation::Renew));
    }
    let judged = |(count, answer): (usize, Result<Vec<_>, Failure>)| {
        let unsure = |failure: Failure| vec![Renewed::Unsure(failure.into_error(Operation::Renew)); count];
        answer.unwrap_or_else(unsure)
    };
    Ok(answers.into_iter().flat_map(judged).collect())
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_renewal_that_fails_at_one_server_says_why_for_its_leases() {
        let failure = || Failure::no_answer("redis://h1:1", Duration::from_secs(1));
        let answers = renewed([(1, Ok(vec![Renewed::NotHeld])), (1, Err(failure()))]).unwrap();
        let [Renewed::NotHeld, Renewed::Unsure(error)] = &answers[..] else { panic!("{answers:?}") };
        assert!(error.to_string().contains("redis renew: no answer from redis://h1:1"), "{error}");
        assert!(renewed([(2, Err(failure())), (1, Err(failure()))]).is_err(), "no server answered");
    }
}
