//! A node for tokio.

mod redis_node;

use lock_forms::nonblocking as both;

use super::ask::{joined, parts};
use super::open;
use crate::nonblocking::{Connections, large};

pub use redis_node::RedisNode;
