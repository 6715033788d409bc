//! Epochs of work: what a flush waits for.

use std::sync::{Arc, OnceLock};

/// The time between two flushes. Work holds an `Arc` of the epoch in which it was queued; when the last one is dropped, the flush
/// that ended the epoch is answered, by dropping what it was given. What follows from the work belongs to the next epoch.
pub(crate) struct FlushEpoch<F>(OnceLock<(F, Arc<Self>)>);

impl<F> FlushEpoch<F> {
    /// Ends this epoch, and returns the next one. It keeps the next one alive, so a flush waits for all earlier work.
    pub(crate) fn flush(&self, flushed: F) -> Arc<Self> {
        let next = Arc::default();
        _ = self.0.set((flushed, Arc::clone(&next)));
        next
    }
}

impl<F> Default for FlushEpoch<F> {
    fn default() -> Self {
        Self(OnceLock::new())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::{Receiver, TryRecvError, channel};

    use super::*;

    fn is_answered(flushed: &Receiver<()>) -> bool {
        flushed.try_recv() == Err(TryRecvError::Disconnected)
    }

    #[test]
    fn a_flush_waits_for_all_work_before_it_and_none_after() {
        let (mut epoch, flushes) = (Arc::<FlushEpoch<_>>::default(), [(); 3].map(|()| channel()));
        let (mut work, mut flushed) = (Vec::new(), Vec::new());
        for (sender, receiver) in flushes {
            work.push(Arc::clone(&epoch));
            epoch = epoch.flush(sender);
            flushed.push(receiver);
        }
        work.remove(1);
        assert!(!flushed.iter().any(is_answered), "the first work is not done");
        work.remove(0);
        assert!(is_answered(&flushed[0]) && is_answered(&flushed[1]), "nothing is left to wait for");
        assert!(!is_answered(&flushed[2]), "the last work is not done");
        work.clear();
        assert!(is_answered(&flushed[2]));
    }
}
