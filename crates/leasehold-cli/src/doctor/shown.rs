//! The findings, for display.

use anstyle::{AnsiColor, Style};
use std::io::{Write, stdout};

use leasehold::inspect::{Check, Verdict};

use super::check::Checks;
use crate::exit::{Exit, Failure};
use crate::report::written;
use crate::screen::beside;
use crate::visible::visible;

/// Prints a line for each check, and a verdict. In colour on a terminal only.
pub(super) fn show(checks: &Checks) -> Result<Exit, Failure> {
    let width = checks.all.iter().map(|check| check.check.len()).max().unwrap_or_default();
    let mut text: String = checks.all.iter().map(|check| line(check, width)).collect();
    text.push_str(&format!("\n{}\n", verdict(checks)));
    if checks.exit() == Exit::Done {
        text.push_str("next: leasehold run NAME -- COMMAND\n");
    }
    written(anstream::stdout().lock().write_all(visible(&text).as_bytes())).map(|_| Exit::Done)
}

/// The beginning of a remedy.
const ARROW: &str = "-> ";
/// The longest of the words.
const WORD: usize = "finding".len();

fn line(Check { check, server, verdict, message, remedy, .. }: &Check, width: usize) -> String {
    let (word, style) = word(*verdict);
    let margin = width + WORD + 4;
    let server = server.as_ref().map(|server| format!("{server}: ")).unwrap_or_default();
    let message = beside(margin, &format!("{server}{message}"), &stdout());
    let remedy = remedy.as_ref().map(|remedy| {
        let remedy = beside(margin + ARROW.len(), remedy, &stdout());
        format!("{:margin$}{ARROW}{remedy}\n", "")
    });
    format!("{check:width$}  {style}{word:WORD$}{style:#}  {message}\n{}", remedy.unwrap_or_default())
}

fn word(verdict: Verdict) -> (&'static str, Style) {
    match verdict {
        Verdict::Ok => ("ok", AnsiColor::Green.on_default()),
        Verdict::Remark => ("remark", AnsiColor::Cyan.on_default()),
        Verdict::Finding => ("finding", AnsiColor::Yellow.on_default().bold()),
        Verdict::Failed => ("failed", AnsiColor::Red.on_default().bold()),
    }
}

fn verdict(checks: &Checks) -> String {
    let count = |verdict| checks.all.iter().filter(|check| check.verdict == verdict).count();
    let (remarks, findings) = (count(Verdict::Remark), count(Verdict::Finding));
    let plural = |count| if count == 1 { "" } else { "s" };
    match checks.verdict() {
        Verdict::Ok => "no findings".to_owned(),
        Verdict::Remark => format!("no findings; {remarks} remark{}", plural(remarks)),
        Verdict::Finding if findings == 1 => "1 finding that endangers locks".to_owned(),
        Verdict::Finding => format!("{findings} findings that endanger locks"),
        Verdict::Failed => "locks cannot be used".to_owned(),
    }
}
