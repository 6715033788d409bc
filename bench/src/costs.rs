//! What one of many cost the processes that took part.

use std::time::Duration;

use bench_measure::{Report, Subject};

use crate::figures::{Figure, Figures};
use crate::server::Stats;

/// Adds what pairs took to what they cost.
pub(crate) fn of_pairs(report: &Report, costs: Figures) -> Figures {
    let micros = |nanos: u64| nanos as f64 / 1e3;
    costs
        .with(Figure::P50, micros(report.p50))
        .with(Figure::P99, micros(report.p99))
        .with(Figure::Max, micros(report.max))
        .with(Figure::Rate, report.done as f64 / report.elapsed.as_secs_f64())
}

/// What one of `done` cost both sides.
pub(crate) fn costs(subject: Subject, done: f64, reports: &[Report], [before, after]: [&Stats; 2]) -> Figures {
    let server = after.processor.saturating_sub(before.processor);
    client_costs(done, reports)
        .with(Figure::Commands, after.sent_since(before, plainly_sent(subject)) as f64 / done)
        .with(Figure::ServerTime, server.as_secs_f64() * 1e6 / done)
        .with(Figure::ScriptTail, after.script_tail.unwrap_or(f64::NAN))
}

/// What one of `done` cost the clients.
pub(crate) fn client_costs(done: f64, reports: &[Report]) -> Figures {
    let clients: Duration = reports.iter().map(|report| report.processor).sum();
    let failed: u64 = reports.iter().map(|report| report.failed).sum();
    Figures::default().with(Figure::ClientTime, clients.as_secs_f64() * 1e6 / done).with(Figure::Failed, failed as f64)
}

/// What a subject sends for a pair beside scripts. Its own scripts, those for renewal apart, do not run that.
fn plainly_sent(subject: Subject) -> &'static [&'static str] {
    match subject {
        Subject::Bare | Subject::Rslock | Subject::RslockEager => &["set"],
        Subject::ByHand
        | Subject::ReadByHand
        | Subject::PermitByHand
        | Subject::Leasehold
        | Subject::Read
        | Subject::Permit
        | Subject::Chain0
        | Subject::Pool
        | Subject::SixteenthHeld
        | Subject::OneReplica
        | Subject::TwoReplicas
        | Subject::Dwell => &[],
    }
}
