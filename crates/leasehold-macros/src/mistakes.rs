//! Several mistakes in one use of the attribute, which are reported together.

use syn::{Error, Result};

/// The mistakes found so far.
#[derive(Default)]
pub(crate) struct Mistakes(Option<Error>);

impl Mistakes {
    pub(crate) fn add(&mut self, mistake: Error) {
        match &mut self.0 {
            None => self.0 = Some(mistake),
            Some(found) => found.combine(mistake),
        }
    }

    /// The value, unless it is a mistake, which is kept.
    pub(crate) fn keep<T>(&mut self, read: Result<T>) -> Option<T> {
        read.map_err(|mistake| self.add(mistake)).ok()
    }

    /// All mistakes as one error.
    pub(crate) fn end(self) -> Result<()> {
        self.0.map_or(Ok(()), Err)
    }
}
