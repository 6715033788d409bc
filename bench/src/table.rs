//! Results as tables, for terminals and for pages.

use comfy_table::{Cell, CellAlignment, ContentArrangement, Table, TableStyle, presets};

use crate::compared::{title, to};
use crate::figures::Figure;
use crate::measured::{Measured, OfSubject};
use crate::ratio::Ratio;
use crate::results::Results;
use crate::targets::{Bound, Verdict};

/// One column: its head, and the text of a subject.
struct Column {
    head: &'static str,
    figure: Figure,
    of: fn(&Measured, &OfSubject, Figure) -> Option<String>,
}

impl Column {
    fn text(&self, measured: &Measured, subject: &OfSubject) -> Option<String> {
        (self.of)(measured, subject, self.figure)
    }

    fn has_values(&self, measured: &Measured) -> bool {
        measured.subjects.iter().any(|subject| self.text(measured, subject).is_some())
    }
}

/// How tables and what stands above them look.
struct Look {
    style: TableStyle,
    heading: fn(&str) -> String,
    named: fn(&str) -> String,
}

/// Everything, for a terminal.
pub(crate) fn text(results: &Results) -> String {
    let named = |name: &str| format!("--scenario {name}");
    whole(results, &Look { style: presets::NOTHING, heading: str::to_owned, named })
}

/// Everything, for a page.
pub(crate) fn markdown(results: &Results) -> String {
    let heading = |title: &str| format!("## {title}\n");
    let named = |name: &str| format!("`--scenario {name}`\n");
    whole(results, &Look { style: presets::ASCII_MARKDOWN, heading, named })
}

fn whole(results: &Results, look: &Look) -> String {
    let mut parts = vec![format!("Measured on {}. {}.\n", results.machine.line(), results.method)];
    for measured in &results.scenarios {
        parts.push((look.heading)(measured.scenario.title));
        parts.push((look.named)(measured.scenario.name));
        parts.push(of_scenario(measured, look.style) + "\n");
    }
    let verdicts = results.targets.iter().filter(|verdict| verdict.met.is_some());
    parts.push((look.heading)("Targets"));
    parts.push(of_targets(verdicts, look.style));
    parts.join("\n")
}

fn of_scenario(measured: &Measured, style: TableStyle) -> String {
    let columns = columns(measured);
    let mut table = table(style);
    table.set_header([""].into_iter().chain(columns.iter().map(|column| column.head)));
    for subject in &measured.subjects {
        let cell = |column: &Column| right(column.text(measured, subject));
        table.add_row([Cell::new(title(subject.subject))].into_iter().chain(columns.iter().map(cell)));
    }
    table.trim_fmt()
}

/// The columns of a scenario: those that anybody has a value for; what has ratios, with its ratios.
fn columns(measured: &Measured) -> Vec<Column> {
    let mut columns = Vec::new();
    for &figure in measured.scenario.columns().iter().filter(|figure| measured.has(**figure)) {
        columns.push(Column { head: figure.head(), figure, of: plain });
        let to_base = Column { head: to(measured.scenario.base()), figure, of: to_base };
        columns.extend(Some(to_base).filter(|column| figure.has_ratios() && column.has_values(measured)));
    }
    columns
}

fn plain(_: &Measured, subject: &OfSubject, figure: Figure) -> Option<String> {
    subject.figures.get(figure).map(shown)
}

fn to_base(measured: &Measured, subject: &OfSubject, figure: Figure) -> Option<String> {
    measured.ratio(subject.subject, figure, measured.scenario.base()).map(ratio)
}

fn of_targets<'a>(verdicts: impl Iterator<Item = &'a Verdict>, style: TableStyle) -> String {
    let mut table = table(style);
    table.set_header(["target", "bound", "measured", ""]);
    for verdict in verdicts {
        let bound = match verdict.bound {
            Bound::AtMost(bound) => format!("≤ {bound}"),
            Bound::AtLeast(bound) => format!("≥ {bound}"),
        };
        let verdict_word = match verdict.met {
            Some(true) => "met",
            Some(false) => "not met",
            None => "not measured",
        };
        let bound = Cell::new(bound).set_alignment(CellAlignment::Right);
        table.add_row([Cell::new(&verdict.what), bound, right(verdict.measured.map(shown)), Cell::new(verdict_word)]);
    }
    table.trim_fmt()
}

/// An empty table for a page.
pub(crate) fn markdown_table() -> Table {
    table(presets::ASCII_MARKDOWN)
}

fn table(style: TableStyle) -> Table {
    let mut table = Table::new();
    // A table that is wider than the terminal is still easier to read than one with broken numbers.
    table.load_style(style).set_content_arrangement(ContentArrangement::Disabled);
    table
}

/// A cell for a number, or for none.
pub(crate) fn right(text: Option<String>) -> Cell {
    Cell::new(text.unwrap_or_else(|| "-".to_owned())).set_alignment(CellAlignment::Right)
}

/// A ratio, with its range over the rounds.
pub(crate) fn ratio(ratio: Ratio) -> String {
    let range = ratio.range().map(|(lowest, highest)| format!(" ({}-{})", shown(lowest), shown(highest)));
    shown(ratio.median) + &range.unwrap_or_default()
}

/// A value with three digits that say something.
pub(crate) fn shown(value: f64) -> String {
    match value.abs() {
        0.0 => "0".to_owned(),
        size if size < 9.995 => format!("{value:.2}"),
        size if size < 99.95 => format!("{value:.1}"),
        _ => grouped(value.round() as i64),
    }
}

/// A whole number in groups of three digits.
fn grouped(number: i64) -> String {
    let digits = number.unsigned_abs().to_string();
    let mut grouped = if number < 0 { "-".to_owned() } else { String::new() };
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped
}

#[cfg(test)]
mod tests {
    use bench_measure::Subject;

    use super::*;
    use crate::figures::Figures;
    use crate::scenario::Scenario;

    #[test]
    fn numbers_have_the_digits_that_matter() {
        let all = [0.0, 0.014, 1.046, 9.996, 17.66, 99.96, 1234.5, 1_234_567.0, -12.34, -1234.0];
        let expected = ["0", "0.01", "1.05", "10.0", "17.7", "100", "1,235", "1,234,567", "-12.3", "-1,234"];
        assert_eq!(all.map(shown), expected);
    }

    #[test]
    fn a_table_shows_figures_and_ratios() {
        let p50 = |values: [f64; 2]| values.map(|value| Figures::default().with(Figure::P50, value)).to_vec();
        let one = Scenario::named("one").unwrap();
        let rounds = vec![(Subject::Bare, p50([10.0, 10.0])), (Subject::Leasehold, p50([12.0, 13.0]))];
        assert_eq!(
            of_scenario(&Measured::new(one, rounds), presets::ASCII_MARKDOWN),
            "|           | p50 µs | to bare          |\n\
             |-----------|--------|------------------|\n\
             | bare pair |   10.0 |             1.00 |\n\
             | leasehold |   12.5 | 1.25 (1.20-1.30) |"
        );
    }
}
