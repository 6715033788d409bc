//! Tables for the terminal. In a table that is wider than the terminal, long texts are cut, and columns are left out.

use std::fmt;
use std::io::stdout;

use comfy_table::{Cell, CellAlignment, ColumnConstraint, ContentArrangement, Row, Table, Width, presets};
use textwrap::core::display_width;

use crate::screen::width;

/// The minimum width of wrapped text.
const WRAPPED_MIN: u16 = 20;
/// The gap between two columns.
const GAP: u16 = 2;

/// A column, and how it behaves on a narrow terminal.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Column {
    title: &'static str,
    alignment: CellAlignment,
    when_narrow: WhenNarrow,
    /// Which columns are left out before this one; `None` if it stays.
    rank: Option<u8>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum WhenNarrow {
    Keep,
    /// Cut in the middle, down to this width.
    Cut(u16),
    /// Continued on the next line.
    Wrap,
}

impl Column {
    /// A column that is always shown in full.
    pub(crate) const fn new(title: &'static str) -> Self {
        Self { title, alignment: CellAlignment::Left, when_narrow: WhenNarrow::Keep, rank: None }
    }

    /// The heading.
    pub(crate) const fn title(&self) -> &'static str {
        self.title
    }

    /// Aligned to the right, as numbers are.
    pub(crate) const fn right(mut self) -> Self {
        self.alignment = CellAlignment::Right;
        self
    }

    /// Left out if there is no room, the lowest rank first.
    pub(crate) const fn dropped(mut self, rank: u8) -> Self {
        self.rank = Some(rank);
        self
    }

    /// Holds texts of any length, which are cut if there is no room, but not below this width.
    pub(crate) const fn cut(mut self, least: u16) -> Self {
        self.when_narrow = WhenNarrow::Cut(least);
        self
    }

    /// Holds sentences, which may continue on the next line.
    pub(crate) const fn wrapped(mut self) -> Self {
        self.when_narrow = WhenNarrow::Wrap;
        self
    }
}

/// A table that fits the terminal.
#[derive(Debug)]
pub(crate) struct Drawn {
    pub(crate) table: String,
    /// Which columns are not in it, if any.
    pub(crate) left_out: Option<String>,
}

impl fmt::Display for Drawn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.table)?;
        self.left_out.as_ref().map_or(Ok(()), |left_out| write!(f, "\n{left_out}"))
    }
}

/// Draws a table that fits the terminal.
pub(crate) fn draw(columns: &[Column], rows: impl IntoIterator<Item = Vec<Cell>>) -> Drawn {
    draw_within(width(stdout()), columns, rows)
}

fn draw_within(width: Option<u16>, columns: &[Column], rows: impl IntoIterator<Item = Vec<Cell>>) -> Drawn {
    let mut table = Table::new();
    table.load_style(presets::NOTHING).set_content_arrangement(ContentArrangement::Disabled);
    table.set_header(columns.iter().map(|column| column.title));
    for row in rows {
        table.add_row(row);
    }
    for (drawn, column) in table.column_iter_mut().zip(columns) {
        drawn.set_cell_alignment(column.alignment);
        drawn.set_padding((0, GAP));
    }
    let left_out = width.and_then(|width| left_out(&fit(&mut table, columns, width), width));
    Drawn { table: table.trim_fmt(), left_out }
}

/// One line that names these columns, or if that is too long their number.
fn left_out(titles: &[&str], width: u16) -> Option<String> {
    let names = format!("left out: {}; see --json", titles.join(", "));
    let count = match titles.len() {
        0 => return None,
        1 => "1 column is left out; see --json".to_owned(),
        more => format!("{more} columns are left out; see --json"),
    };
    Some(if names.len() <= width.into() { names } else { count })
}

/// The row with the texts that may be cut in these widths.
fn cut(row: &Row, columns: &[Column], widths: &[u16]) -> Row {
    let cells = row.cell_iter().zip(columns).zip(widths).map(|((cell, column), width)| match column.when_narrow {
        WhenNarrow::Cut(_) => Cell::new(shortened(&cell.content(), usize::from(width - GAP))),
        WhenNarrow::Keep | WhenNarrow::Wrap => cell.clone(),
    });
    Row::from(cells.collect::<Vec<_>>())
}

/// The text in this width: of a longer one, what is at its ends. Names that begin alike often differ at the end.
fn shortened(text: &str, width: usize) -> String {
    if display_width(text) <= width {
        return text.to_owned();
    }
    let kept = width.saturating_sub(1);
    let begin = fitting(text.chars(), kept.div_ceil(2));
    let end: String = fitting(text.chars().rev(), kept / 2).chars().rev().collect();
    format!("{begin}\u{2026}{end}")
}

/// As many of these as fit.
fn fitting(chars: impl Iterator<Item = char>, width: usize) -> String {
    let mut left = width;
    chars
        .map_while(|char| {
            left = left.checked_sub(display_width(char.encode_utf8(&mut [0; 4])))?;
            Some(char)
        })
        .collect()
}

