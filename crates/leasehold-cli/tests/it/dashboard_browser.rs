//! The page of `leasehold dashboard` in a real browser.

use std::process::Command;

use crate::support::browser::{Browser, DOWN, ENTER, ESCAPE};
use crate::support::dashboard::Dashboard;
use crate::support::leasehold::{Leasehold, Running};
use crate::support::wait_for;
use test_support::RedisServer;

/// As a name and as a reason, this must be text.
const MARKUP: &str = "<img src=x onerror=\"document.title='markup ran'\">";

/// With the control character that turns the order of letters, it would look like the name of another lock.
const DISGUISED: &str = "job:2\u{202e}1";

/// This says with letters what the live page shows of the name above.
const LOOKALIKE: &str = "job:2\\u{202e}1";

/// One browser, for all that a person does at the page.
#[test]
#[ignore = "it needs a browser; `cargo xtask ci --full` runs it"]
fn people_read_filter_and_walk_through_the_locks() {
    let server = RedisServer::start();
    let leasehold = Leasehold::new();
    let url = server.url();
    let hold = |name: &str, options: &str| hold(&leasehold, &url, name, options);
    let dashboard = Dashboard::start(&leasehold, &format!("--url {url}"));
    let browser = Browser::start();
    browser.prefer("light");
    browser.open(&dashboard.url());
    browser.until("document.querySelector('#empty').innerText.includes('leasehold run nightly-report')");

    let _others = ["job:1", DISGUISED, LOOKALIKE, "job:10", MARKUP].map(|name| hold(name, "--ttl 1h"));
    let _slots: Vec<_> = (0..6).map(|_| hold("gpu", "--slots 6 --ttl 1h")).collect();
    let early = hold("early", "--ttl 20s");
    browser.until(&format!("{ROWS}.length === 7 && {ROWS}.every(row => row.querySelector('.lease'))"));

    markup_is_text(&browser);
    bars_appear_and_shrink(&browser, &server);
    browser.until(&format!("{AGES}.length === 10 && {AGES}.every(age => /^[1-9]/.test(age))"));
    the_filter_filters(&browser);
    keys_lead_through_the_rows(&browser);
    an_event_filters_to_its_lock(&browser);
    an_open_row_has_a_command(&browser);
    locks_are_in_order(&browser, &dashboard, |name| hold(name, "--ttl 1h"));
    light_and_dark(&browser, &dashboard);
    a_hidden_page_is_told_nothing(&browser);

    browser.press("jjjjjjj");
    drop(early);
    browser.until(&format!("!{NAMES}.includes('early') && {FOCUSED} === 'job:10'"));
    browser.until("[...document.querySelectorAll('#history .event')].some(event => event.textContent === 'released')");
    the_browser_has_no_complaint_and_was_told_all_by_one_stream(&browser);
    drop(dashboard);
    browser.until("document.querySelector('#trouble').checkVisibility()");
}

/// The rows that can be seen.
const ROWS: &str = "[...document.querySelectorAll('#rows .row')].filter(row => !row.hidden)";
/// Their names.
const NAMES: &str = "[...document.querySelectorAll('#rows .row:not([hidden]) .name')].map(name => name.textContent)";

/// For how long their leases have been held, of those that are shown.
const AGES: &str = "[...document.querySelectorAll('#rows .age')].map(age => age.textContent)";

/// Holds a lock until it is dropped, which releases it.
struct Holding(Running);

impl Drop for Holding {
    fn drop(&mut self) {
        if !self.0.has_ended() {
            self.0.signal(rustix::process::Signal::TERM);
        }
        wait_for("the release", || self.0.has_ended().then_some(()));
    }
}

fn hold(leasehold: &Leasehold, url: &str, name: &str, options: &str) -> Holding {
    let mut command: Command = leasehold.command(&format!("run --url {url} {options} --why"));
    command.args([MARKUP, name, "--", "sleep", "600"]);
    Holding(Running::spawn(command))
}

