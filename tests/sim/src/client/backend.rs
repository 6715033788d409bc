//! The backend of a process: everything between its stations and the connections to the stores.

use std::fmt::Debug;
use std::time::Duration;

use lock_core::latch::{Request, Seen};
use lock_core::station::{Action, ActionId, Input, Reply};
use lock_core::{BackendError, Batch, Moment, Renewed};

use crate::env::Env;
use crate::network::{ConnId, Tag, Talk};

/// What a process gets from its backend.
#[derive(Debug)]
pub(crate) enum Heard {
    /// To an action of the station with this number.
    Reply(usize, ActionId, Reply),
    Renewal(Batch, Result<Vec<Renewed>, BackendError>),
    /// To a request about a latch.
    Latch(u64, Result<Seen, BackendError>),
    /// A connection was made again: messages may have been missed.
    Reconnected,
    /// The session with the store was given up.
    SessionEnded,
}

/// A request about a latch, for the call with this number.
#[derive(Debug)]
pub(crate) struct Calling {
    pub(crate) call: u64,
    pub(crate) request: Request,
    pub(crate) within: Duration,
}

/// A kind of backend. Each call returns the events that follow at once.
pub(crate) trait Backend: Debug + Sized {
    /// What it and its stores say to each other.
    type Talk: Talk;

    /// Runs an action of the station with this number.
    fn run(&mut self, env: &mut Env<Self::Talk>, now: Moment, site: usize, action: Action) -> Vec<Heard>;

    /// Renews leases for the keeper.
    fn renew(&mut self, env: &mut Env<Self::Talk>, now: Moment, batch: Batch) -> Vec<Heard>;

    /// Asks about a latch, where the store has any.
    fn latch(&mut self, _env: &mut Env<Self::Talk>, _now: Moment, _calling: Calling) -> Vec<Heard> {
        Vec::new()
    }

    /// Gives the session with the store up, where there is one.
    fn end_session(&mut self, _env: &mut Env<Self::Talk>, _now: Moment) -> Vec<Heard> {
        Vec::new()
    }

    /// Whether what the store keeps ends with a session.
    fn has_session(&self) -> bool {
        false
    }

    /// When time alone makes something happen.
    fn next_wake(&self) -> Option<Moment>;

    /// Reconnects if it is time, and ends requests that take too long.
    fn wake(&mut self, env: &mut Env<Self::Talk>, now: Moment) -> Vec<Heard>;

    /// An answer came.
    fn said(
        &mut self,
        env: &mut Env<Self::Talk>,
        now: Moment,
        conn: ConnId,
        tag: Tag,
        say: <Self::Talk as Talk>::Say,
    ) -> Vec<Heard>;

    /// A connection is gone.
    fn cut(&mut self, env: &mut Env<Self::Talk>, now: Moment, conn: ConnId) -> Vec<Heard>;

    /// Whether messages arrive over this connection.
    fn hears(&self, conn: ConnId) -> bool;

    /// The open connections.
    fn conns(&self) -> Vec<ConnId>;

    /// What the station with this number gets instead of `input`, if a mistake breaks one of its rules.
    fn inward(&mut self, _now: Moment, _site: usize, input: Input) -> Input {
        input
    }
}
