//! The connections of all threads of a client to one server.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use lock_core::RequestOrder;
use lock_host::{Clock, HostClock};
use redis::{RedisResult, Value};

use super::listener::Listener;
use super::slots::{self, Outcome, Slots};
use super::socket::{Socket, connect};
use crate::channel::Channel;
use crate::classify::classify;
use crate::connect::{CONNECT_WITHIN, SOCKET_TIMEOUT_MIN};
use crate::failure::{Failure, Fate, Scene, Stage};
use crate::server::server_info::ServerInfo;
use crate::servers::Own;
use crate::span::Span;
use crate::target::Target;
use crate::wire::{Call, Ownership};

/// How many connections the threads of a client have together. Requests that find all of them in use wait for the next
/// one that is free, and are sent over it together. Chosen: a request waits for about an eighth of a round trip, and a
/// hundred processes with many threads each are hundreds of connections for the server, not thousands. Measured with 64
/// threads on loopback: fewer connections save the server up to a third of its time, more cost it as much.
const CONNECTIONS_MAX: usize = 8;
/// The most requests that are sent together, because the first of them waits for the answer to the last.
const TOGETHER_MAX: usize = 32;
/// How long a connection may be idle and still be trusted: servers and proxies close connections that are idle for
/// long, and a server that became a replica and a primary again meanwhile has other data. Chosen: both take longer.
const TRUSTED_FOR: Duration = Duration::from_secs(1);
/// How long an unused connection stays open while others are used.
const KEPT_FOR: Duration = Duration::from_secs(60);

/// Connections to one server, which was greeted on each of them, and its counter verified.
pub(crate) struct Stack {
    target: Target,
    /// The connections that there are now.
    slots: Slots<Box<Socket>, Option<Request>, Heard>,
    /// The server as it was greeted last.
    known: Mutex<Option<Arc<ServerInfo>>>,
    listener: Option<Listener>,
}

/// A request that another thread may send.
struct Request {
    call: Call,
    /// The server for which the command was made.
    server_info: Arc<ServerInfo>,
    until: Instant,
}

/// A reply, and the server from which it came.
pub(crate) struct Heard {
    pub(crate) reply: RedisResult<Value>,
    pub(crate) server_info: Arc<ServerInfo>,
}

/// Makes the command for a server.
pub(crate) type Asks<'a> = dyn Fn(&ServerInfo) -> Result<Call, Failure> + 'a;

/// Makes several commands for a server.
pub(crate) type AsksEach<'a> = dyn Fn(&ServerInfo) -> Result<Vec<Call>, Failure> + 'a;

/// A pool of the user's.
pub(crate) trait Lender: Send + Sync {
    /// Asks over one of its connections.
    fn ask(&self, asks: &Asks<'_>, span: Span) -> Result<Heard, Failure>;
}

type Slot<'a> = slots::Slot<'a, Box<Socket>, Option<Request>, Heard>;

impl Own for Stack {
    type Lender = dyn Lender;
    const LISTEN_LATE: bool = true;

    fn new(target: Target, channel: Option<Arc<Channel>>) -> Self {
        let slots: Slots<Box<Socket>, _, _> =
            Slots::new(CONNECTIONS_MAX, |oldest, newest| oldest.used_at + KEPT_FOR < newest.used_at);
        let listener = channel.map(|channel| Listener::new(target.clone(), channel));
        Self { target, slots, known: Mutex::default(), listener }
    }

    fn another(&self) -> Self {
        Self::new(self.target.clone(), None)
    }

    fn order(_lender: Option<&dyn Lender>) -> RequestOrder {
        RequestOrder::Unordered
    }

    fn forget_verified(&self) {
        self.known().iter().for_each(|server_info| server_info.forget_verified());
    }

    fn listens(&self) -> bool {
        self.listener.as_ref().is_some_and(Listener::is_started)
    }

    fn listen_in_time(&self) {
        self.listener.iter().for_each(Listener::wished_for);
    }
}

impl Stack {
    /// Whether nobody has waited yet, but could be notified.
    pub(crate) fn hears_nothing(&self) -> bool {
        self.listener.as_ref().is_some_and(|listener| !listener.is_started())
    }

    /// Somebody waits for a notification.
    pub(crate) fn listen(&self, span: Span) {
        if let Some(listener) = &self.listener {
            // The subscription takes two steps; then the claim has to be sent again.
            listener.needed((span.at_most(CONNECT_WITHIN).left() / 3).max(SOCKET_TIMEOUT_MIN));
        }
    }

    /// Makes the first connection.
    pub(crate) fn greet(&self, span: Span) -> Result<Arc<ServerInfo>, Failure> {
        let slot = self.slots.take();
        let socket = self.connected(None, span)?;
        let server_info = Arc::clone(&socket.server_info);
        if let Some(slot) = slot {
            self.put_back(slot, socket);
        }
        Ok(server_info)
    }

    /// Sends a command and waits for its reply, over the connection that was used last. If all are in use, another
    /// thread may send it together with its own.
    pub(crate) fn ask(&self, asks: &Asks<'_>, span: Span) -> Result<Heard, Failure> {
        match self.slots.take() {
            Some(slot) => self.lead(slot, asks, span),
            None => self.wait(asks, span),
        }
    }

