//! A set of locks: the order in which they are acquired, and how long that may take.

use std::time::Duration;

use lock_core::{AcquireError, Invalid, Location, LockName, Moment, TryAcquireError, to_the_millisecond};
use lock_host::{Member, SharedClock};

use crate::errors::AcquireAllError;
use crate::guards::Stack;

/// How the locks of a set are acquired.
///
/// First all together, without a place in any queue: that is one round trip, and nothing is waited for. If one of them is
/// not free, the others are released, and all are acquired one after the other, in the order of their locations. That is
/// the same order everywhere, so no two clients can wait for each other.
#[derive(Debug)]
pub(crate) struct SetPlan {
    /// The locks in the order in which they are acquired, by their indices in the list.
    order: Vec<usize>,
    /// The names as they were listed.
    names: Vec<LockName>,
    since: Moment,
    wait: Option<Duration>,
    clock: SharedClock,
}

impl SetPlan {
    /// A plan for these locks, which begins now. The shortest wait of them is that of the set.
    ///
    /// # Errors
    /// `Invalid` for an empty set, a lock that is listed twice, and locks that have no common order.
    pub(crate) fn new(members: Vec<Member>) -> Result<Self, Invalid> {
        let clock = SharedClock::clone(&members.first().ok_or_else(empty)?.clock);
        check_that_ordered(&members)?;
        let mut order: Vec<_> = (0..members.len()).collect();
        order.sort_by_key(|&index| place(&members[index]));
        order.windows(2).try_for_each(|pair| check_that_different(&members[pair[0]], &members[pair[1]]))?;
        let wait = members.iter().filter_map(|member| member.wait).min();
        let names = members.into_iter().map(|member| member.name).collect();
        Ok(Self { order, names, since: clock.now(), wait, clock })
    }

    /// The locks in the order in which they are acquired, by their indices in the list.
    pub(crate) fn order(&self) -> &[usize] {
        &self.order
    }

    /// Whether all locks are tried together before any of them is waited for.
    pub(crate) fn tries_all_first(&self) -> bool {
        self.order.len() > 1
    }

    /// How much is left of the wait; `None` if it has no limit.
    pub(crate) fn left(&self) -> Option<Duration> {
        self.wait.map(|wait| wait.saturating_sub(self.waited()))
    }

    fn waited(&self) -> Duration {
        self.clock.now().since(self.since)
    }

    /// The outcome of trying the locks together, in their order. Unless all were granted, those that were are released.
    pub(crate) fn landed<G>(
        &self,
        outcomes: impl IntoIterator<Item = Result<G, TryAcquireError>>,
    ) -> Result<Stack<G>, TryAcquireError<AcquireAllError>> {
        let (mut held, mut obstacle) = (Stack::default(), None);
        for (&index, outcome) in self.order.iter().zip(outcomes) {
            match outcome {
                Ok(guard) => held.push(guard),
                Err(TryAcquireError::Busy(busy)) => _ = obstacle.get_or_insert(busy.into()),
                // Says more than that a lock is held.
                Err(TryAcquireError::Failed(error)) if !matches!(obstacle, Some(TryAcquireError::Failed(_))) => {
                    obstacle = Some(TryAcquireError::Failed(self.failed(index, error)));
                }
                Err(TryAcquireError::Failed(_)) => {}
            }
        }
        obstacle.map_or(Ok(held), Err)
    }

    /// Why the set was not acquired, if this lock of the list was not.
    pub(crate) fn failed(&self, index: usize, mut error: AcquireError) -> AcquireAllError {
        if let AcquireError::TimedOut { waited, .. } = &mut error {
            *waited = to_the_millisecond(self.waited());
        }
        AcquireAllError::At { name: self.names[index].clone(), error }
    }
}

/// Whether waiting for the locks one after the other may still succeed, although they could not be acquired together.
///
/// # Errors
/// The error, if not.
pub(crate) fn passes(obstacle: TryAcquireError<AcquireAllError>) -> Result<(), AcquireAllError> {
    match obstacle {
        TryAcquireError::Busy(_) => Ok(()),
        TryAcquireError::Failed(AcquireAllError::At { error: AcquireError::Backend(error), .. })
            if error.kind().is_transient() =>
        {
            Ok(())
        }
        TryAcquireError::Failed(error) => Err(error),
    }
}

/// The order of the locks. If the store cannot tell where it keeps them, all are of one client, and names do.
fn place(member: &Member) -> (Option<Location>, LockName) {
    (member.location.clone(), member.name.clone())
}

fn check_that_ordered(members: &[Member]) -> Result<(), Invalid> {
    let clients = members.windows(2).filter(|pair| pair[0].client != pair[1].client).count();
    match members.iter().find(|member| member.location.is_none()) {
        Some(member) if clients > 0 => Err(Invalid::new(
            "lock of a set",
            &member.name,
            "the set has locks of several clients, and this one's client does not know which server it uses",
            "connect it with the URL of the server, or use one client for all locks of the set",
        )),
        Some(_) | None => Ok(()),
    }
}

fn check_that_different(one: &Member, other: &Member) -> Result<(), Invalid> {
    let problem = if one.location != other.location {
        return Ok(());
    } else if one.name == other.name {
        "it is listed twice".to_owned()
    } else if one.location.is_some() {
        format!("it is the same lock as \"{}\" of another client", one.name)
    } else {
        return Ok(());
    };
    Err(Invalid::new("lock of a set", &other.name, problem, "list each lock once"))
}

fn empty() -> Invalid {
    Invalid::new("set of locks", "", "it is empty", "name one lock or more")
}

#[cfg(all(test, feature = "blocking"))]
#[path = "set/tests.rs"]
mod tests;
