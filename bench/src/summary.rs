//! The parts of the page about performance that a run fills in: what it says in short, and where this library loses.

use bench_measure::Subject;
use comfy_table::{Cell, CellAlignment};

use crate::compared::title;
use crate::figures::Figure;
use crate::kind::Kind;
use crate::measured::{Measured, OfSubject};
use crate::results::Results;
use crate::table::{markdown_table, shown};
use crate::targets::{Bound, Verdict};

/// What a row of the short table shows, each with its ratio.
const SHOWN: [Figure; 4] = [Figure::ServerTime, Figure::ClientTime, Figure::P50, Figure::Rate];
/// Ratios nearer to 1 than this are noise.
const NOISE: f64 = 0.05;

/// All parts with their names.
pub(crate) fn parts(results: &Results) -> Vec<(&'static str, String)> {
    let run = format!("The last run: {}. {}.", results.machine.line(), results.method);
    let free: fn(&Kind) -> bool = |kind| !is_contended(kind);
    vec![
        ("run", run),
        ("free locks", short(&results.scenarios, free)),
        ("contended locks", short(&results.scenarios, is_contended)),
        ("missed targets", missed(&results.targets)),
    ]
}

fn is_contended(kind: &Kind) -> bool {
    matches!(kind, Kind::Contend { .. } | Kind::Pool(_))
}

/// One row for each scenario that has ratios: this library and what it is compared with.
fn short(scenarios: &[Measured], wanted: fn(&Kind) -> bool) -> String {
    let mut table = markdown_table();
    let heads = SHOWN.iter().flat_map(|figure| [figure.head(), "ratio"]);
    table.set_header(["", "compared with"].into_iter().chain(heads).chain(["behind rslock"]));
    for measured in scenarios.iter().filter(|measured| wanted(&measured.scenario.kind)) {
        let base = measured.scenario.base();
        let Some(ours) = measured.ours().filter(|ours| ours.subject != base) else { continue };
        if SHOWN.iter().all(|figure| ours.to_base.get(*figure).is_none()) {
            continue;
        }
        let names = [Cell::new(measured.scenario.title), Cell::new(title(base))];
        let figures = SHOWN.iter().flat_map(|figure| pair(ours, *figure));
        table.add_row(names.into_iter().chain(figures).chain([Cell::new(behind(measured, ours))]));
    }
    table.trim_fmt()
}

/// A figure and its ratio, which is in bold where we lose.
fn pair(ours: &OfSubject, figure: Figure) -> [Cell; 2] {
    let value = ours.figures.get(figure).map_or_else(|| "-".to_owned(), shown);
    let ratio = ours.to_base.get(figure).map_or_else(
        || "-".to_owned(),
        |ratio| if loses(figure, ratio) { format!("**{}**", shown(ratio)) } else { shown(ratio) },
    );
    [value, ratio].map(|text| Cell::new(text).set_alignment(CellAlignment::Right))
}

fn loses(figure: Figure, ratio: f64) -> bool {
    if figure == Figure::Rate { ratio < 1.0 / (1.0 + NOISE) } else { ratio > 1.0 + NOISE }
}

/// Where another library is better, with its ratios.
fn behind(measured: &Measured, ours: &OfSubject) -> String {
    let loss = |figure: &Figure| {
        let ratio = measured.ratio(ours.subject, *figure, Subject::Rslock)?;
        loses(*figure, ratio).then(|| format!("{} {}", figure.head(), shown(ratio)))
    };
    SHOWN.iter().filter_map(loss).collect::<Vec<_>>().join(" · ")
}

/// The targets that were missed, those of a scenario in one row.
fn missed(targets: &[Verdict]) -> String {
    let judged = targets.iter().filter(|verdict| verdict.met.is_some()).count();
    let mut rows: Vec<(&str, Vec<String>)> = Vec::new();
    let mut count = 0;
    for verdict in targets.iter().filter(|verdict| verdict.met == Some(false)) {
        count += 1;
        let (scenario, what) = verdict.what.split_once(": ").unwrap_or((&verdict.what, ""));
        let (Bound::AtMost(bound) | Bound::AtLeast(bound)) = verdict.bound;
        let sign = if matches!(verdict.bound, Bound::AtMost(_)) { "≤" } else { "≥" };
        let text = format!(
            "{what}: {}, not {sign} {bound}",
            verdict.measured.map_or_else(String::new, |it| beside(it, bound))
        );
        match rows.last_mut() {
            Some((last, texts)) if *last == scenario => texts.push(text),
            Some(_) | None => rows.push((scenario, vec![text])),
        }
    }
    let mut table = markdown_table();
    table.set_header(["scenario", "missed"]);
    table.add_rows(rows.iter().map(|(scenario, texts)| [format!("`{scenario}`"), texts.join(" · ")]));
    let met = format!("{} of {judged} targets are met.", judged - count);
    if table.is_empty() { met } else { format!("{met}\n\n{}", table.trim_fmt()) }
}

/// A value that differs from its bound also where it is shown.
fn beside(value: f64, bound: f64) -> String {
    if shown(value) == shown(bound) { format!("{value:.4}") } else { shown(value) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::figures::Figures;
    use crate::scenario::Scenario;
    use crate::targets::judge;

    fn one(server: f64, rate: f64) -> Vec<Measured> {
        let costs = |server, rate| vec![Figures::default().with(Figure::ServerTime, server).with(Figure::Rate, rate)];
        let rounds = vec![
            (Subject::Bare, costs(10.0, 100.0)),
            (Subject::Leasehold, costs(server, rate)),
            (Subject::Rslock, costs(12.0, 90.0)),
        ];
        vec![Measured::new(Scenario::named("one").unwrap(), rounds)]
    }

    #[test]
    fn a_row_says_where_we_lose() {
        let row = |server, rate| {
            let table = short(&one(server, rate), |_| true);
            table.lines().last().unwrap().split('|').map(|cell| cell.trim().to_owned()).collect::<Vec<_>>()
        };
        assert_eq!(row(13.0, 97.0)[3..5], ["13.0", "**1.30**"]);
        assert_eq!(row(13.0, 97.0)[9..12], ["97.0", "0.97", "server µs 1.08"]);
        assert_eq!(row(10.0, 80.0)[3..5], ["10.0", "1.00"]);
        assert_eq!(row(10.0, 80.0)[9..12], ["80.0", "**0.80**", "rate /s 0.89"]);
    }

    #[test]
    fn missed_targets_are_listed_by_scenario() {
        assert_eq!(missed(&judge(&one(12.0, 100.0))), "1 of 1 targets are met.");
        let listed = missed(&judge(&one(13.0, 100.0)));
        assert!(
            listed.starts_with("0 of 1") && listed.contains("| `one`    | server µs, to bare: 1.30, not ≤ 1.25 |"),
            "{listed}"
        );
    }
}
