//! The error of limits, and what errors are made of, for code that looks into them. The other errors are at the root, those of the kit in
//! [`kit`](crate::kit), and those of latches in [`latch`](crate::latch).

pub use lock_core::limit::LimitError;
pub use lock_core::{Effect, Operation};
pub use lock_host::Unchanged;
