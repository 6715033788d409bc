//! One request, for a connection of either kind.

use std::marker::PhantomData;

use lock_core::FencingToken;

use ::redis::{ConnectionLike, FromRedisValue, RedisError, Script, ScriptInvocation, ToSingleRedisArg, Value};

use super::keys::Keys;
use crate::Refused;

/// A request that is checked, which [`run`](Self::run) sends.
#[must_use = "nothing is sent until it is run"]
pub struct Request<T> {
    script: ScriptInvocation<'static>,
    token: FencingToken,
    answer: PhantomData<fn() -> T>,
}

/// The request was refused, or failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FencedError {
    /// A later holder has raised the fence; nothing was changed.
    #[error(transparent)]
    Refused(#[from] Refused),
    /// The server or the connection failed. After a timeout, or a connection that broke, the request may have taken effect: it
    /// can be repeated with the same token.
    #[error(transparent)]
    Redis(#[from] RedisError),
}

impl<T> Request<T> {
    pub(super) fn new(script: &'static Script, keys: &Keys, token: FencingToken) -> Self {
        let mut script = script.prepare_invoke();
        script.key(&keys.value).key(&keys.fence).arg(token.get());
        Self { script, token, answer: PhantomData }
    }

    pub(super) fn arg(mut self, argument: impl ToSingleRedisArg) -> Self {
        self.script.arg(argument);
        self
    }
}

impl<T: FromRedisValue> Request<T> {
    /// Sends the request, and waits for the answer.
    ///
    /// # Errors
    /// `Refused` if a later holder has raised the fence; otherwise the error of the connection.
    ///
    /// # Blocking
    /// Until the answer, or for as long as the connection allows.
    pub fn run(&self, connection: &mut dyn ConnectionLike) -> Result<T, FencedError> {
        self.answer(self.script.invoke(connection)?)
    }

    /// Sends the request, and waits for the answer.
    ///
    /// # Errors
    /// As [`run`](Self::run).
    ///
    /// # Cancel safety
    /// If the future is dropped, the request may have taken effect, or still may. It can be repeated with the same token.
    #[cfg(feature = "async")]
    pub async fn run_async(&self, connection: &mut impl ::redis::aio::ConnectionLike) -> Result<T, FencedError> {
        self.answer(self.script.invoke_async(connection).await?)
    }

    fn answer(&self, (passed, answer): (bool, Value)) -> Result<T, FencedError> {
        if passed {
            return Ok(T::from_redis_value(answer).map_err(RedisError::from)?);
        }
        let highest = u64::from_redis_value(answer).map_err(RedisError::from)?;
        let highest = FencingToken::new(highest).unwrap_or(FencingToken::MAX); // the script has checked that it is one
        Err(Refused { token: self.token, highest }.into())
    }
}

impl<T> std::fmt::Debug for Request<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Request").field("token", &self.token).finish_non_exhaustive()
    }
}
