//! Calls that block, all at the same time.

use std::panic::resume_unwind;
use std::thread::{Builder, scope};

/// How many calls are made at the same time. Chosen: more threads take longer to start than a request takes.
const CALLS_MAX: usize = 32;

/// Calls a function for each item, and returns the results in the order of the items. The caller's thread makes the first
/// call, and each other that no thread can be started for.
pub(super) fn at_once<T, R>(items: &[T], call: impl Fn(&T) -> R + Sync) -> Vec<R>
where
    T: Sync,
    R: Send,
{
    items.chunks(CALLS_MAX).flat_map(|items| together(items, &call)).collect()
}

fn together<T: Sync, R: Send>(items: &[T], call: &(impl Fn(&T) -> R + Sync)) -> Vec<R> {
    let Some((first, others)) = items.split_first() else { return Vec::new() };
    scope(|scope| {
        let start = |item| Builder::new().spawn_scoped(scope, move || call(item)).map_err(|_| item);
        let others: Vec<_> = others.iter().map(start).collect();
        let mut results = vec![call(first)];
        results.extend(others.into_iter().map(|other| match other {
            Ok(thread) => thread.join().unwrap_or_else(|panic| resume_unwind(panic)),
            Err(item) => call(item),
        }));
        results
    })
}

#[cfg(test)]
mod tests {
    use std::sync::Barrier;

    use super::*;

    #[test]
    fn calls_are_made_at_the_same_time_and_answered_in_order() {
        let all_here = Barrier::new(CALLS_MAX);
        let items: Vec<_> = (0..CALLS_MAX * 2).collect();
        let call = |item: &usize| {
            all_here.wait();
            item * 2
        };
        let doubled = test_support::bounds::within("all calls to be made", || at_once(&items, call));
        assert_eq!(doubled, items.iter().map(|item| item * 2).collect::<Vec<_>>());
        assert!(at_once(&[], |item: &usize| *item).is_empty());
    }
}
