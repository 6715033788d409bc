//! How a node's counter rises: by a claim, and to the node's clock.

use lock_core::{BackendError, Claim, FencingToken, Moment, TokenRange};

use lock_rules::used_up;

use super::lock::node_time;
use crate::BACKEND;

/// How far above the node's clock a wish counts, in microseconds. Chosen: far above the error of any client's clock,
/// far below what would use the tokens up.
const WISH_ABOVE_CLOCK_MAX: u64 = 1_000_000;

/// How far above the node's clock a floor counts, in microseconds. Chosen: far above every token that a deployment draws
/// by its clocks, far below what would use the tokens up.
const FLOOR_ABOVE_CLOCK_MAX: u64 = 86_400_000_000;

/// The clock as the value that a counter is raised to. A clock beyond all tokens is wrong, and would use them up.
pub(super) fn height(clock: Moment) -> u64 {
    let height = node_time(clock).0;
    if height > FencingToken::MAX.get() { 0 } else { height }
}

/// f = max(F + width, wish, floor + width), and the tokens that end with it.
pub(super) fn draw(counter: u64, clock: Moment, claim: &Claim, wish: FencingToken) -> Result<TokenRange, BackendError> {
    let width = claim.width.get();
    let clock = node_time(clock).0;
    let wish = wish.get().min(clock.saturating_add(WISH_ABOVE_CLOCK_MAX));
    let floor = claim.floor.map_or(0, FencingToken::get).min(clock.saturating_add(FLOOR_ABOVE_CLOCK_MAX));
    let token = wish.max(counter.max(floor).saturating_add(width));
    TokenRange::above(token.saturating_sub(width), claim.width).map_err(|invalid| used_up(BACKEND, invalid))
}
