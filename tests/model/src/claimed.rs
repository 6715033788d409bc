//! What the claims of both models have in common.

/// Something that is claimed of a model.
pub trait Claimed: Copy + Ord {
    /// What is claimed in one line.
    fn text(self) -> &'static str;

    /// Whether a path that was found for the claim proves it; else it is a counterexample.
    fn is_proved_by_path(self) -> bool;
}
