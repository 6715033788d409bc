//! The machine against a model of the scripts, in virtual time.
//!
//! The stations and the keeper are the real ones. The server is a model of one Redis with our scripts, as
//! `docs/wire.md` describes them; a trace that is played against both keeps it honest. Between them is a network that
//! delays, loses, doubles and reorders, and cuts. Processes stand still, end and come back, and so does the server, with
//! its data or without. Every clock shows something else.
//!
//! One seed decides everything: [`play`] of the same seed does the same to the last letter. A run has some time in which
//! everything goes wrong, and then some in which all is well and everybody must have a turn. What must hold whatever
//! happens stands in `invariants`, one rule in each file. Each [`Fault`] is counted, so that a test can say that it
//! fired; each [`Mistake`] turns one rule off, so that a test can say that it would be found.
//!
//! `cargo test -p lock-sim` plays a thousand seeds. `LEASEHOLD_SEEDS=20000` plays more, and `LEASEHOLD_SEED=7` that one
//! alone; a seed that fails says what happened before it, and how to play it again.
//!
//! Begin with `world` (what there is, and how time goes on); then `client` and `server` (its two sides), `network` (what
//! is between them), `chaos` (what goes wrong).

mod chaos;
mod client;
mod clock;
mod diary;
mod dice;
mod env;
mod fault;
mod invariants;
mod mistake;
mod network;
mod run;
mod server;
pub mod trace;
mod world;

pub use fault::{Fault, Tally};
pub use invariants::{Broken, Rule};
pub use mistake::Mistake;
pub use run::{Report, play};
