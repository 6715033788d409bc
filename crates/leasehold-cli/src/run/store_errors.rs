//! Store errors that do not end a wait: some of them need an operator.

use std::collections::BTreeSet;
use std::time::Duration;

use leasehold::BackendError;
use leasehold::clock::Moment;

/// How long the store may fail before it is reported. Chosen: a restarting server is back sooner, and a single request that
/// was delayed by others, for up to a second, is not worth a message.
const PATIENCE: Duration = Duration::from_secs(3);

/// An error of the store, for display.
#[derive(Debug)]
pub(crate) struct StoreError {
    text: String,
    /// The part that stays the same while the error does.
    gist: String,
}

impl From<String> for StoreError {
    fn from(text: String) -> Self {
        Self { gist: text.clone(), text }
    }
}

impl From<BackendError> for StoreError {
    fn from(error: BackendError) -> Self {
        Self { gist: error.gist(), text: error.to_string() }
    }
}

/// The errors of a wait, each of which is reported once.
#[derive(Debug, Default)]
pub(crate) struct StoreErrors {
    failing_since: Option<Moment>,
    told: BTreeSet<String>,
}

impl StoreErrors {
    /// The text of the current error, if the store has failed for a while and this error was not reported before.
    pub(crate) fn unreported(&mut self, now: Moment, error: Option<StoreError>) -> Option<String> {
        let Some(StoreError { text, gist }) = error else {
            self.failing_since = None;
            return None;
        };
        let since = *self.failing_since.get_or_insert(now);
        (now.since(since) >= PATIENCE && self.told.insert(gist)).then_some(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_that_lasts_is_told_once_and_another_one_too() {
        let mut errors = StoreErrors::default();
        let mut news = |second: u64, message: Option<&str>| {
            let now = Moment::ORIGIN + Duration::from_secs(second);
            errors.unreported(now, message.map(|message| message.to_owned().into()))
        };
        for (second, message, told) in [
            (0, None, None),
            (1, Some("full"), None), // it may pass
            (3, Some("full"), None),
            (4, Some("full"), Some("full")),
            (9, Some("full"), None),
            (10, Some("hot"), Some("hot")),
            (11, Some("full"), None),
            (12, None, None),
            (13, Some("gone"), None),
            (16, Some("gone"), Some("gone")),
        ] {
            assert_eq!(news(second, message).as_deref(), told, "second {second}");
        }
    }
}
