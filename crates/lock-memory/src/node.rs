//! The reference node of a quorum: the contract of [`lock_core::node`] in the simplest code possible.
//!
//! [`NodeStore`] says what the requests mean, as a plain value with the time as a parameter; [`MemoryNode`] puts it behind
//! a mutex, with a clock and listeners, for async and blocking clients. A [`Faulty`](crate::faults::Faulty) around it adds what a node in
//! this process cannot do by itself: to hang, to lose a reply, to be away.
//!
//! ```
//! use std::sync::Arc;
//! use std::time::Duration;
//! use lock_core::node::{Ask, BlockingQuorumNode, Told};
//! use lock_core::{Effect, ErrorKind};
//! use lock_host::ManualClock;
//! use lock_memory::faults::{Fault, Faults, Faulty};
//! use lock_memory::node::MemoryNode;
//!
//! let node = MemoryNode::new("one", Arc::new(ManualClock::new()));
//! let faults = Faults::new();
//! let member = Faulty::new(node.clone(), &faults);
//! faults.fail_everything(Fault::LostReply);
//! let error = member.ask(&Ask::Look, Duration::from_secs(1)).unwrap_err();
//! assert_eq!((error.kind(), error.effect()), (ErrorKind::Timeout, Effect::Unknown));
//! faults.heal_everything();
//! node.forget();
//! assert!(matches!(member.ask(&Ask::Look, Duration::from_secs(1)), Ok(Told::View(_))));
//! ```
//!
//! Reading order: `store` (the requests) · `counter` (how tokens rise) · `lock` (what a node keeps about one lock) · `inspection` (what it
//! answers operators) · `memory` (its clients and their events).

mod counter;
mod inspection;
mod lock;
mod memory;
mod store;

use lock_core::Operation;
use lock_core::node::Ask;

pub use crate::store::Hold;
pub use memory::MemoryNode;
pub use store::{Freed, NodeStore};

/// The operation of a request, for errors and faults: looking is `Inspect`, and a change of the node's state is `Connect`.
pub(crate) fn operation(ask: &Ask) -> Operation {
    match ask {
        Ask::Acquire { .. } => Operation::Acquire,
        Ask::Fence { .. } => Operation::Fence,
        Ask::Release(_) => Operation::Release,
        Ask::Look | Ask::Inspect(_) => Operation::Inspect,
        Ask::Mark { .. } | Ask::Record { .. } | Ask::Install { .. } | Ask::Move { .. } => Operation::Connect,
    }
}
