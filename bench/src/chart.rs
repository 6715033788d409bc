//! Results as drawings: bars side by side, one group for each scenario.

use bench_measure::Subject;
use svg::Document;
use svg::node::element::{Group, Line, Rectangle, Text};

use crate::compared::title;
use crate::figures::Figure;
use crate::measured::Measured;
use crate::results::Results;
use crate::table::shown;

const WIDTH: f64 = 880.0;
const LEFT: f64 = 190.0;
const RIGHT: f64 = 90.0;
const TOP: f64 = 64.0;
const BAR: f64 = 16.0;
const GAP: f64 = 4.0;
const GROUP_HEAD: f64 = 28.0;
const GROUP_END: f64 = 14.0;
const BOTTOM: f64 = 16.0;

/// What a drawing shows.
struct Chart {
    file: &'static str,
    title: &'static str,
    /// Whether shorter or longer is better, as text.
    note: &'static str,
    scenarios: &'static [&'static str],
    value: fn(&Measured, Subject) -> Option<f64>,
    scale: Scale,
}

#[derive(Clone, Copy)]
enum Scale {
    Linear,
    /// Each factor of ten has the same length.
    Logarithmic,
}

const CHARTS: [Chart; 4] = [
    Chart {
        file: "bench-pairs.svg",
        title: "A free lock, acquired and released: median time, to the bare pair",
        note: "shorter is better",
        scenarios: &["one", "one-mt", "dropped", "blocking"],
        value: |measured, subject| measured.subject(subject)?.to_base.get(Figure::P50),
        scale: Scale::Linear,
    },
    Chart {
        file: "bench-tasks.svg",
        title: "Many tasks through one client: pairs in a second, to the bare pair",
        note: "longer is better",
        scenarios: &["tasks-64", "tasks-64-mt", "tasks-1000", "tasks-1000-mt"],
        value: |measured, subject| measured.subject(subject)?.to_base.get(Figure::Rate),
        scale: Scale::Linear,
    },
    Chart {
        file: "bench-hand-overs.svg",
        title: "One lock that all want: hand-overs in a second",
        note: "longer is better, each line is a factor of ten",
        scenarios: &["waiters-8", "waiters-64", "split-8", "split-64"],
        value: |measured, subject| measured.subject(subject)?.figures.get(Figure::Rate),
        scale: Scale::Logarithmic,
    },
    Chart {
        file: "bench-quorum.svg",
        title: "A free lock at five nodes: median time, to our scripts by hand",
        note: "shorter is better",
        scenarios: &["quorum-one", "quorum-64", "quorum-beside"],
        value: |measured, subject| measured.subject(subject)?.to_base.get(Figure::P50),
        scale: Scale::Linear,
    },
];

/// All drawings for which something was measured, with the names of their files.
pub(crate) fn all(results: &Results) -> Vec<(&'static str, Document)> {
    CHARTS.iter().filter_map(|chart| Some((chart.file, chart.draw(&results.scenarios)?))).collect()
}

impl Chart {
    fn draw(&self, scenarios: &[Measured]) -> Option<Document> {
        let shown: Vec<_> = scenarios.iter().filter(|it| self.scenarios.contains(&it.scenario.name)).collect();
        let longest = shown.iter().flat_map(|measured| self.bars(measured)).map(|(_, value)| value).fold(0.0, f64::max);
        if longest <= 0.0 {
            return None;
        }
        let mut y = TOP;
        let mut groups = Group::new();
        for measured in shown {
            groups = groups.add(label(16.0, y + 18.0, measured.scenario.title).set("font-weight", "600"));
            y += GROUP_HEAD;
            for (subject, value) in self.bars(measured) {
                groups = groups.add(bar(y, subject, value, self.scale.length(value, longest)));
                y += BAR + GAP;
            }
            y += GROUP_END;
        }
        let height = y + BOTTOM;
        let heading = label(16.0, 28.0, self.title).set("font-size", 16).set("font-weight", "600");
        let paper = Rectangle::new().set("width", "100%").set("height", "100%").set("fill", "#ffffff");
        let document = Document::new()
            .set("viewBox", (0, 0, WIDTH, height))
            .set("width", WIDTH)
            .set("height", height)
            .set("font-family", "system-ui, 'Segoe UI', 'DejaVu Sans', sans-serif")
            .set("font-size", 12)
            .add(paper)
            .add(heading)
            .add(label(16.0, 47.0, self.note).set("fill", "#667085"))
            .add(self.scale.lines(longest, TOP, y))
            .add(groups);
        Some(document)
    }

