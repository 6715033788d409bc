//! Checks that every server has to pass.

use serde_json::{Value, json};
use test_support::Finish;

use super::leasehold::{Leasehold, Running, code, text, until_let_go};
use super::wait_for;
use crate::watching::Watch;

/// What `doctor --json` reports, and its exit code.
pub(crate) fn report(leasehold: &Leasehold, url: &str) -> (Value, i32) {
    let output = leasehold.command(&format!("doctor --json --url {url}")).finish();
    let report = serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{}", text(&output.stderr)));
    (report, code(output.status))
}

/// The verdict on this, and what was found.
pub(crate) fn found<'a>(report: &'a Value, check: &str) -> (&'a str, String) {
    let found = report["checks"].as_array().unwrap().iter().find(|found| found["check"] == check);
    let found = found.unwrap_or_else(|| panic!("{check}: {report}"));
    (found["verdict"].as_str().unwrap(), found.to_string())
}

/// A command has the lock, and the next one waits for it. The URL is that of a store without locks.
pub(crate) fn the_next_one_waits(url: &str) {
    let (leasehold, url) = (Leasehold::new(), format!("--url {url}"));
    let script = format!("echo $LEASEHOLD_FENCE > token; {}", until_let_go("one"));
    let first = leasehold.start(&format!("{url} --why report a"), &script, "one");
    let busy = leasehold.run(&format!("{url} -n a"), "true");
    let said = text(&busy.stderr);
    assert!(code(busy.status) == 75 && !said.contains("never expires"), "{said}");
    let waiter = Running::spawn(leasehold.script(&format!("{url} a"), "echo $LEASEHOLD_FENCE"));
    wait_for("a waiter", || (leasehold.json(&format!("show {url} a"))["waiters"] == 1).then_some(()));
    let shown = leasehold.json(&format!("show {url} a"));
    let token: u64 = leasehold.scratch.text_of("token").trim().parse().unwrap();
    assert_eq!((&shown["token"], &shown["why"]), (&token.into(), &"report".into()), "{shown}");
    let listed = leasehold.json(&format!("ls {url}"));
    assert_eq!((&listed[0]["name"], listed.as_array().unwrap().len()), (&"a".into(), 1), "{listed}");
    leasehold.let_go("one");
    let output = waiter.end();
    assert_eq!(code(output.status), 0, "{}", text(&output.stderr));
    assert!(text(&output.stdout).trim().parse::<u64>().unwrap() > token);
    assert_eq!(code(first.end().status), 0);
    assert_eq!(leasehold.json(&format!("ls {url}")), json!([]));
}

/// A broken lock is seen by its holder and by a watch. The URL is that of a store without locks.
pub(crate) fn a_broken_lock_is_seen(url: &str) {
    let (leasehold, url) = (Leasehold::new(), format!("--url {url}"));
    let holder = leasehold.start(&format!("{url} --ttl 6s a"), &until_let_go("held"), "held");
    let watch = Watch::start(leasehold.command(&format!("watch {url} --json --every 100ms")));
    let token = watch.event("acquired", "a")["lease"]["token"].as_u64().unwrap();
    let broken = leasehold.command(&format!("break {url} a --yes --why stuck --token {token}")).finish();
    assert_eq!(code(broken.status), 0, "{}", text(&broken.stderr));
    watch.event("broken", "a");
    let output = holder.end();
    let said = text(&output.stderr);
    assert_eq!(code(output.status), 76, "{said}");
    assert!(said.contains("an operator ended it") && said.contains("stuck"), "{said}");
    let again = leasehold.command(&format!("break {url} a --yes --token {token}")).finish();
    assert_eq!(code(again.status), 1, "{}", text(&again.stderr));
}

/// The base of the tokens is raised, once. The URL is that of a store of this kind without locks.
pub(crate) fn the_base_is_raised_once(kind: &str, url: &str) {
    let leasehold = Leasehold::new();
    let token = || -> u64 {
        let output = leasehold.run(&format!("--url {url} a"), "echo $LEASEHOLD_FENCE");
        text(&output.stdout).trim().parse().unwrap_or_else(|_| panic!("{}", text(&output.stderr)))
    };
    let above = token() + 1_000_000;
    let raise = format!("{kind} base {url} --above {above}");
    let raised = leasehold.command(&raise).finish();
    let said = text(&raised.stderr);
    assert_eq!(text(&raised.stdout), format!("raised: all later tokens are above {above}\n"), "{said}");
    assert_eq!(leasehold.json(&raise), json!({ "raised": false, "above": above }));
    assert!(token() > above);

    let refused = leasehold.command(&format!("{kind} base {url} --above 0")).finish();
    assert_eq!(code(refused.status), 64, "{}", text(&refused.stderr));
    let refused = leasehold.command(&format!("{kind} base sqlite:locks.db --above {above}")).finish();
    let said = text(&refused.stderr);
    assert!(code(refused.status) == 78 && said.contains("this store is not "), "{said}");
}
