//! The rules that need no rows.

#[cfg(test)]
mod entries;
