//! What a server's crate implements.

use std::fmt::Debug;
use std::time::Duration;

use lock_core::{BackendError, Capabilities, Effect, ErrorKind, Invalid, Operation, Prefix};
use tokio::sync::mpsc::UnboundedReceiver;

/// A database whose functions answer requests, and how its connections are lent. Clones share the connections.
pub trait Database: Clone + Debug + Send + Sync + 'static {
    /// The store's name in errors.
    const BACKEND: &'static str;
    /// How often to look for the first waiter of a queue, where the server does not notify.
    const TICK: Duration;
    /// A connection for one request.
    type Connection: Connection;

    /// What the store can do.
    fn capabilities(&self) -> Capabilities;

    /// The server and the database, without user and password, and what else tells stores apart.
    fn place(&self) -> String;

    /// Warnings about the server.
    fn warnings(&self) -> Vec<String> {
        Vec::new()
    }

    /// What precedes the names of locks.
    fn prefix(&self) -> &Prefix;

    /// A connection for one request.
    fn lend(&self) -> impl Future<Output = Result<Self::Connection, BackendError>> + Send;

    /// The same database over connections that do not wait for a busy pool.
    fn for_waiters(&self) -> Self;

    /// The same database over connections of the keeper's own.
    fn for_keeper(&self) -> Self;

    /// Begins to listen to a channel, and rings it once over another connection. `None` if the server does not notify.
    fn listen(&self, channel: &str) -> impl Future<Output = Result<Option<Notifications>, BackendError>> + Send;
}

/// A connection that one request has. If it is dropped before an answer, nothing that was sent over it is mistaken for the answer of another
/// request.
pub trait Connection: Send {
    /// Calls a function with one text, and returns its answer; `None` for NULL. Repeats a call that did nothing because others were in its way.
    /// After this time, nobody waits for the answer any more.
    fn call(
        &mut self,
        function: &'static str,
        arguments: &str,
        within: Duration,
    ) -> impl Future<Output = Result<Option<String>, BackendError>> + Send;
}

/// What the server sends without being asked.
pub struct Notifications {
    /// The texts.
    pub texts: UnboundedReceiver<String>,
    /// What they arrive over. It is closed when this is dropped.
    pub connection: Box<dyn Send>,
}

/// An error of a request whose operation its caller knows.
pub fn error<D: Database>(kind: ErrorKind, effect: Effect, message: impl Into<String>) -> BackendError {
    BackendError::new(D::BACKEND, Operation::Connect, kind, effect, message)
}

/// A row that this library did not write.
pub(crate) fn damaged<D: Database>(invalid: Invalid) -> BackendError {
    error::<D>(ErrorKind::Protocol, Effect::Unknown, "the tables hold what this library did not write")
        .with_source(invalid)
        .with_remedy("check that only this library writes to them")
}

/// An answer that this client does not understand.
pub(crate) fn unreadable<D: Database>(failure: serde_json::Error) -> BackendError {
    error::<D>(
        ErrorKind::Protocol,
        Effect::Unknown,
        "a function returned an answer that this client does not understand",
    )
    .with_source(failure)
}
