//! How a command ended, for reports and for the messages of the guard.

use serde::{Deserialize, Serialize};

/// How the command ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum CommandEnd {
    /// With this code.
    Code(u8),
    /// By this signal.
    Signal(i32),
}
