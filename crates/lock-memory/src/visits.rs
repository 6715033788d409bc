//! Counts the rows that a request looks at one after the other, for the tests of what it costs.

#[cfg(test)]
thread_local! {
    static VISITED: std::cell::Cell<u64> = const { std::cell::Cell::new(0) };
}

/// The same rows. Tests count those that are looked at.
pub(crate) fn visits<T>(rows: impl Iterator<Item = T>) -> impl Iterator<Item = T> {
    #[cfg(test)]
    let rows = rows.inspect(|_| VISITED.set(VISITED.get() + 1));
    rows
}

/// How many rows this work looks at.
#[cfg(test)]
pub(crate) fn visited(work: impl FnOnce()) -> u64 {
    let before = VISITED.get();
    work();
    VISITED.get() - before
}
