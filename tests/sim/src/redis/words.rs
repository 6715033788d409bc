//! What goes over the network to the one Redis and back.

use super::server::{Ask, Say};
use crate::network::{StoreId, Talk};

/// There is only one.
pub(super) const REDIS: StoreId = StoreId(0);

/// Clients and the server.
#[derive(Debug)]
pub(crate) enum Words {}

impl Talk for Words {
    type Ask = Ask;
    type Say = Say;
}
