//! Why a transaction is not fenced.

use std::{error, fmt};

use lock_core::{FencingToken, LockName};
use lock_host::Proof;

/// Why a fenced transaction did not begin. Nothing was changed.
#[derive(Debug)]
#[non_exhaustive]
pub enum FenceError<E> {
    /// The lock is not held with this token any more: it was lost, released or revoked, or a later turn under the same lease has begun.
    Refused {
        /// The lock.
        name: LockName,
        /// The token.
        token: FencingToken,
    },
    /// The database failed.
    Database(E),
}

impl<E> FenceError<E> {
    /// The server has refused the token of this guard.
    pub fn refused(guard: &Proof) -> Self {
        Self::Refused { name: guard.name().clone(), token: guard.fencing_token() }
    }
}

impl<E: fmt::Display> fmt::Display for FenceError<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Refused { name, token } => {
                write!(f, "the lock \"{name}\" is not held with the token {token}; acquire it again")
            }
            Self::Database(error) => write!(f, "the transaction could not be fenced: {error}"),
        }
    }
}

impl<E: error::Error + 'static> error::Error for FenceError<E> {
    fn source(&self) -> Option<&(dyn error::Error + 'static)> {
        match self {
            Self::Refused { .. } => None,
            Self::Database(error) => Some(error),
        }
    }
}
