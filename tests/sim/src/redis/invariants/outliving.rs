//! No key outlives its lease or its place: after a quiet time the store is empty except for the counter and the marker.

use crate::redis::server::Server;

pub(crate) fn check(server: &Server) -> Result<(), String> {
    if server.data.locks.is_empty() { Ok(()) } else { Err(format!("the store still holds {:?}", server.data)) }
}