    fn bars(&self, measured: &Measured) -> Vec<(Subject, f64)> {
        let value = |subject| Some((subject, (self.value)(measured, subject)?));
        measured.subjects.iter().filter_map(|measured| value(measured.subject)).collect()
    }
}

impl Scale {
    fn length(self, value: f64, longest: f64) -> f64 {
        let share = match self {
            Self::Linear => value / longest,
            Self::Logarithmic => value.max(1.0).log10() / longest.max(10.0).log10(),
        };
        (share * (WIDTH - LEFT - RIGHT)).max(1.0)
    }

    /// Lines at 1, or at the powers of ten.
    fn lines(self, longest: f64, top: f64, bottom: f64) -> Group {
        let at: Vec<f64> = match self {
            Self::Linear => vec![1.0],
            Self::Logarithmic => (1..9).map(|power| 10_f64.powi(power)).collect(),
        };
        at.into_iter().filter(|value| *value <= longest).fold(Group::new(), |lines, value| {
            let x = LEFT + self.length(value, longest);
            let line = Line::new().set("x1", x).set("x2", x).set("y1", top).set("y2", bottom);
            lines.add(line.set("stroke", "#d0d5dd").set("stroke-dasharray", "3 3"))
        })
    }
}

fn bar(y: f64, subject: Subject, value: f64, length: f64) -> Group {
    let bar = Rectangle::new().set("x", LEFT).set("y", y).set("width", length).set("height", BAR).set("rx", 2);
    let middle = y + BAR * 0.76;
    Group::new()
        .add(label(LEFT - 8.0, middle, title(subject)).set("text-anchor", "end"))
        .add(bar.set("fill", colour(subject)))
        .add(label(LEFT + length + 6.0, middle, &shown(value)).set("fill", "#344054"))
}

fn label(x: f64, y: f64, text: &str) -> Text {
    Text::new(text).set("x", x).set("y", y).set("fill", "#1d2939")
}

/// Ours stand out; colours that differ in lightness too.
fn colour(subject: Subject) -> &'static str {
    match subject {
        Subject::Bare => "#98a2b3",
        Subject::ByHand => "#667085",
        Subject::Leasehold => "#1570ef",
        Subject::Chain0 => "#84caff",
        Subject::Pool | Subject::SixteenthHeld => "#53b1fd",
        Subject::Rslock => "#f79009",
        Subject::RslockEager => "#fec84b",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::figures::Figures;
    use crate::scenario::Scenario;

    #[test]
    fn a_chart_is_drawn_of_what_was_measured() {
        let rate = |value| vec![Figures::default().with(Figure::Rate, value)];
        let scenario = Scenario::named("waiters-8").unwrap();
        let measured = [Measured::new(scenario, vec![(Subject::Bare, rate(100.0)), (Subject::Leasehold, rate(1e5))])];
        let drawing = CHARTS[2].draw(&measured).unwrap().to_string();
        assert!(drawing.contains("100,000") && drawing.contains("bare pair"), "{drawing}");
        assert!(CHARTS[0].draw(&measured).is_none());
        let full = Scale::Logarithmic.length(1e5, 1e5);
        assert!((Scale::Logarithmic.length(1e4, 1e5) / full - 0.8).abs() < 1e-9);
    }
}
