//! What goes wrong over all nodes, in words.

use std::time::Duration;

use lock_core::{BackendError, Effect, ErrorKind, Moment, Operation};

use super::Quorum;
use super::peer::Peer;
use super::watch::{Notes, Wait, Watch};
use crate::BACKEND;

/// Why nodes could not do what they were asked.
#[derive(Debug)]
pub(super) struct Failures {
    pub(super) errors: Vec<BackendError>,
    /// So many leave no majority.
    blocking: usize,
}

impl Failures {
    pub(super) fn of(quorum: &Quorum) -> Self {
        Self { errors: Vec::new(), blocking: quorum.blocking() }
    }

    pub(super) fn push(&mut self, error: BackendError) {
        self.errors.push(error);
    }

    /// All of them in one: transient unless so many are not that there will be no majority the next time either. `others`
    /// is the effect of what did not fail.
    pub(super) fn error(&self, operation: Operation, others: Effect, message: &str) -> BackendError {
        let kinds =
            |transient| self.errors.iter().map(BackendError::kind).filter(move |kind| kind.is_transient() == transient);
        let hopeless = kinds(false).count() >= self.blocking;
        let kind = if hopeless { kinds(false).next() } else { kinds(true).next() };
        let unsure = self.errors.iter().any(|error| error.effect() == Effect::Unknown);
        let effect = if unsure { Effect::Unknown } else { others };
        let told: Vec<_> = self.errors.iter().map(ToString::to_string).collect();
        let message = if told.is_empty() { message.to_owned() } else { format!("{message} ({})", told.join("; ")) };
        BackendError::new(BACKEND, operation, kind.unwrap_or(ErrorKind::Unavailable), effect, message)
    }
}

pub(super) fn refusal(told: impl Into<String>, remedy: impl Into<String>) -> BackendError {
    BackendError::new(BACKEND, Operation::Connect, ErrorKind::Config, Effect::None, told).with_remedy(remedy)
}

fn listed(peers: &[&Peer]) -> String {
    peers.iter().map(|peer| peer.address.as_str()).collect::<Vec<_>>().join(", ")
}

/// Why there are too few votes.
pub(super) struct Silence<'a> {
    pub(super) voting: usize,
    pub(super) all: usize,
    pub(super) majority: usize,
    pub(super) abstain: Vec<&'a Peer>,
    pub(super) away: Vec<&'a Peer>,
    /// Those that cannot be nodes as they are.
    pub(super) wrong: Vec<&'a Peer>,
}

impl Silence<'_> {
    pub(super) fn error(&self, operation: Operation, watch: &Watch, now: Moment) -> BackendError {
        let Self { voting, all, majority, abstain, away, wrong } = self;
        let mut told = format!("{voting} of {all} nodes vote, {majority} are needed");
        if !abstain.is_empty() {
            let most = watch.wait.as_ref().map_or_else(String::new, |wait| for_how_long(wait, now));
            told += &format!("; abstaining until what they may have granted before is over{most}: {}", listed(abstain));
        }
        if !away.is_empty() {
            told += &format!("; not answering: {}", listed(away));
        }
        for peer in wrong {
            let why = peer.fault.as_ref().map_or_else(String::new, |fault| format!(" ({fault})"));
            told += &format!("; not counted: {}{why}", peer.address);
        }
        let kind = if abstain.is_empty() { ErrorKind::Unreachable } else { ErrorKind::Unavailable };
        let remedy = if watch.is_blank {
            "wait; only if this deployment never granted a lock, run: leasehold redlock init URL"
        } else if away.is_empty() && wrong.is_empty() {
            "wait until they vote again"
        } else {
            "see that a majority of the nodes runs"
        };
        BackendError::new(BACKEND, operation, kind, Effect::None, told).with_remedy(remedy)
    }
}

/// A bound, where clients that come later can know it, too.
fn for_how_long(wait: &Wait, now: Moment) -> String {
    match &wait.notes {
        Notes::Kept => {
            let most = Duration::from_secs(wait.left(now).as_secs() + 1);
            format!(", for {} at most", humantime::format_duration(most))
        }
        Notes::Lacking(why) => {
            let why = why.as_ref().map_or_else(String::new, |why| format!(": {why}"));
            format!(" (too few nodes could note since when{why}; only a client that keeps running can see the end)")
        }
    }
}
