//! How important an event is.

/// How important an event is. A more important one compares as greater.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Level {
    /// Part of normal operation.
    Debug,
    /// Of interest.
    Info,
    /// Needs attention if it happens often.
    Warn,
    /// Work may have been interrupted.
    Error,
}
