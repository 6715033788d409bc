//! The check in SQL, for rusqlite. The statements for other databases are in `docs/book/src/fencing.md`.
//!
//! [`FenceColumn`] has a fence in each row, and makes one statement of the check and the write. [`FenceTable`] has the fences
//! in a table of their own, and makes one transaction of the check and whatever else the transaction does.
//!
//! A fence is a number: 0 at first, and then the highest token that it was raised to or written with.

mod column;
mod error;
mod fence;
mod identifier;
mod table;

pub use column::{FenceColumn, Value};
pub use error::SqlError;
pub use table::FenceTable;
