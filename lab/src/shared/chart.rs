//! Results as text: a paragraph for each stage, a chart of all stages, and what each column counts. Pure.

use anstyle::Style;
use textwrap::{Options, WordSplitter};

use super::tell::{RIGHT, TITLE, WRONG};

/// How wide paragraphs are.
const WIDTH: usize = 78;
/// The length of a full bar in blocks, and the parts of a block.
const BAR: u64 = 16;
const PARTS: [&str; 8] = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"];

/// Something that is counted.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Column {
    /// The same in paragraphs, in the chart and in the explanation.
    pub(crate) name: &'static str,
    pub(crate) meaning: &'static str,
    pub(crate) shown: Shown,
}

/// When a column is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shown {
    /// In each line of the chart.
    Always,
    /// Behind the line, where something was counted.
    IfAny,
}

/// A column, and what was counted.
pub(crate) type Count = (&'static Column, u64);

/// Whether the result is what it should be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    Right,
    Wrong,
}

/// A stage and its result.
#[derive(Debug)]
pub(crate) struct Row {
    /// Counted from 1.
    pub(crate) number: usize,
    /// Three words at most.
    pub(crate) label: &'static str,
    /// What is done in this stage.
    pub(crate) title: &'static str,
    pub(crate) result: u64,
    /// All columns of the chart, in its order.
    pub(crate) counts: Vec<Count>,
    pub(crate) verdict: Verdict,
    /// Why it went like that.
    pub(crate) reason: String,
}

/// All stages.
#[derive(Debug)]
pub(crate) struct Chart {
    /// What the bars and the first number show.
    pub(crate) result: &'static Column,
    /// The length of the longest bar.
    pub(crate) full: u64,
    pub(crate) rows: Vec<Row>,
}

impl Row {
    /// The paragraph of this stage.
    pub(crate) fn text(&self, result: &Column, full: u64) -> String {
        let Self { number, label, title, .. } = self;
        let style = self.style();
        let first = format!("{} {} of {full}", result.name, self.result);
        let counted: Vec<_> = std::iter::once(first).chain(self.shown().map(counted)).collect();
        format!(
            "{TITLE}{number:>2}  {label}{TITLE:#}\n{}\n    {style}{}{style:#}\n{}\n",
            wrapped(title, "    "),
            counted.join(", "),
            wrapped(&self.reason, "    ")
        )
    }

    /// The counts that are worth a word.
    fn shown(&self) -> impl Iterator<Item = Count> {
        self.counts.iter().copied().filter(|(column, count)| column.shown == Shown::Always || *count > 0)
    }

    fn line(&self, labels: usize, chart: &Chart) -> String {
        let Self { number, label, result, .. } = self;
        let style = self.style();
        let bar = bar(*result, chart.full);
        let gap = usize::try_from(BAR).unwrap_or_default().saturating_sub(bar.chars().count());
        let mut line = format!("{number:>2}  {label:<labels$}  {style}{bar}{style:#}{:gap$}", "");
        line += &cell(chart.result, *result);
        for (column, count) in self.shown().filter(|(column, _)| column.shown == Shown::Always) {
            line += &cell(column, count);
        }
        let rest: Vec<_> = self.shown().filter(|(column, _)| column.shown == Shown::IfAny).map(counted).collect();
        format!("{line}  {}", rest.join(", ")).trim_end().to_owned()
    }

    fn style(&self) -> Style {
        match self.verdict {
            Verdict::Right => RIGHT,
            Verdict::Wrong => WRONG,
        }
    }
}

impl Chart {
    /// The chart, and how long its stages took together.
    pub(crate) fn end(&self, took_ms: u64) -> String {
        let tenths = took_ms / 100;
        format!("{}\n\n{} stages in {}.{} s", self.text(), self.rows.len(), tenths / 10, tenths % 10)
    }

    /// A line with a bar for each stage, and what the columns count.
    pub(crate) fn text(&self) -> String {
        let labels = self.rows.iter().map(|row| row.label.len()).max().unwrap_or_default();
        let columns = self.columns();
        let names = columns.iter().filter(|column| column.shown == Shown::Always).map(|column| heading(column));
        let width = 6 + labels + usize::try_from(BAR).unwrap_or_default();
        let mut lines = vec![format!("{TITLE}{:width$}{}{TITLE:#}", "", names.collect::<String>())];
        lines.extend(self.rows.iter().map(|row| row.line(labels, self)));
        lines.push(format!("\n{}", explained(&columns)));
        lines.join("\n")
    }

    /// The columns that occur.
    fn columns(&self) -> Vec<&'static Column> {
        let mut columns = vec![self.result];
        for (column, _) in self.rows.iter().flat_map(Row::shown) {
            if !columns.contains(&column) {
                columns.push(column);
            }
        }
        columns
    }
}

