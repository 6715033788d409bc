//! The parts of the pages about performance that a run fills in: one for users, one for contributors.

use bench_measure::Subject;
use comfy_table::Cell;

use crate::compared::title;
use crate::figures::Figure;
use crate::kind::Kind;
use crate::measured::Measured;
use crate::ratio::Ratio;
use crate::results::Results;
use crate::table::{markdown_table, ratio, right, shown};
use crate::targets::{Bound, Verdict};

/// The figures in a row for contributors, each with its ratio.
const SHOWN: [Figure; 4] = [Figure::ServerTime, Figure::ClientTime, Figure::P50, Figure::Rate];
/// The figures in a row for users.
const SHOWN_TO_USERS: [Figure; 3] = [Figure::P50, Figure::ClientTime, Figure::Rate];
/// The scenarios that users see: the usual runtime, and one of each store.
const FOR_USERS: [&str; 11] = [
    "one-mt",
    "dropped-mt",
    "tasks-64-mt",
    "tasks-1000-mt",
    "blocking-64",
    "quorum-one",
    "sqlite-one",
    "postgres-one",
    "mysql-one",
    "zookeeper-one",
    "etcd-one",
];

const LEGEND: &str = "A ratio is the median of the ratios of each round. After it is its range over the rounds, where they differ. It is in bold where \
                      leasehold is slower, or costs more, in every round";

/// A line of a table: a subject of this library, and the one that it is compared with.
struct Row<'a> {
    measured: &'a Measured,
    ours: Subject,
    base: Subject,
}

/// Another column, after the figures.
struct More {
    head: &'static str,
    text: fn(&Row<'_>) -> String,
}

const BEHIND_RSLOCK: More = More { head: "behind rslock", text: behind_rslock };

/// The parts of the page for users, with their names.
pub(crate) fn for_users(results: &Results) -> Vec<(&'static str, String)> {
    let chosen: Vec<_> = rows(results, is_free).filter(|row| FOR_USERS.contains(&row.measured.scenario.name)).collect();
    vec![("run", run(results)), ("free locks", table(&chosen, &SHOWN_TO_USERS, &[]))]
}

/// The parts of the page for contributors, with their names.
pub(crate) fn for_contributors(results: &Results) -> Vec<(&'static str, String)> {
    let (free, contended): (Vec<_>, Vec<_>) =
        (rows(results, is_free).collect(), rows(results, |kind| !is_free(kind)).collect());
    vec![
        ("run", run(results)),
        ("free locks", table(&free, &SHOWN, &[BEHIND_RSLOCK])),
        ("contended locks", table(&contended, &SHOWN, &[])),
        ("missed targets", missed(&results.targets)),
    ]
}

fn run(results: &Results) -> String {
    format!("The last run: {}. {}. {LEGEND}.", results.machine.line(), results.method)
}

fn is_free(kind: &Kind) -> bool {
    !matches!(kind, Kind::Contend { .. } | Kind::DatabaseContend { .. } | Kind::Permits { .. } | Kind::Pool(_))
}

/// One row or more for each scenario that has ratios.
fn rows(results: &Results, wanted: fn(&Kind) -> bool) -> impl Iterator<Item = Row<'_>> {
    let scenarios = results.scenarios.iter().filter(move |measured| wanted(&measured.scenario.kind));
    scenarios.flat_map(of_scenario).filter(|row| SHOWN.iter().any(|figure| row.ratio(*figure).is_some()))
}

fn of_scenario(measured: &Measured) -> Vec<Row<'_>> {
    let row = |ours, base| Row { measured, ours, base };
    let scenario = measured.scenario;
    if !matches!(scenario.kind, Kind::Contend { .. }) {
        let compared = row(scenario.ours(), scenario.base());
        return Some(compared).filter(|row| row.ours != row.base).into_iter().collect();
    }
    // Nobody would run rslock with its usual delay where many want one lock, nor a client without one.
    let fair = measured.subject(Subject::RslockEager).map_or(Subject::Bare, |eager| eager.subject);
    vec![row(Subject::Chain0, fair), row(Subject::Leasehold, fair)]
}

impl Row<'_> {
    fn ratio(&self, figure: Figure) -> Option<Ratio> {
        self.measured.ratio(self.ours, figure, self.base)
    }

    fn title(&self) -> String {
        let scenario = self.measured.scenario;
        if self.ours == scenario.ours() {
            scenario.title.to_owned()
        } else {
            format!("{} ({})", scenario.title, title(self.ours))
        }
    }

    /// A figure and its ratio.
    fn pair(&self, figure: Figure) -> [Cell; 2] {
        let value = self.measured.subject(self.ours).and_then(|ours| ours.figures.get(figure)).map(shown);
        let marked = |it| if loses(figure, it) { format!("**{}**", ratio(it)) } else { ratio(it) };
        [right(value), right(self.ratio(figure).map(marked))]
    }
}

