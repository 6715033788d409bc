//! The results, as text and as JSON. Pure.

use anstyle::{AnsiColor, Style};
use serde::Serialize;

use super::stage::{Crew, Outcome, Promise, STAGES, Stage};

/// How wide paragraphs are.
const WIDTH: usize = 78;
/// The length of a full bar in blocks, and the parts of a block.
const BAR: u64 = 32;
const PARTS: [&str; 8] = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"];

const TITLE: Style = Style::new().bold();
const RIGHT: Style = AnsiColor::Green.on_default();
const WRONG: Style = AnsiColor::Red.on_default();

/// All results.
#[derive(Debug, Serialize)]
pub(crate) struct Story {
    /// Without secrets.
    pub(crate) store: String,
    pub(crate) workers: u32,
    pub(crate) deposits: u32,
    pub(crate) took_ms: u64,
    pub(crate) stages: Vec<Played>,
}

/// A stage and its result.
#[derive(Debug, Serialize)]
pub(crate) struct Played {
    /// Counted from 1.
    pub(crate) stage: usize,
    pub(crate) title: &'static str,
    #[serde(flatten)]
    pub(crate) outcome: Outcome,
    /// Whether the balance is what it should be.
    pub(crate) right: bool,
    pub(crate) why: &'static str,
    #[serde(skip)]
    plan: &'static Stage,
}

impl Played {
    pub(crate) fn new(number: usize, plan: &'static Stage, outcome: Outcome) -> Self {
        Self { stage: number, title: plan.title, outcome, right: outcome.is_right(), why: plan.why, plan }
    }

    /// Whether the account is wrong although the lock promises otherwise.
    pub(crate) fn breaks_its_promise(&self) -> bool {
        match self.plan.promise {
            Promise::Nothing => false,
            Promise::Balance => !self.right,
        }
    }

    /// The paragraph of this stage.
    pub(crate) fn text(&self) -> String {
        let style = self.style();
        let title = format!("{}  {}", self.stage, self.title);
        format!(
            "{TITLE}{title}{TITLE:#}\n   {style}{}{style:#}\n{}\n",
            counts(&self.outcome),
            wrapped(&self.reason(), "   ")
        )
    }

    fn reason(&self) -> String {
        match self.plan.promise {
            Promise::Nothing if self.right => format!("It went well this time, by chance. {}", self.why),
            Promise::Balance if !self.right => format!("This must not happen; please report it. {}", self.why),
            Promise::Nothing | Promise::Balance => self.why.to_owned(),
        }
    }

    fn style(&self) -> Style {
        if self.right { RIGHT } else { WRONG }
    }

    fn bar(&self) -> String {
        let Outcome { balance, expected, .. } = self.outcome;
        let (style, label) = (self.style(), self.plan.label);
        let bar = bar(balance, expected);
        let gap = usize::try_from(BAR).unwrap_or_default().saturating_sub(bar.chars().count());
        let remark = remark(&self.outcome);
        format!("{}  {label:<15}  {style}{bar}{style:#}{:gap$}  {balance:>4}  {remark}", self.stage, "")
            .trim_end()
            .to_owned()
    }
}

impl Story {
    /// The introduction, before the first stage.
    pub(crate) fn opening(crew: Crew, store: &str) -> String {
        let Crew { workers, deposits } = crew;
        let text = format!(
            "{workers} workers pay into one account at the same time, {} of 1 each: each worker reads the balance, works for \
             a moment, and writes the balance plus 1. The final balance should be {}. An overlap is a worker that enters \
             while another one is inside. The store is {store}.",
            counted(u64::from(deposits), "deposit"),
            crew.expected()
        );
        wrapped(&text, "") + "\n"
    }

    /// The balances of all stages as bars.
    pub(crate) fn chart(&self) -> String {
        let expected = u64::from(self.workers) * u64::from(self.deposits);
        let mut lines = vec![format!("{TITLE}Final balance, of {expected}{TITLE:#}")];
        lines.extend(self.stages.iter().map(Played::bar));
        lines.push(format!("\n{} stages in {}.{} s", STAGES.len(), self.took_ms / 1000, self.took_ms % 1000 / 100));
        lines.join("\n")
    }
}

