//! What `docs/book/src/metrics.md`, the dashboard and the alert rules say is what is scraped.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;
use test_support::bounds::Watchdog;

use crate::SCRAPE;

const PAGE: &str = include_str!("../../../../docs/book/src/metrics.md");
const DASHBOARD: &str = include_str!("../../../../docs/book/src/metrics/grafana.json");
const ALERTS: &str = include_str!("../../../../docs/book/src/metrics/alerts.yml");

/// Labels of which the page lists the values that can occur, and the test lets each occur.
const LISTED: [&str; 3] = ["outcome", "end", "reason"];

/// Labels that are not in the text: those that Prometheus adds, and the bound of a bucket.
const ADDED: [&str; 3] = ["instance", "job", "le"];

/// A metric's type, and its labels.
type Shape = (String, BTreeSet<String>);

/// What stands in backticks.
fn quoted(cell: &str) -> BTreeSet<String> {
    cell.split('`').skip(1).step_by(2).map(str::to_owned).collect()
}

/// The rows of the page's tables, as cells. Each begins with a metric, a label or an alert, in backticks.
fn rows() -> impl Iterator<Item = Vec<&'static str>> {
    PAGE.lines().filter(|line| line.starts_with("| `")).map(|line| line.split('|').map(str::trim).collect())
}

fn described() -> BTreeMap<String, Shape> {
    let metrics = rows().filter(|cells| cells[1].starts_with("`leasehold_"));
    metrics.map(|cells| (cells[1].trim_matches('`').to_owned(), (cells[2].to_owned(), quoted(cells[3])))).collect()
}

/// The values of each label.
fn described_values() -> BTreeMap<String, BTreeSet<String>> {
    let labels = rows().filter(|cells| !cells[1].to_lowercase().starts_with("`leasehold"));
    labels.map(|cells| (cells[1].trim_matches('`').to_owned(), quoted(cells[2]))).collect()
}

fn scraped() -> BTreeMap<String, Shape> {
    let mut scraped = BTreeMap::new();
    for sample in &SCRAPE.samples {
        let metric = SCRAPE.metric(&sample.name);
        let labels = sample.labels.keys().filter(|label| *label != "le").cloned().collect();
        let kind = SCRAPE.types.get(metric).cloned().unwrap_or_default();
        let before = scraped.insert(metric.to_owned(), (kind, labels));
        assert!(before.is_none_or(|before| before == scraped[metric]), "{metric} has samples with different labels");
    }
    scraped
}

#[test]
fn the_page_has_each_metric_with_its_type_and_labels() {
    let _watchdog = Watchdog::over_this_test();
    assert_eq!(described(), scraped());
}

#[test]
fn the_page_has_the_values_of_each_label() {
    let _watchdog = Watchdog::over_this_test();
    let mut scraped: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for (label, value) in SCRAPE.samples.iter().flat_map(|sample| &sample.labels) {
        scraped.entry(label.clone()).or_default().insert(value.clone());
    }
    scraped.remove("le");
    let described = described_values();
    for (label, values) in &scraped {
        assert!(values.is_subset(&described[label]), "{label}: {values:?} is not in {:?}", described[label]);
        assert!(!LISTED.contains(&label.as_str()) || *values == described[label], "{label}: only {values:?} occurred");
    }
    assert_eq!(described.keys().collect::<Vec<_>>(), scraped.keys().collect::<Vec<_>>());
}

/// The expressions of the dashboard's panels.
fn panels() -> Vec<String> {
    let dashboard: Value = serde_json::from_str(DASHBOARD).unwrap();
    let panels = dashboard["panels"].as_array().unwrap();
    let targets = panels.iter().flat_map(|panel| panel["targets"].as_array().into_iter().flatten());
    targets.map(|target| target["expr"].as_str().unwrap().to_owned()).collect()
}

/// The expressions of the alert rules.
fn rules() -> Vec<String> {
    ALERTS.lines().filter_map(|line| Some(line.trim().strip_prefix("expr: ")?.to_owned())).collect()
}

/// The names of metrics in an expression, each with what follows it.
fn names(expression: &str) -> impl Iterator<Item = (&str, &str)> {
    expression.match_indices("leasehold_").map(|(at, _)| {
        let rest = &expression[at..];
        rest.split_at(rest.find(|letter: char| letter != '_' && !letter.is_ascii_lowercase()).unwrap_or(rest.len()))
    })
}

/// The labels in `{...}` with the values that are asked for, unless a variable has them.
fn matchers(rest: &str) -> Vec<(&str, Vec<&str>)> {
    let braces = rest.strip_prefix('{').and_then(|rest| rest.split_once('}'));
    braces.into_iter().flat_map(|(matchers, _)| matchers.split(',')).map(matcher).collect()
}

fn matcher(text: &str) -> (&str, Vec<&str>) {
    let (label, values) = text.split_once('"').unwrap();
    let values = values.trim_end_matches('"').split('|').filter(|value| !value.starts_with('$'));
    (label.trim_end_matches(['=', '~', '!']), values.collect())
}

/// Checks that an expression finds something in what was scraped.
#[track_caller]
fn check(expression: &str) {
    let shapes = scraped();
    let mut labels: BTreeSet<&str> = ADDED.into();
    for (name, rest) in names(expression) {
        let samples: Vec<_> = SCRAPE.samples.iter().filter(|sample| sample.name == name).collect();
        assert!(!samples.is_empty(), "{name} is not scraped: {expression}");
        labels.extend(shapes[SCRAPE.metric(name)].1.iter().map(String::as_str));
        for (label, values) in matchers(rest) {
            for value in values {
                let found = samples.iter().any(|sample| sample.labels.get(label).is_some_and(|found| found == value));
                assert!(found, "{name} has no {label} {value:?}: {expression}");
            }
            let known =
                |label| ADDED.contains(&label) || samples.iter().all(|sample| sample.labels.contains_key(label));
            assert!(known(label), "{name} has no label {label}: {expression}");
        }
    }
    for by in expression.split("by (").skip(1) {
        let by = by.split_once(')').unwrap().0.split(", ");
        by.for_each(|label| assert!(labels.contains(label), "no metric here has {label}: {expression}"));
    }
}

#[test]
fn the_dashboard_and_the_alerts_ask_for_what_is_scraped() {
    let _watchdog = Watchdog::over_this_test();
    let expressions = [panels(), rules()].concat();
    expressions.iter().for_each(|expression| check(expression));
    let shown: BTreeSet<_> =
        expressions.iter().flat_map(|expression| names(expression)).map(|(name, _)| SCRAPE.metric(name)).collect();
    assert_eq!(shown, described().keys().map(String::as_str).collect(), "each metric is shown");
    assert!(panels().len() >= 10 && rules().len() >= 5, "the files were not read");
}

/// The page explains each alert.
#[test]
fn the_page_has_each_alert() {
    let rules: BTreeSet<_> = ALERTS.lines().filter_map(|line| line.trim().strip_prefix("- alert: ")).collect();
    let rows: BTreeSet<_> = rows().map(|cells| cells[1].trim_matches('`')).collect();
    let explained = rows.into_iter().filter(|name| name.starts_with("Leasehold")).collect();
    assert_eq!(rules, explained);
}