/// Leaves columns out until the rest fits, and cuts those that may be cut, the widest one first. What still does not fit is drawn as it is.
/// Returns the titles of the columns that were left out.
fn fit(table: &mut Table, columns: &[Column], width: u16) -> Vec<&'static str> {
    let mut widths: Vec<u16> =
        table.column_max_content_widths().iter().map(|content| content.saturating_add(GAP)).collect();
    let least = |column: usize| match columns[column].when_narrow {
        WhenNarrow::Wrap => widths[column].min(WRAPPED_MIN),
        WhenNarrow::Cut(least) => widths[column].min(least + GAP),
        WhenNarrow::Keep => widths[column],
    };
    let least: Vec<u16> = (0..columns.len()).map(least).collect();
    let mut kept: Vec<usize> = (0..columns.len()).collect();
    // The gap behind the last column is not drawn.
    let width = width.saturating_add(GAP);
    let sum = |of: &[u16], kept: &[usize]| kept.iter().map(|&column| u32::from(of[column])).sum::<u32>();
    let mut dropped = Vec::new();
    while sum(&least, &kept) > width.into() {
        let Some(next) = next_to_drop(columns, &kept) else { break };
        kept.retain(|&column| column != next);
        dropped.push(next);
    }
    let is_cut = |column: &usize| matches!(columns[*column].when_narrow, WhenNarrow::Cut(_));
    while sum(&widths, &kept) > width.into() {
        let wider = kept.iter().copied().filter(|column| is_cut(column) && widths[*column] > least[*column]);
        let Some(widest) = wider.max_by_key(|column| widths[*column]) else { break };
        widths[widest] -= 1;
    }
    table.set_content_arrangement(ContentArrangement::Dynamic).set_width(width);
    table.row_iter_mut().for_each(|row| *row = cut(row, columns, &widths));
    for (at, drawn) in table.column_iter_mut().enumerate() {
        match columns[at].when_narrow {
            _ if dropped.contains(&at) => _ = drawn.set_constraint(ColumnConstraint::Hidden),
            WhenNarrow::Wrap => {}
            WhenNarrow::Cut(_) => _ = drawn.set_constraint(ColumnConstraint::Absolute(Width::Fixed(widths[at]))),
            WhenNarrow::Keep => _ = drawn.set_constraint(ColumnConstraint::ContentWidth),
        }
    }
    dropped.sort_unstable();
    dropped.into_iter().map(|column| columns[column].title).collect()
}

fn next_to_drop(columns: &[Column], kept: &[usize]) -> Option<usize> {
    let ranked = kept.iter().filter_map(|&column| Some((columns[column].rank?, column)));
    ranked.min().map(|(_, column)| column)
}

#[cfg(test)]
mod tests {
    use super::*;

    const COLUMNS: [Column; 4] = [
        Column::new("NAME"),
        Column::new("WHY").dropped(0),
        Column::new("TOKEN").right(),
        Column::new("WAITERS").right().dropped(1),
    ];

    fn drawn(width: Option<u16>) -> String {
        let row = |cells: [&str; 4]| cells.map(Cell::new).to_vec();
        draw_within(width, &COLUMNS, [row(["nightly", "the books of the year", "1795295642004295", "3"])]).to_string()
    }

    #[test]
    fn without_a_width_everything_is_on_one_line() {
        assert_eq!(
            drawn(None),
            "NAME     WHY                               TOKEN  WAITERS\n\
             nightly  the books of the year  1795295642004295        3"
        );
        assert_eq!(drawn(Some(80)), drawn(None));
    }

    #[test]
    fn a_narrow_table_loses_columns_in_their_order_and_no_token_is_broken() {
        assert_eq!(drawn(Some(57)), drawn(None), "the narrowest that is wide enough");
        assert_eq!(
            drawn(Some(50)),
            "NAME                TOKEN  WAITERS\nnightly  1795295642004295        3\nleft out: WHY; see --json"
        );
        let narrow = "NAME                TOKEN\nnightly  1795295642004295\n";
        assert_eq!(drawn(Some(33)), [narrow, "2 columns are left out; see --json"].concat());
        assert_eq!(drawn(Some(1)), drawn(Some(33)), "what cannot be left out is shown in full");
    }

    #[test]
    fn sentences_are_continued_on_the_next_line() {
        let columns = [Column::new("NODE"), Column::new("NOTE").wrapped()];
        let rows = [vec![Cell::new("db1"), Cell::new("the connection was refused; is the server running there?")]];
        let text = draw_within(Some(40), &columns, rows).table;
        assert!(text.lines().count() > 2 && text.lines().all(|line| line.chars().count() <= 40), "{text}");
        let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(text.contains("connection was refused; is the server running"), "{text}");
    }

    #[test]
    fn the_widest_texts_are_cut_in_the_middle_before_a_column_is_left_out() {
        let columns = [Column::new("NAME").cut(8), Column::new("WHY").cut(6), Column::new("TOKEN").dropped(0)];
        let (long, wide) = ("n".repeat(214), "\u{8a9e}".repeat(70));
        let at = |width| {
            let rows = [[&*long, "the books", "17952956"], [&*wide, "", "1"], ["short", "x", "2"]];
            draw_within(Some(width), &columns, rows.map(|row| row.map(Cell::new).to_vec())).to_string()
        };
        let nth = |text: &str, line| text.lines().nth(line).unwrap().to_owned();
        let cut = |begin, end| format!("{}\u{2026}{}", "n".repeat(begin), "n".repeat(end));
        assert_eq!(nth(&at(40), 1), format!("{}  the books  17952956", cut(9, 9)));
        assert_eq!(nth(&at(26), 1), format!("{}  the\u{2026}ks  17952956", cut(4, 3)));
        assert_eq!(nth(&at(26), 3), "short     x       2");
        assert_eq!(nth(&at(25), 4), "1 column is left out; see --json".to_owned());
        let widths = |text: &str| text.lines().take(4).map(display_width).max();
        assert!([40, 26, 25].into_iter().all(|width| widths(&at(width)) <= Some(width.into())), "{}", at(26));
    }
}
