//! The alert rules of the book, run by Prometheus' own evaluator over the metrics of a fleet that are recorded here: an hour in which
//! all is well, and one in which everything happens that an alert is for.
#![cfg(feature = "full")]
#![allow(clippy::unwrap_used, reason = "tests may")]

#[path = "metrics/endpoint.rs"]
#[allow(dead_code, reason = "another test uses all of it")]
mod endpoint;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;
use std::{fs, thread};

use leasehold::ErrorKind;
use leasehold::blocking::{Client, Kit};
use leasehold::clock::ManualClock;
use leasehold::memory::MemoryStore;
use leasehold::memory::faults::{Fault, Faults, Faulty};
use test_support::Finish;
use test_support::bounds::wait_for;

use endpoint::Endpoint;

const SECOND: Duration = Duration::from_secs(1);
const MINUTE: Duration = Duration::from_secs(60);
/// How time passes: alarms and renewals keep up with that.
const STEP: Duration = Duration::from_secs(5);
/// Steps between two scrapes.
const SCRAPED_EVERY: usize = 6;
/// A lease that needs no renewal here.
const LONG: Duration = Duration::from_secs(24 * 3600);
const RULES: &str = "../../docs/book/src/metrics/alerts.yml";

/// A fleet of clients, and what is scraped of it.
struct Fleet {
    clock: ManualClock,
    store: MemoryStore,
    faults: Faults,
    endpoint: Endpoint,
    steps: usize,
    /// The values of each series, one for each scrape.
    series: BTreeMap<String, Vec<f64>>,
}

impl Fleet {
    fn new() -> Self {
        let (endpoint, clock) = (Endpoint::start(), ManualClock::new());
        let store = MemoryStore::new(Arc::new(clock.clone()));
        Self { clock, store, faults: Faults::new(), endpoint, steps: 0, series: BTreeMap::new() }
    }

    fn client(&self) -> Client {
        let backend = Faulty::new(self.store.blocking(), &self.faults);
        Client::builder(Arc::new(backend)).clock(Arc::new(self.clock.clone())).build().unwrap()
    }

    /// Has time pass, with something done before each scrape.
    fn pass(&mut self, time: Duration, mut each: impl FnMut()) {
        let until = self.steps + usize::try_from(time.as_secs() / STEP.as_secs()).unwrap();
        while self.steps < until {
            if self.steps.is_multiple_of(SCRAPED_EVERY) {
                each();
                self.scrape();
            }
            self.clock.advance(STEP);
            self.steps += 1;
            thread::sleep(Duration::from_millis(10));
        }
    }

    /// Has time pass up to this minute of the recording, with nothing done.
    fn pass_up_to(&mut self, minute: usize) {
        let left = (minute * 60).saturating_sub(self.steps * 5);
        self.pass(Duration::from_secs(left.try_into().unwrap()), || {});
    }

    fn scrape(&mut self) {
        let rules = fs::read_to_string(RULES).unwrap();
        let before = self.steps / SCRAPED_EVERY;
        for sample in self.endpoint.scrape().samples {
            if !rules.contains(&sample.name) {
                continue;
            }
            let labels: Vec<_> = sample.labels.iter().map(|(label, value)| format!("{label}=\"{value}\"")).collect();
            let series = format!("{}{{job=\"shop\", instance=\"web-1\", {}}}", sample.name, labels.join(", "));
            let values = self.series.entry(series).or_insert_with(|| vec![f64::NAN; before]);
            values.push(sample.value);
        }
    }

    fn late_renewals(&self) -> f64 {
        self.endpoint.scrape().sum("leasehold_renewals_late_total", "memory")
    }
}

/// A leader and a standby, payments, one of which waits for a while, and a deployment that ends each process in order.
fn is_well(fleet: &mut Fleet) {
    let payments = fleet.client();
    let pay = || payments.mutex("payment").acquire().unwrap().release().unwrap();
    let lead = |client: Client| {
        thread::spawn(move || {
            let leadership = client.election("scheduler").ttl(LONG).campaign().unwrap();
            _ = leadership.lost();
            drop(leadership);
        })
    };
    let (first, second) = (fleet.client(), fleet.client());
    let is_led = |fleet: &Fleet| fleet.client().election("scheduler").leader().unwrap();
    let leading = lead(first.clone());
    wait_for("a leader", || is_led(fleet));
    let standing_by = lead(second.clone());
    fleet.pass(20 * MINUTE, pay);
    let held = fleet.client().mutex("slow").ttl(LONG).acquire().unwrap();
    thread::scope(|scope| {
        let waiting = scope.spawn(|| payments.mutex("slow").acquire().unwrap().release().unwrap());
        fleet.pass(30 * SECOND, || {});
        held.release().unwrap();
        waiting.join().unwrap();
    });
    first.close();
    leading.join().unwrap();
    wait_for("the next leader", || is_led(fleet));
    fleet.pass_up_to(59);
    second.close();
    standing_by.join().unwrap();
    fleet.pass_up_to(60);
}