fn counts(outcome: &Outcome) -> String {
    let Outcome { expected, balance, made: _, lost, overlaps, stuck, freed_others, refused, noticed } = *outcome;
    let mut text = format!("expected {expected}, balance {balance}, lost updates {lost}, overlaps {overlaps}");
    for (count, what) in [
        (stuck, "stuck workers"),
        (freed_others, "deleted locks of others"),
        (refused, "refused late writes"),
        (noticed, "noticed losses of the lease"),
    ] {
        if count > 0 {
            text += &format!(", {what} {count}");
        }
    }
    text
}

/// The most important remark about a balance.
fn remark(outcome: &Outcome) -> String {
    if outcome.lost > 0 {
        format!("{} lost", outcome.lost)
    } else if outcome.stuck > 0 {
        format!("{} stuck", outcome.stuck)
    } else if outcome.refused > 0 {
        format!("{} refused", outcome.refused)
    } else {
        String::new()
    }
}

fn bar(balance: u64, expected: u64) -> String {
    let parts = balance.min(expected) * BAR * 8 / expected.max(1);
    let blocks = usize::try_from(parts / 8).unwrap_or_default();
    let rest = usize::try_from(parts % 8).unwrap_or_default();
    "█".repeat(blocks) + PARTS.get(rest).unwrap_or(&"")
}

fn counted(count: u64, thing: &str) -> String {
    if count == 1 { format!("{count} {thing}") } else { format!("{count} {thing}s") }
}

/// The text in lines of at most [`WIDTH`] columns, each after the margin.
fn wrapped(text: &str, margin: &str) -> String {
    let mut lines = vec![margin.to_owned()];
    for word in text.split_whitespace() {
        match lines.last_mut() {
            Some(line) if line.len() == margin.len() => line.push_str(word),
            Some(line) if line.chars().count() + 1 + word.chars().count() <= WIDTH => *line += &format!(" {word}"),
            Some(_) | None => lines.push(format!("{margin}{word}")),
        }
    }
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    const SEEN: Outcome = Outcome {
        expected: 8,
        balance: 8,
        made: 8,
        lost: 0,
        overlaps: 0,
        stuck: 0,
        freed_others: 0,
        refused: 0,
        noticed: 0,
    };

    fn played(number: usize, outcome: Outcome) -> Played {
        Played::new(number, &STAGES[number - 1], outcome)
    }

    #[test]
    fn bars_are_as_long_as_the_balance() {
        assert_eq!(bar(0, 8), "");
        assert_eq!(bar(8, 8), "█".repeat(32));
        assert_eq!(bar(9, 8), bar(8, 8));
        assert_eq!(bar(4, 8), "█".repeat(16));
        assert_eq!(bar(1, 100), "▎");
    }

    #[test]
    fn text_is_wrapped_at_words() {
        let text = wrapped(&"word ".repeat(40), "  ");
        assert!(text.lines().all(|line| line.starts_with("  word") && line.len() <= WIDTH), "{text}");
        assert_eq!(text.split_whitespace().count(), 40);
        assert_eq!(text.lines().count(), 3);
    }

    #[test]
    fn a_chart_tells_what_is_remarkable() {
        let stages = vec![
            played(1, Outcome { balance: 2, lost: 6, overlaps: 5, ..SEEN }),
            played(3, Outcome { balance: 0, made: 0, stuck: 3, ..SEEN }),
            played(8, Outcome { refused: 1, ..SEEN }),
        ];
        let story = Story { store: "x".to_owned(), workers: 4, deposits: 2, took_ms: 1234, stages };
        let plain = anstream::adapter::strip_str(&story.chart()).to_string();
        let expected = format!(
            "Final balance, of 8\n\
             1  no lock          {}                             2  6 lost\n\
             3  no expiry        {}                             0  3 stuck\n\
             8  fencing token    {}     8  1 refused\n\
             \n8 stages in 1.2 s",
            "█".repeat(8),
            " ".repeat(8),
            "█".repeat(32)
        );
        assert_eq!(plain, expected);
    }

    #[test]
    fn a_stage_is_judged_by_its_promise() {
        let wrong = Outcome { balance: 7, lost: 1, ..SEEN };
        assert!(!played(5, wrong).breaks_its_promise());
        assert!(played(6, wrong).breaks_its_promise() && played(8, wrong).breaks_its_promise());
        assert!(!played(8, SEEN).breaks_its_promise());
        assert!(played(5, SEEN).text().contains("by chance"));
        assert!(!played(6, SEEN).text().contains("by chance"));
        let text = anstream::adapter::strip_str(&played(5, wrong).text()).to_string();
        assert!(text.contains("\n   expected 8, balance 7, lost updates 1, overlaps 0\n"), "{text}");
    }
}
