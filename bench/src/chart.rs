//! Results as drawings: bars side by side, or dots on a logarithmic scale, one group for each scenario.

use bench_measure::Subject;
use svg::Document;
use svg::node::element::{Circle, Description, Group, Line, Rectangle, Text, Title};

use crate::compared::title;
use crate::figures::{Figure, Figures};
use crate::measured::Measured;
use crate::results::Results;
use crate::table::shown;

const WIDTH: f64 = 880.0;
const LEFT: f64 = 190.0;
const RIGHT: f64 = 90.0;
const TOP: f64 = 64.0;
const BAR: f64 = 16.0;
const DOT: f64 = 5.5;
const GAP: f64 = 4.0;
const GROUP_HEAD: f64 = 28.0;
const GROUP_END: f64 = 14.0;
const BOTTOM: f64 = 16.0;

/// What a drawing shows.
struct Chart {
    /// Below the folder of the documentation.
    file: &'static str,
    title: &'static str,
    /// What shorter or longer means, as text.
    note: &'static str,
    scenarios: &'static [&'static str],
    /// The parts of a bar, from its beginning to its end.
    parts: fn(&Measured, Subject) -> Option<Vec<f64>>,
    scale: Scale,
}

/// One subject's bar or dot.
struct Bar {
    subject: Subject,
    parts: Vec<f64>,
}

#[derive(Clone, Copy)]
enum Scale {
    Linear,
    /// Each factor of ten has the same length.
    Logarithmic,
}

const CHARTS: [Chart; 4] = [
    Chart {
        file: "book/src/figures/bench-cost.svg",
        title: "A free lock, acquired and released: processor time, to the bare pair",
        note: "dark: the server; light: the client; shorter is better",
        scenarios: &["one", "one-mt", "tasks-64", "tasks-64-mt", "tasks-1000", "tasks-1000-mt", "blocking-64"],
        parts: cost,
        scale: Scale::Linear,
    },
    Chart {
        file: "performance/figures/bench-tasks.svg",
        title: "Many tasks through one client: pairs in a second, to the bare pair",
        note: "longer is better",
        scenarios: &["tasks-64", "tasks-64-mt", "tasks-1000", "tasks-1000-mt"],
        parts: |measured, subject| Some(vec![measured.subject(subject)?.to_base.get(Figure::Rate)?]),
        scale: Scale::Linear,
    },
    Chart {
        file: "book/src/figures/bench-hand-overs.svg",
        title: "One lock that all want: hand-overs in a second",
        note: "further to the right is better; each line is a factor of ten",
        scenarios: &["waiters-8", "waiters-64", "split-8", "split-64"],
        parts: |measured, subject| Some(vec![measured.subject(subject)?.figures.get(Figure::Rate)?]),
        scale: Scale::Logarithmic,
    },
    Chart {
        file: "performance/figures/bench-quorum.svg",
        title: "A free lock at five nodes: median time, to our scripts by hand",
        note: "shorter is better",
        scenarios: &["quorum-one", "quorum-64", "quorum-beside"],
        parts: |measured, subject| Some(vec![measured.subject(subject)?.to_base.get(Figure::P50)?]),
        scale: Scale::Linear,
    },
];

/// The processor time of the server and of the client, both divided by what the bare pair takes on both sides.
fn cost(measured: &Measured, subject: Subject) -> Option<Vec<f64>> {
    let sides = |figures: &Figures| Some([figures.get(Figure::ServerTime)?, figures.get(Figure::ClientTime)?]);
    let bare = sides(&measured.subject(Subject::Bare)?.figures)?;
    let ratios = sides(&measured.subject(subject)?.to_base)?;
    let whole: f64 = bare.iter().sum();
    Some(bare.into_iter().zip(ratios).map(|(bare, ratio)| ratio * bare / whole).collect())
}

/// All drawings for which something was measured, with the names of their files.
pub(crate) fn all(results: &Results) -> Vec<(&'static str, Document)> {
    CHARTS.iter().filter_map(|chart| Some((chart.file, chart.draw(&results.scenarios)?))).collect()
}

