//! The two forms.

/// The form in which an item is compiled.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Form {
    Nonblocking,
    Blocking,
}

impl Form {
    /// The section of documentation that is for the other form.
    pub(crate) fn foreign_section(self) -> &'static str {
        match self {
            Self::Nonblocking => "# Blocking",
            Self::Blocking => "# Cancel safety",
        }
    }
}
