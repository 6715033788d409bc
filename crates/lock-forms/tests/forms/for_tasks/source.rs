//! A source for both forms.

use super::both;

/// Counts.
#[derive(Debug)]
pub(crate) struct Counter(pub(crate) u32);

#[both]
impl Counter {
    /// Adds what the work makes of the count.
    ///
    /// # Cancel safety
    /// Changes nothing.
    ///
    /// # Blocking
    /// For as long as the work takes.
    pub(crate) async fn add(&self, work: impl AsyncFnOnce(u32) -> u32) -> Option<u32> {
        let added = async |more| work(more).await + self.0;
        Some(added(self.0).await)
    }

    #[blocking_only]
    /// For threads.
    pub(crate) fn only_here(&self) -> u32 {
        self.0
    }
}
