//! Lists and pages on terminals of 80 and 40 columns, beside a lock with the longest name.

use leasehold::LockName;
use serde_json::Value;
use test_support::Finish;

use crate::support::leasehold::{Leasehold, Running, code, text, until_let_go};
use crate::support::screen::{Screen, fitting};

const WHY: &str = "a_reason_of_one_long_word_that_no_terminal_of_forty_columns_shows_in_one_line";

/// A lock with the longest name, for which somebody waits, and a lock with a short one.
fn scene() -> (Leasehold, String, Vec<Running>) {
    let (leasehold, long) = (Leasehold::new(), "n".repeat(LockName::BYTES_MAX));
    let holder = leasehold.start(&format!("--why {WHY} {long}"), &until_let_go("long"), "long");
    let waiter = Running::spawn(leasehold.script(&format!("--why backup -w 50s {long}"), "true"));
    leasehold.await_waiters(&long, 1);
    let short = leasehold.start("--why nightly short", &until_let_go("short"), "short");
    (leasehold, long, vec![holder, waiter, short])
}

fn shown(leasehold: &Leasehold, columns: u16, line: &str) -> String {
    let output = Screen::Terminal.command(leasehold, &format!("stty cols {columns}; leasehold {line}")).finish();
    assert_eq!(code(output.status), 0, "{line}: {}", text(&output.stdout));
    fitting(&output.stdout, columns)
}

fn token(lock: &Value) -> String {
    lock["token"].to_string()
}

#[test]
fn a_list_stays_a_table_and_says_what_it_leaves_out() {
    let (leasehold, _, _running) = scene();
    let list = leasehold.json("ls");
    let wide = shown(&leasehold, 80, "ls");
    let lines: Vec<_> = wide.lines().collect();
    assert_eq!(lines.len(), 4, "{wide}");
    assert!(["NAME", "HOLDER", "WHY", "TOKEN", "WAITERS"].iter().all(|title| lines[0].contains(title)), "{wide}");
    let (name, _) = lines[1].split_once("  pid").unwrap();
    assert!(name.chars().count() > 10 && name.starts_with("nnnnn") && name.contains("n\u{2026}n"), "{wide}");
    assert!(lines[1].contains(&token(&list[0])) && lines[2].contains(&token(&list[1])), "{wide}");
    assert!(lines[2].starts_with("short ") && lines[2].contains("nightly"), "{wide}");
    assert!(lines[3].starts_with("left out: ") && lines[3].contains("--json"), "{wide}");
    let narrow = shown(&leasehold, 40, "ls --sort waiters");
    let lines: Vec<_> = narrow.lines().collect();
    assert!(lines.len() == 4 && lines[0].contains("WAITERS") && !lines[0].contains("TOKEN"), "{narrow}");
    assert!(
        lines[1].contains("n\u{2026}n")
            && lines[1].contains("n  pid")
            && lines[1].ends_with(" 1")
            && lines[2].ends_with(" 0"),
        "{narrow}"
    );
    assert!(lines[3].contains("left out"), "{narrow}");
}

#[test]
fn a_page_keeps_the_reason_the_token_and_the_waiter() {
    let (leasehold, long, _running) = scene();
    let lock = leasehold.json(&format!("show {long}"));
    for columns in [80, 40] {
        let page = shown(&leasehold, columns, &format!("show {long}"));
        let words: String = page.split_whitespace().collect();
        assert!(words.starts_with(&long) && words.contains(&format!("why{WHY}token")), "{page}");
        assert!(page.lines().any(|line| line.trim_end().ends_with(&format!("token    {}", token(&lock)))), "{page}");
        assert!(page.contains("waiter 1: pid ") && page.contains("why      backup"), "{page}");
        assert!(words.contains("waitsfor"), "{page}");
    }
}

#[test]
fn the_order_of_a_list_is_one_that_there_is() {
    let output = Leasehold::new().command("ls --sort size").finish();
    assert_eq!(code(output.status), 64);
    let said = text(&output.stderr);
    assert!(["name", "held", "waiters"].iter().all(|order| said.contains(order)), "{said}");
}
