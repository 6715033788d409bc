//! `leasehold elect`: the command runs whenever this machine leads.

use signal_hook::consts::{SIGINT, SIGQUIT, SIGTERM};

use super::Session;
use super::failures::Stop;
use crate::exit::{Exit, Failure};
use crate::lock_request::Patience;
use crate::report::Report;

/// Signals that ask for the end of leasehold as well, not only of a term.
const END: [i32; 3] = [SIGTERM, SIGINT, SIGQUIT];

impl Session<'_> {
    /// Runs the command in each term of this machine, until it ends by itself or a signal asks for the end.
    pub(super) fn elect(mut self) -> Result<Exit, Failure> {
        loop {
            let failure = match self.once() {
                Ok(exit) => return Ok(exit),
                Err(Stop::Failed(failure)) => return Err(failure),
                Err(Stop::Lost(failure)) => failure,
            };
            if END.iter().any(|&signal| self.signals.has_had(signal)) {
                return Err(failure);
            }
            let message = format!("{}; waiting to be elected again", failure.message);
            let next = Report { name: self.report.name.clone(), store: self.report.store.clone(), ..Report::default() };
            self.voice.end_term(std::mem::replace(self.report, next), failure.exit, message);
            // The lease may have been lost because the store is away.
            self.request.patience = Patience::Always;
        }
    }
}
