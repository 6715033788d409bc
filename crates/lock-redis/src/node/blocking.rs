//! A node for plain threads.

#[path = "nonblocking/redis_node.rs"]
mod redis_node;

use lock_forms::blocking as both;

use super::ask::{joined, parts};
use super::open;
use crate::blocking::{Connections, large};

pub use redis_node::RedisNode;