    /// Sends several commands in one write. `None` if all connections are in use.
    pub(crate) fn ask_each(&self, asks: &AsksEach<'_>, span: Span) -> Option<Result<Vec<Heard>, Failure>> {
        let slot = self.slots.take()?;
        Some(self.lead_each(slot, asks, span))
    }

    /// A connection for the slot, and what is to be sent to its server.
    fn ready<'a, T>(
        &self,
        mut slot: Slot<'a>,
        asks: impl FnOnce(&ServerInfo) -> Result<T, Failure>,
        span: Span,
    ) -> Result<(Slot<'a>, Box<Socket>, T), Failure> {
        let socket = self.connected(slot.connection(), span)?;
        match asks(&socket.server_info) {
            Ok(asked) => Ok((slot, socket, asked)),
            Err(failure) => {
                self.put_back(slot, socket);
                Err(failure)
            }
        }
    }

    fn wait(&self, asks: &Asks<'_>, span: Span) -> Result<Heard, Failure> {
        let known = self.known().clone();
        let request = known.map(|server_info| {
            let call = asks(&server_info)?;
            Ok(Request { call, server_info, until: span.until })
        });
        // One to a server that does not own the keys yet goes alone.
        let request = request.transpose()?.filter(|request| request.call.ownership == Ownership::Owned);
        match self.slots.wait(request, span.until) {
            Outcome::Answered(heard) => Ok(heard),
            Outcome::Leads(slot) if !span.left().is_zero() => self.lead(slot, asks, span),
            Outcome::Leads(_) | Outcome::NotSent => Err(Failure::no_connection(&self.target.shown(), span.within)),
            Outcome::Unanswered | Outcome::Dropped => Err(Failure::no_answer(&self.target.shown(), span.within)),
        }
    }

    /// Sends a command, together with those that wait in the line.
    fn lead(&self, slot: Slot<'_>, asks: &Asks<'_>, span: Span) -> Result<Heard, Failure> {
        let one = |server_info: &ServerInfo| Ok(vec![asks(server_info)?]);
        self.lead_each(slot, &one, span)?.pop().ok_or_else(Failure::strange_answer)
    }

    fn lead_each(&self, slot: Slot<'_>, asks: &AsksEach<'_>, span: Span) -> Result<Vec<Heard>, Failure> {
        let (mut slot, mut socket, mut calls) = self.ready(slot, asks, span)?;
        let (server_info, own) = (Arc::clone(&socket.server_info), calls.len());
        let is_moving = calls.iter().any(|call| call.ownership == Ownership::Moving);
        if !is_moving {
            let fits =
                |request: &Request| Arc::ptr_eq(&request.server_info, &server_info) && span.covers(request.until);
            let room = TOGETHER_MAX.saturating_sub(own);
            let others = slot.take_others(room, |request| request.as_ref().is_some_and(fits));
            calls.extend(others.into_iter().flatten().map(|other| other.call));
        }
        let replies = match calls.as_slice() {
            [call] if is_moving => vec![socket.ask_moving(call, span)],
            [call] if call.wait.is_none() => vec![socket.ask(&call.command, span)],
            _ => socket.ask_all(calls, span),
        };
        let is_dropped = replies.iter().any(|reply| fate(reply) == Fate::Drop);
        let mut heard = replies.into_iter().map(|reply| Heard { reply, server_info: Arc::clone(&server_info) });
        let own = heard.by_ref().take(own).collect();
        heard.for_each(|other| slot.answer(other));
        if is_dropped {
            self.clear();
        } else {
            self.put_back(slot, socket);
        }
        Ok(own)
    }

    /// The idle connection if it is still good, or a new one.
    fn connected(&self, idle: Option<Box<Socket>>, span: Span) -> Result<Box<Socket>, Failure> {
        if let Some(mut socket) = idle {
            let is_trusted = HostClock.now() < socket.used_at + TRUSTED_FOR;
            if is_trusted || socket.is_still_good(span) {
                return Ok(socket);
            }
            self.clear();
        }
        let mut socket = Box::new(connect(&self.target, span.at_most(CONNECT_WITHIN))?);
        let mut known = self.known();
        match &*known {
            Some(known) if **known == *socket.server_info => {
                known.also_found(&socket.server_info);
                socket.server_info = Arc::clone(known);
            }
            Some(_) | None => *known = Some(Arc::clone(&socket.server_info)),
        }
        drop(known);
        Ok(socket)
    }

    /// Puts back a connection that is still in step, unless the server has changed since it was greeted.
    fn put_back(&self, slot: Slot<'_>, mut socket: Box<Socket>) {
        if self.known().as_ref().is_some_and(|known| Arc::ptr_eq(known, &socket.server_info)) {
            socket.used_at = HostClock.now();
            slot.put_back(socket);
        }
    }

    /// Closes all idle connections: if one broke, the others most likely broke, too.
    fn clear(&self) {
        drop(self.slots.clear());
    }

    fn known(&self) -> MutexGuard<'_, Option<Arc<ServerInfo>>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether a connection is still usable after a reply.
fn fate(reply: &RedisResult<Value>) -> Fate {
    let scene = Scene { stage: Stage::Asked, server: "", within: Duration::ZERO };
    reply.as_ref().err().map_or(Fate::Keep, |error| classify(scene, error).fate)
}
