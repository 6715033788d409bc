//! The embedded backend: one SQLite file shared by the processes of one machine.
//!
//! Nothing has to be installed or running. All clients of the same file exclude each other, wait in one queue (first
//! come, first served), and draw from one counter of fencing tokens. Every commit reaches the disk.
//! Requests of one client that wait at the same time share a commit, and none is answered before it.
//!
//! # What is guaranteed
//! - Leases are timed by this boot of the machine and a clock that counts suspend ([`Timing`]): setting the wall clock
//!   frees nothing, and a reboot frees everything, at once if the file shows it and else when the old leases end by the new
//!   clock. Containers may mount a boot id of their own.
//! - Tokens survive the end of every process and of the machine. Each is also above the wall clock in microseconds since
//!   1970, so tokens rise even after the file was deleted, or replaced by a backup.
//! - Readers hold a lock together, and so do the holders of a semaphore's permits. Each lease expires on its own.
//! - A program of an earlier version may keep using the file while newer ones use it: it sees a lock with several holders as
//!   held by somebody else, until the last of their leases has ended.
//! - A file that is deleted or replaced under a running client is noticed before the client's next request, which goes
//!   to the file that has the path now. What was held in the old one is lost, and reported as lost. Deleting one of the
//!   two files beside it (`-wal`, `-shm`) while it is in use has the same effect as deleting the file itself, unless others have
//!   opened it since: their locks are left alone.
//!
//! # What is not guaranteed
//! - **One machine, one kernel.** Other machines count time from another boot and would see leases as ended. Known
//!   network and cluster file systems are refused on Linux; a file that a virtual machine shares with its host cannot
//!   be detected and must not be used. The offset of a time namespace is subtracted from the clock. On Linux `/proc`
//!   must be mounted in full (not with `subset=pid`), because it identifies the boot and lists the mounts.
//! - **The directory has to be shared**, not the file alone: SQLite keeps two more files beside it. A file with hard
//!   links is refused, even while it is open, and on Linux one that is mounted by itself (`docker -v FILE:FILE`).
//!   Writing a copy *into* the file while it is in use damages it.
//! - **Nobody may delete or replace the file while it is in use.** Its holders learn of it by their next renewal, within a
//!   third of the ttl. Until then others can hold the same locks in the new file.
//! - A process that is stopped (`SIGSTOP`) in the millisecond of its write, or while it opens the file, stops all names of the file: until it
//!   continues or ends, others get `Unavailable`, and holders lose their leases. A process that dies there stops nobody.
//! - A disk that hangs makes blocking calls hang, too; async calls fail with `Timeout`.

mod additions;
mod batch;
mod boots;
mod config;
mod described;
mod error;
mod examine;
mod file;
mod idle;
mod inode;
mod latches;
mod line;
mod lookout;
mod modes;
mod mounts;
mod namespace;
mod network;
mod opening;
mod permits;
mod queue;
mod requests;
mod rows;
mod schema;
mod session;
mod settings;
mod store;
mod sweep;
mod timing;
mod together;
mod transaction;
mod turn;
mod verb;
mod watcher;
mod wire;
#[cfg(feature = "async")]
mod worker;
mod writes;

pub mod blocking;
#[cfg(feature = "async")]
pub mod nonblocking;

pub use config::SqliteConfig;
pub use timing::Timing;