fn table(rows: &[Row<'_>], figures: &[Figure], more: &[More]) -> String {
    let mut table = markdown_table();
    let heads = figures.iter().flat_map(|figure| [figure.head(), "ratio"]);
    table.set_header(["", "compared with"].into_iter().chain(heads).chain(more.iter().map(|more| more.head)));
    for row in rows {
        let names = [Cell::new(row.title()), Cell::new(title(row.base))];
        let figures = figures.iter().flat_map(|figure| row.pair(*figure));
        table.add_row(names.into_iter().chain(figures).chain(more.iter().map(|more| Cell::new((more.text)(row)))));
    }
    table.trim_fmt()
}

fn loses(figure: Figure, ratio: Ratio) -> bool {
    if figure == Figure::Rate { ratio.is_below_one() } else { ratio.is_above_one() }
}

/// Where another library is better, with its ratios.
fn behind_rslock(row: &Row<'_>) -> String {
    let loss = |figure: &Figure| {
        let to_rslock = row.measured.ratio(row.ours, *figure, Subject::Rslock)?;
        loses(*figure, to_rslock).then(|| format!("{} {}", figure.head(), ratio(to_rslock)))
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
    use crate::machine::Machine;
    use crate::scenario::Scenario;

    fn run_of(scenario: &str, rounds: Vec<(Subject, Vec<Figures>)>) -> Results {
        let measured = Measured::new(Scenario::named(scenario).unwrap(), rounds);
        Results::new(Machine::look("7.0".to_owned()), "Once".to_owned(), vec![measured], Vec::new())
    }

    /// Two rounds, of which the second one is slower by a fifth.
    fn one(server: f64, rate: f64) -> Results {
        let costs = |server: f64, rate: f64| {
            let round =
                |more: f64| Figures::default().with(Figure::ServerTime, server * more).with(Figure::Rate, rate / more);
            vec![round(1.0), round(1.2)]
        };
        let same = |server, rate| vec![costs(server, rate)[0].clone(), costs(server, rate)[0].clone()];
        let others = [(Subject::Bare, same(10.0, 100.0)), (Subject::Rslock, same(12.0, 90.0))];
        run_of("one", others.into_iter().chain([(Subject::Leasehold, costs(server, rate))]).collect())
    }

    fn cells(table: &str, row: usize) -> Vec<String> {
        table.lines().nth(row + 2).unwrap().split('|').map(|cell| cell.trim().to_owned()).collect()
    }

    #[test]
    fn a_row_says_where_we_lose_in_every_round() {
        let row = |server, rate| cells(&for_contributors(&one(server, rate))[1].1, 0);
        assert_eq!(row(13.0, 110.0)[3..5], ["14.3", "**1.43 (1.30-1.56)**"]);
        assert_eq!(row(13.0, 110.0)[9..12], ["101", "1.01 (0.92-1.10)", "server µs 1.19 (1.08-1.30)"]);
        assert_eq!(row(9.0, 80.0)[3..5], ["9.90", "0.99 (0.90-1.08)"]);
        assert_eq!(row(9.0, 80.0)[9..12], ["73.3", "**0.73 (0.67-0.80)**", "rate /s 0.81 (0.74-0.89)"]);
    }

    #[test]
    fn a_contended_lock_is_compared_with_clients_that_poll_often() {
        let rate = |rate| vec![Figures::default().with(Figure::Rate, rate)];
        let subjects = [Subject::Bare, Subject::Rslock, Subject::RslockEager, Subject::Chain0, Subject::Leasehold];
        let rates = subjects.into_iter().zip([10.0, 1.0, 20.0, 40.0, 200.0].map(rate)).collect();
        let table = &for_contributors(&run_of("split-8", rates))[2].1;
        assert_eq!(cells(table, 0)[1], "8 waiters for one lock, two processes (leasehold, chain 0)");
        assert_eq!(cells(table, 0)[9..11], ["40.0", "2.00"]);
        assert_eq!(cells(table, 1)[2], "rslock, 10 ms");
        assert_eq!(cells(table, 1)[9..11], ["200", "10.0"]);
    }

    #[test]
    fn users_see_scenarios_that_there_are() {
        assert!(FOR_USERS.iter().all(|name| Scenario::named(name).is_some_and(|scenario| is_free(&scenario.kind))));
    }

    #[test]
    fn missed_targets_are_listed_by_scenario() {
        let missed = |server| missed(&one(server, 100.0).targets);
        assert_eq!(missed(11.0), "1 of 1 targets are met.");
        let listed = missed(13.0);
        assert!(
            listed.starts_with("0 of 1") && listed.contains("| `one`    | server µs, to bare: 1.43, not ≤ 1.25 |"),
            "{listed}"
        );
    }
}