impl Chart {
    fn draw(&self, scenarios: &[Measured]) -> Option<Document> {
        let shown: Vec<_> = scenarios.iter().filter(|it| self.scenarios.contains(&it.scenario.name)).collect();
        let longest = shown.iter().flat_map(|measured| self.bars(measured)).map(|bar| bar.whole()).fold(0.0, f64::max);
        if longest <= 0.0 {
            return None;
        }
        let mut y = TOP;
        let mut groups = Group::new();
        for measured in &shown {
            groups = groups.add(label(16.0, y + 18.0, measured.scenario.title).set("font-weight", "600"));
            y += GROUP_HEAD;
            for bar in self.bars(measured) {
                groups = groups.add(bar.draw(y, self.scale, longest));
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
            .set("role", "img")
            .add(Title::new(self.title))
            .add(Description::new().add(svg::node::Text::new(self.described(&shown))))
            .add(paper)
            .add(heading)
            .add(label(16.0, 47.0, self.note).set("fill", "#667085"))
            .add(self.scale.lines(longest, TOP, y))
            .add(groups);
        Some(document)
    }

    /// All figures in words, for readers who cannot see the drawing.
    fn described(&self, scenarios: &[&Measured]) -> String {
        let group = |measured: &&Measured| {
            let bars = self.bars(measured);
            let values: Vec<_> =
                bars.iter().map(|bar| format!("{}: {}", title(bar.subject), shown(bar.whole()))).collect();
            format!("{}. {}.", measured.scenario.title, values.join("; "))
        };
        scenarios.iter().map(group).collect::<Vec<_>>().join(" ")
    }

    fn bars(&self, measured: &Measured) -> Vec<Bar> {
        let bar = |subject| Some(Bar { subject, parts: (self.parts)(measured, subject)? });
        measured.subjects.iter().filter_map(|measured| bar(measured.subject)).collect()
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

impl Bar {
    fn whole(&self) -> f64 {
        self.parts.iter().sum()
    }

    fn draw(&self, y: f64, scale: Scale, longest: f64) -> Group {
        let (middle, end) = (y + BAR * 0.76, LEFT + scale.length(self.whole(), longest));
        let mut drawn = Group::new().add(label(LEFT - 8.0, middle, title(self.subject)).set("text-anchor", "end"));
        drawn = match scale {
            Scale::Linear => self.bar(drawn, y, scale, longest),
            Scale::Logarithmic => self.dot(drawn, y, end),
        };
        drawn.add(label(end + 10.0, middle, &shown(self.whole())).set("fill", "#344054"))
    }

    fn bar(&self, mut drawn: Group, y: f64, scale: Scale, longest: f64) -> Group {
        let (mut begin, mut sum) = (LEFT, 0.0);
        for (number, part) in self.parts.iter().enumerate() {
            sum += part;
            let end = LEFT + scale.length(sum, longest);
            let bar = Rectangle::new().set("x", begin).set("y", y).set("width", end - begin).set("height", BAR);
            let opacity = if number == 0 { 1.0 } else { 0.55 };
            drawn = drawn.add(bar.set("fill", colour(self.subject)).set("fill-opacity", opacity));
            begin = end;
        }
        drawn
    }

    /// A bar would have no meaning: a logarithmic scale does not begin at zero.
    fn dot(&self, drawn: Group, y: f64, at: f64) -> Group {
        let middle = y + BAR / 2.0;
        let thread = Line::new().set("x1", LEFT).set("x2", at).set("y1", middle).set("y2", middle);
        let dot = Circle::new().set("cx", at).set("cy", middle).set("r", DOT);
        drawn.add(thread.set("stroke", "#eaecf0")).add(dot.set("fill", colour(self.subject)))
    }
}

fn label(x: f64, y: f64, text: &str) -> Text {
    Text::new(text).set("x", x).set("y", y).set("fill", "#1d2939")
}

/// Ours stand out; colours that differ in lightness too.
fn colour(subject: Subject) -> &'static str {
    match subject {
        Subject::Bare => "#98a2b3",
        Subject::ByHand | Subject::ReadByHand | Subject::PermitByHand => "#667085",
        Subject::Leasehold => "#1570ef",
        Subject::Chain0 => "#84caff",
        Subject::Read
        | Subject::Permit
        | Subject::Pool
        | Subject::SixteenthHeld
        | Subject::OneReplica
        | Subject::TwoReplicas
        | Subject::Dwell => "#53b1fd",
        Subject::Rslock => "#f79009",
        Subject::RslockEager => "#fec84b",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::Scenario;

    #[test]
    fn a_chart_is_drawn_of_what_was_measured() {
        let rate = |value| vec![Figures::default().with(Figure::Rate, value)];
        let scenario = Scenario::named("waiters-8").unwrap();
        let measured = [Measured::new(scenario, vec![(Subject::Bare, rate(100.0)), (Subject::Leasehold, rate(1e5))])];
        let drawing = CHARTS[2].draw(&measured).unwrap().to_string();
        assert!(drawing.contains("100,000") && drawing.contains("bare pair"), "{drawing}");
        assert!(drawing.contains("<circle") && drawing.contains("bare pair: 100; leasehold: 100,000."), "{drawing}");
        assert!(CHARTS[0].draw(&measured).is_none());
        let full = Scale::Logarithmic.length(1e5, 1e5);
        assert!((Scale::Logarithmic.length(1e4, 1e5) / full - 0.8).abs() < 1e-9);
    }

    #[test]
    fn costs_of_both_sides_are_divided_by_both_of_the_bare_pair() {
        let costs =
            |server, client| vec![Figures::default().with(Figure::ServerTime, server).with(Figure::ClientTime, client)];
        let rounds = vec![(Subject::Bare, costs(6.0, 2.0)), (Subject::Leasehold, costs(6.0, 4.0))];
        let measured = Measured::new(Scenario::named("one").unwrap(), rounds);
        assert_eq!(cost(&measured, Subject::Leasehold), Some(vec![0.75, 0.5]));
        assert_eq!(cost(&measured, Subject::Rslock), None);
    }
}
