//! The table of figures, in Markdown.

use super::figures::{Figures, median};

/// Ours beside theirs.
pub(crate) struct Row {
    scenario: &'static str,
    subject: &'static str,
    ours: Figures,
    theirs: Figures,
    /// The median of the ratios of each round.
    p50_ratio: f64,
    rate_ratio: f64,
}

/// How much worse a ratio may be before the row says that we lose.
const TIE: f64 = 1.05;

impl Row {
    /// From the figures of all rounds, which are in the same order.
    pub(crate) fn of(scenario: &'static str, subject: &'static str, ours: &[Figures], theirs: &[Figures]) -> Self {
        let ratio = |figure: fn(&Figures) -> f64| {
            median(ours.iter().zip(theirs).map(|(our, their)| figure(our) / figure(their)))
        };
        let (p50_ratio, rate_ratio) = (ratio(|figures| figures.p50), ratio(|figures| figures.rate));
        let (ours, theirs) = (Figures::medians(ours), Figures::medians(theirs));
        Self { scenario, subject, ours, theirs, p50_ratio, rate_ratio }
    }

    fn markdown(&self, their_name: &str) -> String {
        let Self { scenario, subject, ours, theirs, p50_ratio, rate_ratio } = self;
        let p50_ratio = marked(*p50_ratio, 1.0 / p50_ratio);
        let rate_ratio = marked(*rate_ratio, *rate_ratio);
        let cells = [
            format!("{scenario} | {subject}"),
            format!("{} | {} | {p50_ratio}", shown(ours.p50), shown(theirs.p50)),
            format!("{} | {}", shown(ours.p99), shown(theirs.p99)),
            format!("{} | {} | {rate_ratio}", shown(ours.rate), shown(theirs.rate)),
            format!("{} | {}", share(ours.fairness), share(theirs.fairness)),
        ];
        format!("| {} | {} |", cells.join(" | "), self.ahead(their_name))
    }

    /// Who is faster.
    fn ahead<'a>(&self, their_name: &'a str) -> &'a str {
        match self.rate_ratio {
            ratio if ratio > TIE => "leasehold",
            ratio if ratio < 1.0 / TIE => their_name,
            _ => "neither",
        }
    }
}

/// A ratio, in bold if it stands for a speed of ours that loses.
fn marked(ratio: f64, speed: f64) -> String {
    if speed < 1.0 / TIE { format!("**{ratio:.2}**") } else { format!("{ratio:.2}") }
}

/// As the bench shows figures: small ones with decimals, large ones with a comma.
fn shown(figure: f64) -> String {
    let whole = figure.round() as u64;
    match whole {
        ..10 => format!("{figure:.2}"),
        10..1_000 => whole.to_string(),
        _ => format!("{},{:03}", whole / 1_000, whole % 1_000),
    }
}

fn share(fairness: Option<f64>) -> String {
    fairness.map_or("-".to_owned(), |fairness| format!("{fairness:.2}"))
}

/// All rows below their heads.
pub(crate) fn table<'a>(their_name: &str, rows: impl Iterator<Item = &'a Row>) -> String {
    let heads = [
        "",
        "ours",
        "p50 µs",
        "theirs",
        "ratio",
        "p99 µs",
        "theirs",
        "rate /s",
        "theirs",
        "ratio",
        "least/most",
        "theirs",
        "faster",
    ];
    let lines = [format!("| {} |", heads.join(" | ")), format!("|{}", "---|".repeat(heads.len()))];
    lines.into_iter().chain(rows.map(|row| row.markdown(their_name))).collect::<Vec<_>>().join("\n")
}
