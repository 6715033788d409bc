//! Findings about a store, for operators.

use serde::Serialize;

/// How bad it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// It is as it should be, or as it cannot be otherwise.
    Ok,
    /// Worth knowing. It endangers no lock.
    Remark,
    /// It endangers locks.
    Finding,
    /// It could not be found out, or nothing works.
    Failed,
}

/// One thing that was looked at.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Check {
    /// Its subject, in a word or two.
    pub check: &'static str,
    /// Which server it is about, if the store has several.
    pub server: Option<String>,
    /// How bad it is.
    pub verdict: Verdict,
    /// What was found.
    pub message: String,
    /// The remedy.
    pub remedy: Option<String>,
}

impl Check {
    fn new(verdict: Verdict, check: &'static str, message: impl Into<String>) -> Self {
        Self { check, server: None, verdict, message: message.into(), remedy: None }
    }

    /// All is well.
    pub fn ok(check: &'static str, message: impl Into<String>) -> Self {
        Self::new(Verdict::Ok, check, message)
    }

    /// Worth knowing.
    pub fn remark(check: &'static str, message: impl Into<String>) -> Self {
        Self::new(Verdict::Remark, check, message)
    }

    /// A danger for locks.
    pub fn finding(check: &'static str, message: impl Into<String>) -> Self {
        Self::new(Verdict::Finding, check, message)
    }

    /// Not known, or not working.
    pub fn failed(check: &'static str, message: impl Into<String>) -> Self {
        Self::new(Verdict::Failed, check, message)
    }

    /// The same about one of several servers.
    #[must_use]
    pub fn of(self, server: &str) -> Self {
        Self { server: Some(server.to_owned()), ..self }
    }

    /// The same with something to do about it.
    #[must_use]
    pub fn with_remedy(self, remedy: impl Into<String>) -> Self {
        Self { remedy: Some(remedy.into()), ..self }
    }
}
