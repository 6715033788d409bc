//! Tables for the terminal. A table that is wider than the terminal loses columns; its cells are never split.

use std::io::stdout;

use comfy_table::{Cell, CellAlignment, ColumnConstraint, ContentArrangement, Table, presets};

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
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum WhenNarrow {
    Keep,
    /// Left out, the lowest rank first.
    Drop(u8),
    /// Continued on the next line.
    Wrap,
}

impl Column {
    /// A column that is always shown in full.
    pub(crate) const fn new(title: &'static str) -> Self {
        Self { title, alignment: CellAlignment::Left, when_narrow: WhenNarrow::Keep }
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
        self.when_narrow = WhenNarrow::Drop(rank);
        self
    }

    /// Holds sentences, which may continue on the next line.
    pub(crate) const fn wrapped(mut self) -> Self {
        self.when_narrow = WhenNarrow::Wrap;
        self
    }
}

/// Draws a table that fits the terminal.
pub(crate) fn draw(columns: &[Column], rows: impl IntoIterator<Item = Vec<Cell>>) -> String {
    draw_within(width(stdout()), columns, rows)
}

fn draw_within(width: Option<u16>, columns: &[Column], rows: impl IntoIterator<Item = Vec<Cell>>) -> String {
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
    if let Some(width) = width {
        fit(&mut table, columns, width);
    }
    table.trim_fmt()
}

/// Leaves columns out until the rest fits; what still does not fit is drawn in full.
fn fit(table: &mut Table, columns: &[Column], width: u16) {
    let natural: Vec<u16> =
        table.column_max_content_widths().iter().map(|content| content.saturating_add(GAP)).collect();
    let least = |column: usize| match columns[column].when_narrow {
        WhenNarrow::Wrap => natural[column].min(WRAPPED_MIN),
        WhenNarrow::Keep | WhenNarrow::Drop(_) => natural[column],
    };
    let mut kept: Vec<usize> = (0..columns.len()).collect();
    // The gap behind the last column is not drawn.
    let width = width.saturating_add(GAP);
    let fits = |kept: &[usize]| kept.iter().map(|&column| u32::from(least(column))).sum::<u32>() <= u32::from(width);
    while !fits(&kept) {
        let Some(next) = next_to_drop(columns, &kept) else { return };
        kept.retain(|&column| column != next);
        if let Some(column) = table.column_mut(next) {
            column.set_constraint(ColumnConstraint::Hidden);
        }
    }
    table.set_content_arrangement(ContentArrangement::Dynamic).set_width(width);
    for column in kept {
        if columns[column].when_narrow != WhenNarrow::Wrap
            && let Some(drawn) = table.column_mut(column)
        {
            drawn.set_constraint(ColumnConstraint::ContentWidth);
        }
    }
}

fn next_to_drop(columns: &[Column], kept: &[usize]) -> Option<usize> {
    let ranked = kept.iter().filter_map(|&column| match columns[column].when_narrow {
        WhenNarrow::Drop(rank) => Some((rank, column)),
        WhenNarrow::Keep | WhenNarrow::Wrap => None,
    });
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
        draw_within(width, &COLUMNS, [row(["nightly", "the books of the year", "1795295642004295", "3"])])
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
        assert_eq!(drawn(Some(50)), "NAME                TOKEN  WAITERS\nnightly  1795295642004295        3");
        assert_eq!(drawn(Some(30)), "NAME                TOKEN\nnightly  1795295642004295");
        assert_eq!(drawn(Some(1)), drawn(Some(30)), "what cannot be left out is shown in full");
    }

    #[test]
    fn sentences_are_continued_on_the_next_line() {
        let columns = [Column::new("NODE"), Column::new("NOTE").wrapped()];
        let rows = [vec![Cell::new("db1"), Cell::new("the connection was refused; is the server running there?")]];
        let text = draw_within(Some(40), &columns, rows);
        assert!(text.lines().count() > 2 && text.lines().all(|line| line.chars().count() <= 40), "{text}");
        let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(text.contains("connection was refused; is the server running"), "{text}");
    }
}
