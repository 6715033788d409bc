//! Tokens that may raise a fence.

use std::fmt;

use crate::FencingToken;

/// The fencing token of a writer or of one permit: what a new holder raises the fence with, before it reads.
///
/// A resource refuses every token below its fence. So a reader must not raise it: it would shut out the other readers. That is
/// why guards of writers and permits have a `WriteToken`, and guards of readers only a [`FencingToken`].
///
/// A process that was given the number, in an environment variable or a header, says with [`of_writer`](Self::of_writer) whose
/// it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct WriteToken(FencingToken);

impl WriteToken {
    /// This token, which the caller knows to be that of a writer or of a permit: for a process that has it as a number.
    ///
    /// `leasehold run` passes it in `LEASEHOLD_FENCE`. With `--shared`, that is the token of a reader.
    ///
    /// ```
    /// # use lock_core as leasehold;
    /// use leasehold::WriteToken;
    ///
    /// let passed = "1795295642004295"; // std::env::var("LEASEHOLD_FENCE")?
    /// let token = WriteToken::of_writer(passed.parse()?);
    /// assert_eq!(token.get(), 1795295642004295);
    /// # Ok::<(), leasehold::Invalid>(())
    /// ```
    pub fn of_writer(token: FencingToken) -> Self {
        Self(token)
    }

    /// The number itself, as the resource stores it.
    pub fn get(self) -> u64 {
        self.0.get()
    }
}

impl fmt::Display for WriteToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl From<WriteToken> for FencingToken {
    fn from(token: WriteToken) -> Self {
        token.0
    }
}

impl From<WriteToken> for i64 {
    fn from(token: WriteToken) -> Self {
        token.0.into()
    }
}
