//! Latches: what waits until a number of arrivals was counted.
//!
//! A latch is no lock: nobody holds it, and it has no tokens. A store that offers latches keeps, for each name, the ids that
//! have arrived, and how many are expected. A backend translates one [`Request`] into one answer ([`Seen`]). When to ask, and
//! when a wait is over, is decided here by [`Wait`] and [`Repeat`], without I/O.

mod error;
mod repeat;
mod request;
mod wait;

pub use error::LatchError;
pub use repeat::{REPEAT_FOR, Repeat};
pub use request::{Act, ArrivalId, Count, Generation, LatchState, Request, Seen, Watching};
pub use wait::{Step, Wait};
