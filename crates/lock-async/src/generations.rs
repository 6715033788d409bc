//! What a flush waits for: the work that was handed over before it.

use std::sync::{Arc, OnceLock};

/// The time between one flush and the next, which all work of that time keeps alive. When it is dropped, the flush at its
/// end is answered, by dropping what it was given. What follows from the work belongs to the next one.
pub(crate) struct Generation<F>(OnceLock<(F, Arc<Self>)>);

impl<F> Generation<F> {
    /// Ends this generation, and returns the next one. This one keeps that one alive, so a flush waits for all work before.
    pub(crate) fn flush(&self, flushed: F) -> Arc<Self> {
        let next = Arc::default();
        _ = self.0.set((flushed, Arc::clone(&next)));
        next
    }
}

impl<F> Default for Generation<F> {
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
        let (mut generation, flushes) = (Arc::<Generation<_>>::default(), [(); 3].map(|()| channel()));
        let (mut work, mut flushed) = (Vec::new(), Vec::new());
        for (sender, receiver) in flushes {
            work.push(Arc::clone(&generation));
            generation = generation.flush(sender);
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