/// What the columns count, a line or two for each.
pub(crate) fn explained(columns: &[&Column]) -> String {
    let names = columns.iter().map(|column| column.name.len()).max().unwrap_or_default();
    let margin = " ".repeat(names + 4);
    let explain = |column: &&Column| {
        let meaning = wrapped(column.meaning, &margin);
        format!("  {:<names$}  {}", column.name, meaning.trim_start())
    };
    columns.iter().map(explain).collect::<Vec<_>>().join("\n")
}

fn heading(column: &Column) -> String {
    format!("  {}", column.name)
}

fn cell(column: &Column, count: u64) -> String {
    let width = column.name.len();
    format!("  {count:>width$}")
}

fn counted((column, count): Count) -> String {
    format!("{} {count}", column.name)
}

fn bar(result: u64, full: u64) -> String {
    let parts = result.min(full) * BAR * 8 / full.max(1);
    let blocks = usize::try_from(parts / 8).unwrap_or_default();
    let rest = usize::try_from(parts % 8).unwrap_or_default();
    "█".repeat(blocks) + PARTS.get(rest).unwrap_or(&"")
}

/// A number of things: an `s` is added to more than one.
pub(crate) fn several(count: u64, thing: &str) -> String {
    if count == 1 { format!("{count} {thing}") } else { format!("{count} {thing}s") }
}

/// The text in lines of at most [`WIDTH`] columns, each after the margin.
pub(crate) fn wrapped(text: &str, margin: &str) -> String {
    textwrap::fill(text, between_words(WIDTH).initial_indent(margin).subsequent_indent(margin))
}

/// Lines of at most this many columns, unless a word is longer.
pub(crate) fn between_words<'a>(columns: usize) -> Options<'a> {
    Options::new(columns).break_words(false).word_splitter(WordSplitter::NoHyphenation)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MADE: Column = Column { name: "made", meaning: "cakes that were made", shown: Shown::Always };
    const BURNT: Column = Column { name: "burnt cakes", meaning: "made for too long", shown: Shown::Always };
    const EATEN: Column = Column { name: "eaten", meaning: "gone before they were done", shown: Shown::IfAny };

    fn row(number: usize, result: u64, counts: [u64; 2]) -> Row {
        Row {
            number,
            label: "an oven",
            title: "Cakes are made in an oven.",
            result,
            counts: [&BURNT, &EATEN].into_iter().zip(counts).collect(),
            verdict: if counts == [0, 0] { Verdict::Right } else { Verdict::Wrong },
            reason: "It is hot.".to_owned(),
        }
    }

    fn plain(text: &str) -> String {
        anstream::adapter::strip_str(text).to_string()
    }

    #[test]
    fn bars_are_as_long_as_the_result() {
        assert_eq!(bar(0, 8), "");
        assert_eq!(bar(8, 8), "█".repeat(16));
        assert_eq!(bar(9, 8), bar(8, 8));
        assert_eq!(bar(4, 8), "█".repeat(8));
        assert_eq!(bar(1, 96), "▏");
    }

    #[test]
    fn text_is_wrapped_at_words() {
        let text = wrapped(&"word ".repeat(40), "  ");
        assert!(text.lines().all(|line| line.starts_with("  word") && line.len() <= WIDTH), "{text}");
        assert_eq!(text.split_whitespace().count(), 40);
        assert_eq!(text.lines().count(), 3);
    }

    #[test]
    fn a_chart_aligns_its_columns_and_explains_each_one_that_occurs() {
        let chart = Chart { result: &MADE, full: 8, rows: vec![row(1, 2, [6, 0]), row(10, 8, [0, 0])] };
        let expected = [
            format!("{:29}  made  burnt cakes", ""),
            format!(" 1  an oven  {:16}     2            6", "█".repeat(4)),
            format!("10  an oven  {:16}     8            0", "█".repeat(16)),
            String::new(),
            "  made         cakes that were made".to_owned(),
            "  burnt cakes  made for too long".to_owned(),
        ];
        let text = plain(&chart.text());
        assert_eq!(text.lines().collect::<Vec<_>>(), expected);
        let chart = Chart { result: &MADE, full: 8, rows: vec![row(1, 2, [0, 3])] };
        let text = plain(&chart.text());
        assert!(text.contains("            0  eaten 3\n") && text.ends_with("gone before they were done"), "{text}");
    }

    #[test]
    fn a_paragraph_names_what_was_counted() {
        let text = plain(&row(3, 2, [0, 4]).text(&MADE, 8));
        let expected =
            " 3  an oven\n    Cakes are made in an oven.\n    made 2 of 8, burnt cakes 0, eaten 4\n    It is hot.\n";
        assert_eq!(text, expected);
    }
}
