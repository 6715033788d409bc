//! Types for code that is generic over guards: the markers `M` of `Guard<M>` and `NamedLock<M>`, and the [`Proof`] to which each guard
//! derefs.
//!
//! | type | of the marker |
//! |---|---|
//! | `Mutex`, `Guard` | [`Exclusive`] |
//! | `ReadLock`, `ReadGuard` | [`Shared`] |
//! | `Semaphore`, `PermitGuard` | [`Permits`] |
//! | `AnyLock`, `AnyGuard`: the kind is decided at run time | [`AnyKind`] |

pub use lock_core::LeaseId;
pub use lock_host::{AnyKind, Exclusive, Permits, Proof, Shared};
