//! `cargo xtask lab NAME`: each failure shows without the protection, and the protection prevents it; the pictures say so.

use std::path::Path;
use std::sync::{Mutex, PoisonError};

use crate::support::{Lab, code, text};
use serde_json::Value;
use test_support::Finish;

/// Plays a scene, and returns its histories: without the protection, and with it. One at a time: a scene needs its processes to keep up with
/// short leases.
fn played(lab: &Lab, name: &str) -> [Value; 2] {
    static MACHINE: Mutex<()> = Mutex::new(());
    let _turn = MACHINE.lock().unwrap_or_else(PoisonError::into_inner);
    let output = lab.command(&format!("{name} --json --out pictures")).finish();
    assert_eq!((code(output.status), text(&output.stderr).as_str()), (0, ""), "{}", text(&output.stdout));
    serde_json::from_slice(&output.stdout).unwrap()
}

/// What a scene has to show: a part of the violation, and a part of what prevents it.
#[track_caller]
fn assert_shows(name: &str, violation: &str, prevented: &str) {
    let lab = Lab::new();
    let [without, with] = played(&lab, name);
    assert_ends(&without, "without", ("violation", violation), "wrong");
    assert_ends(&with, "with", ("prevented", prevented), "guarded");
    for history in [without, with] {
        let file = format!("{name}-{}.svg", history["variant"].as_str().unwrap());
        assert_draws(&history, &std::fs::read_to_string(lab.folder().join("pictures").join(file)).unwrap());
    }
}

#[track_caller]
fn assert_ends(history: &Value, variant: &str, (verdict, part): (&str, &str), tone: &str) {
    assert_eq!(history["variant"], variant);
    let said = history["ended"][verdict].as_str().unwrap_or_else(|| panic!("{}", history["ended"]));
    assert!(said.contains(part), "{said}");
    let events = history["events"].as_array().unwrap();
    assert!(events.iter().any(|event| event["tone"] == tone), "no event is {tone}: {history}");
    assert_eq!(events.iter().any(|event| event["tone"] == "wrong"), variant == "without", "{history}");
    let two_at_once = are_two_at_once(history);
    let is_refused = events.iter().any(|event| event["refused"].is_object() && told(event).contains("refused"));
    assert!(variant == "without" || !two_at_once || is_refused, "two holders, and nothing was refused: {history}");
    let times: Vec<_> = events.iter().map(|event| event["at_us"].as_u64().unwrap()).collect();
    assert!(times.is_sorted() && times.len() >= 3, "{times:?}");
}

fn told(event: &Value) -> &str {
    event["text"].as_str().unwrap()
}

/// Whether two clients acted as the holder at the same time.
fn are_two_at_once(history: &Value) -> bool {
    let relied = |bar: &&Value| bar["kind"] == "valid" || bar["kind"] == "believed";
    let bars: Vec<_> = history["bars"].as_array().unwrap().iter().filter(relied).collect();
    let at = |bar: &Value, end: &str| bar[end].as_u64().unwrap();
    let meet = |one: &Value, other: &Value| {
        one["lane"] != other["lane"]
            && at(one, "from_us") < at(other, "to_us")
            && at(other, "from_us") < at(one, "to_us")
    };
    bars.iter().any(|one| bars.iter().any(|other| meet(one, other)))
}

