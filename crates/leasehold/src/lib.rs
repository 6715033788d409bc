//! Distributed locks with leases, loss signals and fencing tokens
