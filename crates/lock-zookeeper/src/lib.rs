//! The backend for ZooKeeper: locks in the layout of Curator's recipes, so that Java services and this library exclude each other and wait in
//! one queue.
//!
//! # Names and paths
//! The path of a lock is the chroot, a slash and the name. Slashes of a name separate directories; a name should not begin with one, because
//! that is an empty segment.
//!
//! ZooKeeper refuses some characters in a path. These are escaped byte by byte, as `%` and two digits: U+E000 to U+F8FF, and from U+FFF0 on, such as
//! emoji. So are `%` itself, and the first character of a segment that is `.`, `..`, `zookeeper` or a name of this library, or that
//! begins with `_c_`. An empty segment becomes `%`. Java programs have to use the escaped path.
//!
//! A name is a mutex or a read-write lock, because Curator's two recipes ignore each other's nodes. Its first node decides; another use is refused.
//! Do not share a name that has other locks below it, such as `orders` beside `orders/7`. Curator takes every child of a directory for a waiter, and
//! a child whose name sorts before the waiters blocks the Java programs. This library tells the two apart.
//!
//! Java programs share a login by `.authorization("digest", "app:sesame".getBytes())` in the builder of their client.
//!
//! # Sessions
//! A session has a connection with a thread of its own. A lease is renewed by a request that the leader answers, for many leases at once.
//!
//! - *The answer of a follower proves nothing.* The leader ends a session if it has not heard of it for the session timeout, and a follower reports
//!   its clients only when the leader pings it, once a tick or more often. So a lease counts from an earlier request: one that was answered a
//!   tick before the latest write was sent. A lease is then valid for the session timeout without a tick and a half and the drift of
//!   clocks: about 25 of 30 seconds with a tick of 3 s, and about 26 with 2 s. A session of two ticks leaves half a tick.
//! - *A shorter ttl* is a deadline of the holder alone: if it dies, others wait until the session ends. A longer ttl is shortened.
//! - *A ping that is late*, because the leader's process is starved, may end sessions early by as much if its follower dies just then.
//! - *A client that moves to a server with other session bounds* is not told that its session is shorter there.
//!
//! # Tokens
//! The transaction of a token is the one that created the node of the holder. For permits, it is the one that took the slots. The base is in
//! the node `leasehold-base`, one for each chroot, so tokens of different chroots do not rise together. An election raises tokens as much as 76 hours
//! of the clock do, so some 26,000 elections fit below the highest token, 2^53 - 1. An ensemble with more than one election in 76 hours, or more
//! than 15,625 writes a second on average, runs ahead of the clock.
//!
//! # Security
//! The same user under `digest` and under `sasl` is two logins. Listings show directories of other logins as held by another library. Everybody can
//! read `leasehold-base`, and who revoked a lease. Do not make servers require SASL: the client library sends its watches before the login is
//! complete when it connects again, and such a server then ends the session.
//!
//! For SASL, servers need `authProvider.1=org.apache.zookeeper.server.auth.SASLAuthenticationProvider`, and a JAAS file that
//! `-Djava.security.auth.login.config=FILE` names, with this section:
//!
//! ```text
//! Server {
//!   org.apache.zookeeper.server.auth.DigestLoginModule required user_app="sesame";
//! };
//! ```
//!
//! For TLS, they need `secureClientPort` and `serverCnxnFactory=org.apache.zookeeper.server.NettyServerCnxnFactory`.
//!
//! # Limits
//! - The directory of a lock is a container: the servers remove it some time after its last node has gone. It takes no more nodes once its
//!   counter is within a million of 2^31, because Curator's order breaks there. The counter begins anew when the directory was removed.
//! - Notes of revocations (`leasehold-revoked`) are kept for an hour at least, and latches for a day after their end.
//! - Latches expire by the clocks of the clients, and their waiters poll. Listings do not show the remaining time of a lease.
//! - Over loopback, a pair of acquire and release takes 1.1 times as long as a bare creation, list and deletion. Renewing 100 leases takes two to
//!   three times as long as renewing one.
//! - In Curator 5.4.0, a thread may take a read lock under its write lock. A writer that waits meanwhile does not see that reader: when the write lock
//!   is released, both hold. Java programs among themselves have the same problem.
//! - Where a thousand clients waited for one name, each in a session of its own, it took 2 ms to join the queue, and less than 1 ms to hand the
//!   lock over.
//! - `exceed path quota`: raise the quota of the path. `the chroot ... does not exist`: create it, or correct the URL.

mod claim;
mod config;
mod connect;
mod data;
mod described;
mod directory;
mod entries;
mod entry;
mod error;
mod examine;
mod inspect;
mod latches;
mod path;
mod place;
mod session;
mod sessions;
mod tokens;

pub mod blocking;
pub mod nonblocking;

pub use config::ZookeeperConfig;
