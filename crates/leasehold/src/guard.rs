//! What guards are made of, for code that is generic over them: `Guard<M>` and `NamedLock<M>` of a marker `M`, and the [`Proof`] to which each
//! guard derefs.
//!
//! | type | of the marker |
//! |---|---|
//! | `Mutex`, `Guard` | [`Exclusive`] |
//! | `ReadLock`, `ReadGuard` | [`Shared`] |
//! | `Semaphore`, `PermitGuard` | [`Permits`] |

pub use lock_core::LeaseId;
pub use lock_host::{Exclusive, Permits, Proof, Shared};