/// The picture is XML, and says in words what it shows.
#[track_caller]
fn assert_draws(history: &Value, svg: &str) {
    assert_well_formed(svg);
    let within = |tag: &str| {
        let (_, rest) = svg.split_once(&format!("<{tag} ")).unwrap();
        rest.split_once('>').unwrap().1.split_once(&format!("</{tag}>")).unwrap().0.to_owned()
    };
    assert!(within("title").contains(&escaped(history["title"].as_str().unwrap())), "{}", within("title"));
    let (verdict, words) = history["ended"].as_object().unwrap().iter().next().unwrap();
    let end = escaped(words.as_str().unwrap());
    assert!(within("desc").contains(&end), "{}", within("desc"));
    let drawn = svg.split_once("</desc>").unwrap().1;
    assert!(drawn.to_lowercase().contains(&format!(">{verdict}: ")), "the verdict is drawn");
    for lane in history["lanes"].as_array().unwrap() {
        assert!(drawn.contains(&format!(">{}</text>", escaped(lane.as_str().unwrap()))), "{lane}");
    }
    let refused = history["events"].as_array().unwrap().iter().filter(|event| event["refused"].is_object()).count();
    assert_eq!(drawn.matches(" refused\"").count(), refused + usize::from(refused > 0), "dashed, and in the legend");
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

/// Tags are closed in order, and attributes are quoted.
#[track_caller]
fn assert_well_formed(xml: &str) {
    let mut open = Vec::new();
    for part in xml.split('<').skip(1) {
        let (tag, rest) = part.split_once('>').unwrap_or_else(|| panic!("a tag without an end: {part}"));
        assert!(!rest.contains('>') || open.last() == Some(&"style"), "{rest}");
        assert_eq!(tag.matches('"').count() % 2, 0, "{tag}");
        let name = tag.split([' ', '/']).next().unwrap();
        match tag.strip_prefix('/') {
            Some(closed) => assert_eq!(open.pop(), Some(closed), "{tag}"),
            None if tag.ends_with('/') => {}
            None => open.push(name),
        }
    }
    assert_eq!(open, Vec::<&str>::new());
    for entity in xml.split('&').skip(1) {
        assert!(["amp;", "lt;", "gt;", "quot;"].iter().any(|known| entity.starts_with(known)), "&{entity:.9}");
    }
}

#[test]
fn a_holder_is_suspended_for_longer_than_its_lease() {
    assert_shows("paused-holder", "overwrote the report of B", "refused the write of A");
}

#[test]
fn a_late_release_deletes_the_lock_of_somebody_else() {
    assert_shows("foreign-delete", "B and C hold it at the same time", "leaves the lock to B");
}

#[test]
fn a_release_compares_first_and_deletes_later() {
    assert_shows("get-compare-delete", "B and C hold it at the same time", "Redis compared the owner");
}

#[test]
fn a_holder_dies_before_it_has_set_the_expiry() {
    assert_shows("setnx-expire", "never expires", "expired at its ttl");
}

#[test]
fn a_fence_is_raised_by_the_first_write_only() {
    assert_shows("lost-update", "the 50 of A are lost", "refused the write of A");
}

#[test]
fn a_primary_fails_before_its_replica_has_the_lock() {
    assert_shows("fail-over", "B holds the lock that A relies on", "B was refused");
}

#[test]
fn an_old_primary_serves_clients_after_a_planned_fail_over() {
    assert_shows("planned-fail-over", "A had not heard", "B was refused, and A lost its lease");
}

#[test]
fn a_primary_that_is_cut_off_serves_clients() {
    assert_shows("split-brain", "each at a primary on its side", "nothing was granted on either side");
}

#[test]
fn one_address_leads_to_two_servers() {
    assert_shows("two-servers-one-address", "at two servers with one address", "refused the write of A");
}

#[test]
fn a_reply_arrives_after_the_lease_has_ended() {
    assert_shows("late-reply", "ended before the reply arrived", "no reply is used that late");
}

#[test]
fn the_reply_to_an_acquire_is_lost() {
    assert_shows("lost-reply", "locked itself out", "asked again as the same owner");
}

#[test]
fn a_request_arrives_after_its_client_has_given_up() {
    assert_shows("ghosts", "A, which has given up", "left a tombstone");
}

#[test]
fn a_full_server_evicts_a_lock_that_is_held() {
    assert_shows("eviction", "dropped the lock of A", "kept the lock of A");
}

#[test]
fn a_node_of_a_quorum_forgets_its_vote() {
    assert_shows("quorum-restart", "node 2 voted for both", "it abstains until every lease");
}

#[test]
fn two_holders_are_suspended_and_resume_together() {
    assert_shows("two-paused-holders", "first A overwrote the report of C", "both guards report the loss");
}

#[test]
fn a_server_loses_power_before_a_lock_is_on_its_disk() {
    assert_shows("power-loss", "before it was on the disk", "the lock was on the disk before");
}

#[test]
fn the_clock_of_a_server_steps_forward() {
    assert_shows("clock-step", "A overwrote the report of B", "the resource refused the write of A");
}

#[test]
fn the_clock_of_a_holder_is_set_back() {
    assert_shows("client-clock-step", "A wrote because its clock said", "reported the loss before the lease had ended");
}

#[test]
fn clients_of_a_quorum_have_different_lists_of_nodes() {
    assert_shows("node-list", "a majority of its own list", "refuse B, which has another one");
}

#[test]
fn an_update_is_late_in_the_database_that_has_the_lock() {
    assert_shows("transaction-fence", "A overwrote the 20 of B", "the database refused the next one of A");
}

#[test]
fn a_session_expires_while_its_client_is_suspended() {
    assert_shows("expired-session", "A overwrote the report of B", "knows its deadline without a message");
}

#[test]
fn a_server_that_is_cut_off_answers_from_the_past() {
    assert_shows("stale-follower", "B holds the lock that A relies on", "A lost its lease in time");
}

#[test]
#[ignore = "it plays every failure once more; `cargo xtask ci --full` runs it"]
fn all_failures_are_on_one_page_that_needs_no_other_file() {
    let lab = Lab::new();
    let output = lab.command("all --out pictures").finish();
    let told = text(&output.stdout);
    assert_eq!(code(output.status), 0, "{told}{}", text(&output.stderr));
    let path = lab.folder().join("pictures/index.html");
    assert!(told.contains(&path.canonicalize().unwrap().display().to_string()), "{told}");
    let page = std::fs::read_to_string(path).unwrap();
    let pictures = files(&lab.folder().join("pictures"), "svg");
    assert_eq!(page.matches("<svg ").count(), pictures);
    assert_eq!(told.matches("Violation: ").count() + told.matches("Prevented: ").count(), pictures, "{told}");
    let named = page.replace("http://www.w3.org/2000/svg", "");
    assert!(!named.contains("http") && !named.contains("src=") && !named.contains("@import"), "{page}");
}

#[test]
fn a_failure_that_does_not_exist_is_refused() {
    let lab = Lab::new();
    let output = lab.command("paused-server").finish();
    assert_eq!(code(output.status), 64, "{}", text(&output.stderr));
}

fn files(folder: &Path, extension: &str) -> usize {
    let entries = folder.read_dir().unwrap().map(|entry| entry.unwrap().path());
    entries.filter(|path| path.extension().is_some_and(|end| end == extension)).count()
}
