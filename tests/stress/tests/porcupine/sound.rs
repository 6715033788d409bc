//! A Redis that is suspended and killed, and never forgets a lease.

use std::convert::Infallible;
use std::ops::Range;
use std::time::Duration;

use stress::nemesis::{Effect, Server};
use test_support::RedisServer;

/// The server, which writes every change to its file at once.
pub(crate) struct Sound(pub(crate) RedisServer);

impl Server for Sound {
    type Own = Infallible;
    const OWN: &'static [Infallible] = &[];
    const SUSPENDED_FOR: Range<Duration> = Duration::from_millis(100)..Duration::from_millis(600);

    fn notes(&self, lock: &str) -> Vec<String> {
        let holder: Option<String> = self.0.command(&["GET", lock]);
        holder.into_iter().collect()
    }

    fn suspend(&mut self) {
        self.0.stop();
    }

    fn resume(&mut self) {
        self.0.resume();
    }

    fn restart_with_data(&mut self) {
        self.0.restart_with_data();
    }

    fn begin(&mut self, own: Infallible) -> Effect {
        match own {}
    }

    fn end(&mut self, own: Infallible) -> u64 {
        match own {}
    }
}