/// An outage of four minutes, a right that is missing, a machine that is too slow, and a lock that is held for too long.
fn is_sick(fleet: &mut Fleet) {
    let (client, faults) = (fleet.client(), fleet.faults.clone());
    let leadership = client.election("scheduler").campaign().unwrap();
    let pending = client.mutex("pending").ttl(LONG).acquire().unwrap();
    faults.fail_everything(Fault::Refused(ErrorKind::Unreachable));
    assert!(pending.release().is_err());
    fleet.clock.advance(25 * SECOND);
    assert!(leadership.check().is_err(), "it steps down, before its lease ends");
    drop(leadership);
    drop(client.degrading("degraded").try_acquire().unwrap().unwrap());
    fleet.pass(4 * MINUTE, || assert!(client.mutex("payment").try_acquire().is_err()));
    faults.fail_everything(Fault::Refused(ErrorKind::Denied));
    fleet.pass(8 * MINUTE, || assert!(client.mutex("payment").try_acquire().is_err()));
    faults.heal_everything();

    let slow = client.mutex("late").ttl(150 * SECOND).acquire().unwrap();
    for _ in 0..5 {
        let before = fleet.late_renewals();
        faults.fail_all(leasehold::error::Operation::Renew, Fault::Refused(ErrorKind::Timeout));
        fleet.pass(90 * SECOND, || {});
        faults.heal_everything();
        wait_for("a late renewal", || {
            fleet.clock.advance(SECOND / 10);
            fleet.late_renewals() > before
        });
    }
    slow.release().unwrap();

    let held = fleet.client().mutex("slow").ttl(LONG).acquire().unwrap();
    thread::scope(|scope| {
        let waiting = scope.spawn(|| client.mutex("slow").acquire().unwrap().release().unwrap());
        fleet.pass(7 * MINUTE, || {});
        held.release().unwrap();
        waiting.join().unwrap();
    });
    fleet.pass_up_to(120);
}

/// What has fired by a minute of the recording, in the hour before it. In the last minute of the first hour, all is well yet.
fn expectation(minute: u32, fired: &BTreeSet<&str>) -> String {
    let mut text = format!(
        "      - expr: 'group by (alertname) (max_over_time(ALERTS{{alertstate=\"firing\"}}[58m]))'\n        eval_time: {minute}m\n"
    );
    let samples = if fired.is_empty() { " []\n" } else { "\n" };
    write!(text, "        exp_samples:{samples}").unwrap();
    for alert in fired {
        writeln!(text, "          - {{ labels: '{{alertname=\"{alert}\"}}', value: 1 }}").unwrap();
    }
    text
}

/// The file for `promtool test rules`.
fn unit_test(fleet: &Fleet, rules: &str) -> String {
    let alerts = rules.lines().filter_map(|line| line.trim().strip_prefix("- alert: ")).collect();
    let path = Path::new(RULES).canonicalize().unwrap();
    let mut text = format!("rule_files: [{}]\nevaluation_interval: 30s\ntests:\n  - interval: 30s\n", path.display());
    text += "    input_series:\n";
    for (series, values) in &fleet.series {
        let values: Vec<_> =
            values.iter().map(|value| if value.is_nan() { "_".into() } else { value.to_string() }).collect();
        writeln!(text, "      - series: '{series}'\n        values: '{}'", values.join(" ")).unwrap();
    }
    text + "    promql_expr_test:\n" + &expectation(59, &BTreeSet::new()) + &expectation(120, &alerts)
}

#[test]
fn a_healthy_fleet_fires_no_alert_and_a_sick_one_fires_each() {
    let mut fleet = Fleet::new();
    is_well(&mut fleet);
    is_sick(&mut fleet);
    let directory = test_support::temp_dir();
    let file = directory.path().join("fleet.yml");
    fs::write(&file, unit_test(&fleet, &fs::read_to_string(RULES).unwrap())).unwrap();
    let found = Command::new("promtool").arg("--version").output();
    assert!(found.is_ok(), "promtool is missing; on Debian, install it with: sudo apt-get install --yes prometheus");
    let output = Command::new("promtool").args(["test", "rules"]).arg(&file).finish();
    let said = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
}