fn markup_is_text(browser: &Browser) {
    let quoted = serde_json::to_string(MARKUP).unwrap();
    browser.until(&format!("{NAMES}.includes({quoted})"));
    browser.until(&format!("[...document.querySelectorAll('#rows .why')].some(why => why.textContent === {quoted})"));
    assert_eq!(browser.script("return document.querySelectorAll('main img').length"), 0);
    browser.until(&format!("{NAMES}.includes(String.raw`job:2\\u{{202e}}1`)"));
    browser.until(&format!("{NAMES}.includes(String.raw`job:2\\\\u{{202e}}1`)"));
    assert_eq!(browser.script("return document.title"), "7 held · leasehold");
    // Even a mistake in the page could not make markup of a text.
    let forced = "try { document.body.innerHTML = '<p>'; return 'made' } catch (error) { return error.name }";
    assert_eq!(browser.script(forced), "TypeError");
}

/// A lease that is renewed in time has no bar. One of which less than half is left has one, which is shorter a moment later.
fn bars_appear_and_shrink(browser: &Browser, server: &RedisServer) {
    let bars = "[...document.querySelectorAll('#rows .bar')].filter(bar => bar.checkVisibility())";
    assert_eq!(browser.script(&format!("return {bars}.length")), 0);
    // It is renewed after a third of its hour.
    let _: i32 = server.command(&["PEXPIRE", "job:10", "1190000"]);
    browser.until(&format!("{bars}.length === 1"));
    let width = "return document.querySelector('#rows .half .bar i').getBoundingClientRect().width";
    let width = || browser.script(width).as_f64().unwrap();
    let mut last = width();
    let mut shorter = 0;
    wait_for("a bar that shrinks five times in a row", || {
        let now = width();
        if now != last {
            shorter = if now < last { shorter + 1 } else { 0 };
        }
        last = now;
        (shorter >= 5).then_some(())
    });
    let _: i32 = server.command(&["PEXPIRE", "job:10", "3600000"]);
    browser.until(&format!("{bars}.length === 0"));
}

fn the_filter_filters(browser: &Browser) {
    browser.press("/");
    browser.until("document.activeElement.id === 'filter'");
    browser.press("JOB:1 onerror");
    browser.until(&format!("{NAMES}.join() === 'job:1,job:10'"));
    browser.until("document.querySelector('#count').textContent === '2 of 7'");
    browser.press("/tj");
    browser.until(&format!("{ROWS}.length === 0 && document.querySelector('#none').checkVisibility()"));
    browser.until("document.querySelector('#count').textContent === 'no lock matches, of 7'");
    browser.until("new URLSearchParams(location.search).get('filter') === 'JOB:1 onerror/tj'");
    browser.press(ESCAPE);
    browser
        .until(&format!("{ROWS}.length === 7 && document.activeElement === document.body && location.search === ''"));
}

/// The lock with waiters comes first, until somebody wants another order, which a link keeps.
fn locks_are_in_order(browser: &Browser, dashboard: &Dashboard, hold: impl Fn(&str) -> Holding) {
    browser.until(&format!("{NAMES}[0] !== 'job:10'"));
    let waiter = hold("job:10");
    browser.until(&format!("{NAMES}[0] === 'job:10'"));
    browser
        .until("document.querySelector('#count-waiting').textContent === '1' && document.title.includes('1 waiting')");
    browser.script("document.querySelector('[value=oldest]').click()");
    browser.until(&format!("{NAMES}[0] !== 'job:10' && location.search === '?sort=oldest'"));
    browser.open(&format!("{}?filter=%3Djob%3A1&sort=oldest", dashboard.url()));
    browser.until(&format!("{NAMES}.join() === 'job:1' && document.querySelector('[value=oldest]').checked"));
    browser.open(&dashboard.url());
    browser.until(&format!("{NAMES}[0] === 'job:10'"));
    drop(waiter);
    browser.until(&format!("{ROWS}.length === 7 && {NAMES}[0] !== 'job:10'"));
}

