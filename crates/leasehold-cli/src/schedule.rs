//! The slots of a schedule, for scripts.

use leasehold::FencingToken;
use leasehold::kit::{SkipReason, Skipped};
use serde::Serialize;

/// The slots of a schedule.
#[derive(Debug, Default, Serialize)]
pub(crate) struct Schedule {
    /// The slot that the run is for, in UTC.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) job_slot: Option<String>,
    /// Earlier slots that nobody has run.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) missed: Vec<String>,
    /// Why the slot was skipped, if it was.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) skipped: Option<SkippedSlot>,
}

/// A slot of a schedule that was skipped.
#[derive(Debug, Serialize)]
pub(crate) struct SkippedSlot {
    /// `has-run`, `runs`, or `taken` if the store did not show which.
    reason: &'static str,
    /// Who ran it, or runs it, if known.
    holder: Option<String>,
    /// The token of the run in progress, if there is one.
    token: Option<u64>,
}

impl From<&Skipped> for SkippedSlot {
    fn from(skipped: &Skipped) -> Self {
        let reason = match skipped.reason {
            SkipReason::SlotHasRun => "has-run",
            SkipReason::SlotRuns => "runs",
            SkipReason::SlotTaken | SkipReason::Running | _ => "taken",
        };
        let holder = skipped.holder.as_ref().map(ToString::to_string);
        Self { reason, holder, token: skipped.token().map(FencingToken::get) }
    }
}
