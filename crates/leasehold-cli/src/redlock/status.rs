//! `leasehold redlock status`: one line for each node, and whether locks can be granted.

use std::borrow::Cow;
use std::cmp::Ordering;
use std::time::Duration;

use comfy_table::{Cell, Color};
use leasehold::Ttl;
use leasehold::backend::node::{NodeState, View};
use leasehold::redlock::{NodeReport, Purpose, Report};

use super::args::StatusArgs;
use crate::durations::{human, whole_seconds_up};
use crate::exit::{Exit, Failure};
use crate::quorum::{Health, Quorum, config};
use crate::report::{json, print, say_warning};
use crate::table::{Column, Drawn, draw};

/// How much of a run id is shown.
const RUN_SHOWN: usize = 8;

pub(super) fn run(args: &StatusArgs) -> Result<Exit, Failure> {
    let report = Quorum::open(&config(&args.url)?)?.pass(Purpose::Look)?;
    let health = Health::of(&report);
    let done = if args.json { print(&json(&report)?)? } else { show(&report, health)? };
    Ok(match health.can_grant() {
        _ if report.has_strangers() => Exit::Config,
        true => done,
        false => Exit::Unavailable,
    })
}

fn show(report: &Report, health: Health) -> Result<Exit, Failure> {
    let verdict = if health.can_grant() { "locks can be granted" } else { "no lock can be granted now" };
    let done = print(&format!("{}\n\n{verdict}: {health}", table(report)))?;
    for warning in report.warnings() {
        say_warning(&warning);
    }
    if report.has_strangers() {
        say_warning("a node is misconfigured and does not count: until it is fixed, fewer of the others may fail");
    }
    if report.is_blank() {
        say_warning(
            "all nodes are blank; only if this deployment has never granted a lock, run: leasehold redlock init URL",
        );
    }
    Ok(done)
}

const COLUMNS: [Column; 7] = [
    Column::new("NODE"),
    Column::new("STATE"),
    Column::new("RUN").dropped(0),
    Column::new("COUNTER").right().dropped(3),
    Column::new("CLOCK OFFSET").right().dropped(2),
    Column::new("LONGEST").right().dropped(1),
    Column::new("NOTE").wrapped(),
];

fn table(report: &Report) -> Drawn {
    draw(&COLUMNS, report.nodes.iter().map(cells))
}

fn cells(node: &NodeReport) -> Vec<Cell> {
    let (word, more, colour) = state(node);
    let mut cells = vec![Cell::new(&node.address), Cell::new(format!("{word}{more}")).fg(colour)];
    match &node.view {
        Ok(view) => {
            let known = view.counter > 0;
            cells.push(Cell::new(view.run.0.chars().take(RUN_SHOWN).collect::<String>()));
            cells.push(Cell::new(if known { view.counter.to_string() } else { "-".to_owned() }));
            cells.push(Cell::new(if known { to_clock(view) } else { "-".to_owned() }));
            let asked = view.longest >= Ttl::MIN.get();
            cells.push(Cell::new(if asked { human(view.longest).to_string() } else { "-".to_owned() }));
            cells.push(Cell::new(view.evicts.as_deref().map_or(String::new(), |policy| format!("evicts: {policy}"))));
        }
        Err(error) => {
            cells.extend(["", "", "", ""].map(Cell::new));
            cells.push(Cell::new(error));
        }
    }
    cells
}

/// The state in a word, what is said besides, and the colour of both.
fn state(node: &NodeReport) -> (&'static str, Cow<'static, str>, Color) {
    let wait = node.votes_in.unwrap_or_default();
    match &node.view {
        Err(error) if error.kind().is_transient() => ("away", "".into(), Color::Red),
        Err(_) => ("refused", "".into(), Color::Red),
        Ok(View { state: NodeState::Voting(_), .. }) => ("votes", "".into(), Color::Green),
        Ok(View { state: NodeState::Abstaining { .. }, .. }) if wait.is_zero() => {
            ("abstains", " until a client connects".into(), Color::Yellow)
        }
        Ok(View { state: NodeState::Abstaining { .. }, .. }) => {
            ("abstains", format!(", {} at most", whole_seconds_up(wait)).into(), Color::Yellow)
        }
        Ok(View { membership: None, .. }) => ("empty", ", waits for a client".into(), Color::Yellow),
        Ok(_) => ("restarted", ", waits for a client".into(), Color::Yellow),
    }
}

/// How far the counter is ahead of the node's clock, to the second.
fn to_clock(view: &View) -> String {
    let distance = Duration::from_micros(view.counter.abs_diff(view.clock.0)).as_secs();
    let sign = match view.counter.cmp(&view.clock.0) {
        Ordering::Less if distance > 0 => "-",
        Ordering::Greater if distance > 0 => "+",
        Ordering::Less | Ordering::Equal | Ordering::Greater => "",
    };
    format!("{sign}{}", human(Duration::from_secs(distance)))
}

#[cfg(test)]
mod tests {
    use leasehold::backend::node::{NodeTime, RunId};

    use super::*;

    const CLOCK: u64 = 1_000_000_000;

    fn view(state: NodeState, counter: u64) -> View {
        let (run, longest, clock) = (RunId("0123456789".into()), Duration::from_secs(30), NodeTime(CLOCK));
        let (membership, marked_for, predecessor, evicts) = (None, None, None, None);
        View {
            run,
            state,
            counter,
            longest,
            membership,
            marked_for,
            predecessor,
            has_voted: false,
            moves: 0,
            clock,
            evicts,
        }
    }

    fn shown(view: View) -> Vec<String> {
        let node =
            NodeReport { address: "a".into(), view: Ok(view), recovery: None, votes_in: None, beyond_max_ttl: None };
        cells(&node).iter().map(Cell::content).collect()
    }

    #[test]
    fn the_distance_of_a_counter_from_its_clock_is_shown_in_seconds() {
        for (counter, told) in [
            (CLOCK, "0s"),
            (CLOCK + 999_999, "0s"),
            (CLOCK - 999_999, "0s"),
            (CLOCK + 2_000_000, "+2s"),
            (CLOCK - 2_000_000, "-2s"),
        ] {
            assert_eq!(to_clock(&view(NodeState::Forgetful, counter)), told, "{counter}");
        }
    }

    #[test]
    fn what_is_not_known_of_a_node_is_a_dash() {
        let known = shown(view(NodeState::Forgetful, CLOCK));
        assert_eq!(known[2..6], ["01234567", "1000000000", "0s", "30s"]);
        let nothing = View { longest: Duration::ZERO, ..view(NodeState::Forgetful, 0) };
        assert_eq!(shown(nothing)[3..6], ["-", "-", "-"]);
        let shortest = View { longest: Ttl::MIN.get(), ..view(NodeState::Forgetful, 0) };
        assert_eq!(shown(shortest)[5], "100ms");
    }
}