/// An open row has the command that ends its lease, and its name is quoted for a shell as it is.
fn an_open_row_has_a_command(browser: &Browser) {
    browser.script(&format!(
        "{ROWS}.find(row => row.querySelector('.name').textContent === String.raw`job:2\\u{{202e}}1`).click()"
    ));
    let code = "document.querySelector('#rows .detail li code').textContent";
    browser.until(&format!("{code}.startsWith(String.raw`leasehold break $'job:2\\U0000202e1' --token `)"));
    browser.script("document.querySelector('#rows .open').click()");
    browser.until("!document.querySelector('#rows .detail')");
}

/// A click on an event in the history filters the locks.
fn an_event_filters_to_its_lock(browser: &Browser) {
    let event = "[...document.querySelectorAll('#history li')].find(event => event.textContent.includes('acquired') && event.querySelector('.name').textContent === 'job:1')";
    browser.until(&format!("{event}.querySelector('.why').textContent.includes('onerror')"));
    browser.script(&format!("{event}.querySelector('.name').click()"));
    browser.until(&format!("{NAMES}.join() === 'job:1' && document.querySelector('#filter').value === '=job:1'"));
    browser.script("document.querySelector('#filter').focus()");
    browser.press(ESCAPE);
    browser.until(&format!("{ROWS}.length === 7"));
}

fn keys_lead_through_the_rows(browser: &Browser) {
    let focused = |name: &str| {
        browser.until(&format!(
            "document.activeElement.querySelector?.('.name')?.textContent === {}",
            serde_json::to_string(name).unwrap()
        ));
    };
    browser.press("j");
    focused(MARKUP);
    browser.press(&format!("{DOWN}k"));
    focused(MARKUP);
    browser.press("jj");
    focused("gpu");
    let shown = "document.activeElement.querySelectorAll('.lease').length";
    browser.until(&format!("{shown} === 4"));
    browser.press(ENTER);
    browser.until(&format!("{shown} === 6"));
    browser.press(ENTER);
    browser.until(&format!("{shown} === 4"));
    browser.press("jjjjjjj");
    focused("job:10");
}

/// The name in the row that has the focus.
const FOCUSED: &str = "document.activeElement.querySelector?.('.name')?.textContent";

fn light_and_dark(browser: &Browser, dashboard: &Dashboard) {
    let ground =
        |colour: &str| browser.until(&format!("getComputedStyle(document.body).backgroundColor === '{colour}'"));
    let (light, dark) = ("rgb(246, 246, 243)", "rgb(20, 22, 26)");
    ground(light);
    browser.prefer("dark");
    ground(dark);
    browser.press("t");
    ground(light);
    browser.open(&dashboard.url());
    ground(light);
    browser.script("document.querySelector('#theme').click()");
    ground(dark);
    browser.until(&format!("{ROWS}.length === 7"));
}

fn a_hidden_page_is_told_nothing(browser: &Browser) {
    let set = |hidden: bool| {
        let property = format!("Object.defineProperty(document, 'hidden', {{ value: {hidden}, configurable: true }})");
        browser.script(&format!("{property}; document.dispatchEvent(new Event('visibilitychange'))"));
    };
    let status =
        |text: &str| browser.until(&format!("document.querySelector('#status').textContent.startsWith('{text}')"));
    status("live");
    set(true);
    status("paused");
    set(false);
    status("live");
}

fn the_browser_has_no_complaint_and_was_told_all_by_one_stream(browser: &Browser) {
    let complaints = browser.complaints();
    let others: Vec<_> = complaints
        .as_array()
        .unwrap()
        .iter()
        .filter(|one| !one["message"].as_str().unwrap().contains("TrustedHTML"))
        .collect();
    assert!(others.is_empty(), "{others:?}");
    let requests =
        "return performance.getEntriesByType('resource').map(request => new URL(request.name).pathname).join()";
    let requests = browser.script(requests);
    assert!(["", "/events"].contains(&requests.as_str().unwrap()), "{requests}");
}
