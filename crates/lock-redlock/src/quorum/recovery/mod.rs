//! Recovery: a node that lost its memory must not vote before everything is over that it may have forgotten.
//!
//! A pass looks at all nodes. One that has forgotten is marked with a fresh epoch, and from then on abstains; that is noted at
//! all nodes. Its dwell lasts for the longest ttl in use, which enough of the others know, and otherwise for the longest that
//! is allowed. It is over when this client has measured it itself, or when a majority of the nodes has notes that are old
//! enough: so processes that live for a second can end it between them. Then, and not before, the highest counter of
//! the others is read, and the node is installed with it. Each step compares before it sets, so any number of clients may
//! pass at once, and each pass may end anywhere.
//!
//! Reading order: `steps` (the steps of a pass) · `identity` (which answers count) · `dwell` (how long a node abstains) ·
//! `notes` (since when) · `moving` (how a deployment becomes another one) · `outcome` and `report` (what was found) ·
//! `pass` (what one pass knows).

mod dwell;
mod identity;
mod moving;
mod notes;
mod outcome;
mod pass;
mod report;
mod steps;

pub(super) use dwell::at_once;
pub(super) use pass::Pass;
pub use pass::Purpose;
pub use report::{NodeReport, Recovery, Report};
