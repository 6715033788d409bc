//! Names of tables and columns, quoted.

use std::fmt;

use lock_core::Invalid;

/// The name of a table or column, which any text can be. Shown as SQL, in quotes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Identifier(String);

impl Identifier {
    pub(super) fn new(name: &str) -> Result<Self, Invalid> {
        let refuse =
            |problem| Err(Invalid::new("name of a table or column", name, problem, "give its name in the schema"));
        if name.is_empty() {
            return refuse("it is empty");
        }
        if name.contains('\0') {
            return refuse("it contains a zero byte");
        }
        Ok(Self(name.to_owned()))
    }

    /// The name itself.
    pub(super) fn name(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Identifier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "\"{}\"", self.0.replace('"', "\"\""))
    }
}
