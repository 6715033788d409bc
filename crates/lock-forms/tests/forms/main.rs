//! One source in both forms.

#![expect(clippy::duplicate_mod, reason = "one source is compiled in both forms")]

mod for_tasks;
mod for_threads;

use std::pin::pin;
use std::task::{Context, Poll, Waker};

#[test]
fn one_source_makes_both_forms() {
    let counter = for_threads::source::Counter(3);
    assert_eq!(counter.add(|more| more + 4), Some(10));
    assert_eq!(counter.only_here(), 3);
    let counter = for_tasks::source::Counter(3);
    let added = pin!(counter.add(async |more| more + 4));
    assert_eq!(added.poll(&mut Context::from_waker(Waker::noop())), Poll::Ready(Some(10)));
}
