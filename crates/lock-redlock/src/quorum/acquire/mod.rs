//! Acquire: a token from each node in round one, the highest of them acknowledged by a majority in round two. Where a
//! majority drew the same token, as they do where nobody else was there with a higher one, round one was enough.
//!
//! A node acknowledges a token T only to the owner that holds there, and only if the grant's own f is not above T; then its
//! counter is at least T. Two majorities share a node, and there the later holder's f was drawn after that: it is above T,
//! and so is the later T. No clock, order or duplicate matters to that, while the shared node keeps its counter.
//!
//! Reading order: `rounds` (the steps of a claim, and round one) · `announce` (round zero) · `round_two` · `state`.

mod announce;
mod round_two;
mod rounds;
mod state;

pub(super) use state::Acquire;
