//! From the turns of programs in other languages to figures.

use std::time::Duration;

use anyhow::{Context, Result};
use bench_measure::{Report, Turn};
use test_support::PeerTurn;

use crate::beside::figures::Figures;

/// The figures of pairs.
pub(crate) fn pairs(turns: &[PeerTurn]) -> Result<Figures> {
    let mut report = spanned(turns)?;
    report.set_times(turns.iter().map(|turn| turn.released - turn.wanted).collect());
    Figures::of_pairs(&report)
}

/// The figures of hand-overs: the turns of each program.
pub(crate) fn hand_overs(programs: &[Vec<PeerTurn>]) -> Result<Figures> {
    let reports: Vec<_> = programs.iter().map(|turns| spanned(turns)).collect::<Result<_>>()?;
    let turn = |turn: &PeerTurn| Turn { waiter: turn.thread, acquired: turn.acquired, released: turn.leaving };
    let turns: Vec<Vec<_>> = programs.iter().map(|turns| turns.iter().map(turn).collect()).collect();
    Figures::of_turns(&reports, &turns)
}

/// A report that says from when to when these took.
fn spanned(turns: &[PeerTurn]) -> Result<Report> {
    let begun = turns.iter().map(|turn| turn.wanted).min().context("the other library took no lock")?;
    let ended = turns.iter().map(|turn| turn.released).max().unwrap_or(begun);
    Ok(Report { begun, elapsed: Duration::from_nanos(ended - begun), ..Report::default() })
}
