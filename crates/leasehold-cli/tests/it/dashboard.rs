//! `leasehold dashboard`, as any program meets it over HTTP.

use std::io::Read;
use std::net::TcpListener;
use std::thread::sleep;
use std::time::Duration;

use crate::support::dashboard::{Dashboard, lock};
use crate::support::leasehold::{Leasehold, Running, code, text, until_let_go};
use crate::support::nodes::{Nodes, RUN};
use crate::support::wait_for;
use serde_json::Value;
use test_support::{Finish, RedisOptions, RedisServer};

/// Whether the page shows an event.
fn happened(told: &Value, event: &str, name: &str) -> Option<()> {
    let history = told["history"].as_array().unwrap();
    history.iter().any(|line| line["event"] == event && line["name"] == name).then_some(())
}

#[test]
fn a_page_is_told_what_is_held_and_what_happens() {
    let server = RedisServer::start_with(RedisOptions::default().require_password("sesame"));
    for url in [String::new(), format!("--url {}", server.url())] {
        let leasehold = Leasehold::new();
        let _first = leasehold.start(&format!("{url} --why one job:a"), &until_let_go("one"), "one");
        let _slot = leasehold.start(&format!("{url} --slots 3 gpu"), &until_let_go("slot"), "slot");
        let _unseen = leasehold.start(&format!("{url} other"), &until_let_go("other"), "other");
        let dashboard = Dashboard::start(&leasehold, &format!("{url} job:* "));
        let all = Dashboard::start(&leasehold, &url);
        let mut events = dashboard.events();
        let row = events.lock("job:a");
        assert_eq!((&row["why"], &row["kind"]), (&"one".into(), &"lock".into()));
        assert_eq!(row["token"], leasehold.json(&format!("show {url} job:a"))["token"]);
        assert!((1..=30_000).contains(&row["remaining_ms"].as_u64().unwrap()), "{row}");
        let told = all.events().next();
        assert_eq!((&told["held"], &lock(&told, "gpu").unwrap()["limit"]), (&3.into(), &3.into()), "{told}");
        let _waiter = Running::spawn(leasehold.script(&format!("{url} job:a"), &until_let_go("two")));
        events.until("the waiter", |told| (lock(told, "job:a")?["waiters"] == 1).then_some(()));
        leasehold.let_go("one");
        let told = events.until("the release", |told| happened(told, "released", "job:a").map(|()| told.clone()));
        assert!(told["trouble"].is_null() && told["quorum"].is_null() && told["held"] == 1, "{told}");
        events.until("the next holder", |told| happened(told, "acquired", "job:a"));
        leasehold.let_go("two");
        events.until("its end", |told| (told["held"] == 0).then_some(()));
        let store = told["store"].as_str().unwrap();
        assert!(store.starts_with(if url.is_empty() { "sqlite:" } else { "redis://" }), "{store}");
        assert!(!told.to_string().contains("sesame") && !dashboard.get("/", "").contains("sesame"), "{told}");
    }
}

#[test]
fn the_nodes_of_a_quorum_are_shown_with_the_locks_of_their_majority() {
    let mut nodes = Nodes::founded(3);
    let url = nodes.url();
    let holder = nodes.leasehold.start(&format!("{RUN} {url} --why quorum a"), &until_let_go("one"), "one");
    let dashboard = Dashboard::start(&nodes.leasehold, &format!("--url {url}"));
    let mut events = dashboard.events();
    let row = events.lock("a");
    assert_eq!((&row["why"], &row["leases"]), (&"quorum".into(), &1.into()));
    let told = events.next();
    assert_eq!((&told["quorum"]["voting"], &told["quorum"]["can_grant"]), (&3.into(), &true.into()), "{told}");
    nodes.servers[0].kill();
    let state = |told: &Value, node: usize| told["quorum"]["nodes"][node]["state"].as_str().unwrap().to_owned();
    let told = events.until("a node that is away", |told| (state(told, 0) == "away").then(|| told.clone()));
    assert!(lock(&told, "a").is_some() && told["trouble"].is_null(), "two of three still show it: {told}");
    nodes.servers[0].restart_empty();
    // A client of the deployment marks it: the page changes nothing.
    events.until("an empty node", |told| (state(told, 0) == "empty").then_some(()));
    nodes.leasehold.let_go("one");
    assert_eq!(code(holder.end().status), 0);
    nodes.token(&url);
    let waits =
        |told: &Value| told["quorum"]["nodes"][0]["votes_in_ms"].as_u64().filter(|_| state(told, 0) == "abstains");
    assert!(events.until("a node that dwells", waits) <= 4_100);
    nodes.servers[1].kill();
    nodes.servers[2].kill();
    let told = events.until("no majority", |told| told["trouble"].is_string().then(|| told.clone()));
    assert_eq!(told["quorum"]["can_grant"], false, "{told}");
}

#[test]
fn requests_of_other_sites_and_under_other_names_are_refused() {
    let leasehold = Leasehold::new();
    let dashboard = Dashboard::start(&leasehold, "");
    let here = &dashboard.address;
    let port = here.rsplit(':').next().unwrap();
    let table = [
        (format!("GET / HTTP/1.1\r\nHost: {here}\r\n"), 200),
        (format!("GET / HTTP/1.1\r\nHost: localhost:{port}\r\nSec-Fetch-Site: none\r\n"), 200),
        (
            "GET / HTTP/1.1\r\nHost: localhost:9000\r\nOrigin: http://localhost:9000\r\nSec-Fetch-Site: same-origin\r\n".to_owned(),
            200,
        ),
        (format!("GET http://{here}/ HTTP/1.1\r\nHost: {here}\r\n"), 200),
        (format!("GET /nothing HTTP/1.1\r\nHost: {here}\r\n"), 404),
        ("GET / HTTP/1.1\r\n".to_owned(), 421),
        ("GET / HTTP/1.0\r\n".to_owned(), 421),
        (format!("GET / HTTP/1.1\r\nHost: evil.example:{port}\r\n"), 421),
        (format!("GET /events HTTP/1.1\r\nHost: evil.example:{port}\r\n"), 421),
        (format!("GET / HTTP/1.1\r\nHost: {here}.evil.example\r\n"), 421),
        (format!("GET / HTTP/1.1\r\nHost: {here}\r\nHost: evil.example\r\n"), 421),
        (format!("GET http://evil.example/ HTTP/1.1\r\nHost: {here}\r\n"), 421),
        (format!("GET / HTTP/1.1\r\nHost: {here}\r\nSec-Fetch-Site: cross-site\r\n"), 403),
        (format!("GET /events HTTP/1.1\r\nHost: {here}\r\nSec-Fetch-Site: same-site\r\n"), 403),
        (format!("GET /events HTTP/1.1\r\nHost: {here}\r\nOrigin: http://evil.example\r\n"), 403),
        (format!("GET /events HTTP/1.1\r\nHost: {here}\r\nOrigin: http://127.0.0.1:1\r\n"), 403),
        (format!("GET /events HTTP/1.1\r\nHost: {here}\r\nOrigin: null\r\n"), 403),
    ];
    for (request, status) in table {
        let answer = dashboard.status(&format!("{request}\r\n"));
        assert_eq!(answer.split(' ').nth(1), Some(&*status.to_string()), "{request}{answer}");
    }
    for method in ["POST", "PUT", "DELETE", "PATCH", "OPTIONS", "HEAD", "BREAK"] {
        for path in ["/", "/events", "/nothing"] {
            let request = format!("{method} {path} HTTP/1.1\r\nHost: {here}\r\nConnection: close\r\n\r\n");
            let answer = dashboard.answer(&request);
            assert!(answer.starts_with("HTTP/1.1 405 ") && answer.contains("\r\nallow: GET\r\n"), "{request}{answer}");
        }
    }
}

#[test]
fn the_page_loads_nothing_and_the_browser_lets_it_do_little() {
    let leasehold = Leasehold::new();
    let dashboard = Dashboard::start(&leasehold, "");
    let (page, other) = (dashboard.get("/", ""), dashboard.get("/", ""));
    for answer in [&page, &dashboard.get("/nothing", ""), &dashboard.get("/", "Origin: null\r\n")] {
        for header in [
            "cache-control: no-store",
            "x-content-type-options: nosniff",
            "x-frame-options: DENY",
            "referrer-policy: no-referrer",
            "cross-origin-resource-policy: same-origin",
        ] {
            assert!(answer.contains(&format!("\r\n{header}\r\n")), "{header}: {answer}");
        }
    }
    let policy = page.lines().find_map(|line| line.strip_prefix("content-security-policy: ")).unwrap();
    for rule in ["default-src 'none'", "connect-src 'self'", "frame-ancestors 'none'", "trusted-types 'none'"] {
        assert!(policy.contains(rule), "{policy}");
    }
    assert!(!policy.contains("unsafe"), "{policy}");
    let nonce = policy.split('\'').find_map(|part| part.strip_prefix("nonce-")).unwrap();
    assert_eq!(page.matches(&format!(" nonce=\"{nonce}\">")).count(), 2, "a style and a script");
    assert!(!other.contains(nonce), "each answer has a nonce of its own");
    // What is named in the page is a name space, not an address.
    let body = page.replace("http://www.w3.org/2000/svg", "");
    for outside in ["http://", "https://", "src=", "@import", "url(", "innerHTML", "{{"] {
        assert!(!body.contains(outside), "{outside}");
    }
}

#[test]
fn an_address_that_cannot_be_used_is_refused_with_a_remedy() {
    let leasehold = Leasehold::new();
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let table = [
        (format!("--listen {address}"), 64, vec!["cannot listen on", &address, "--listen 127.0.0.1:0"]),
        ("--listen 0.0.0.0:7373".to_owned(), 78, vec!["0.0.0.0:7373", "no login", "ssh -L 7373:127.0.0.1:7373"]),
        ("--listen [::]:7373".to_owned(), 78, vec!["[::]:7373", "no login"]),
        ("--listen 7373".to_owned(), 64, vec!["127.0.0.1:7373"]),
        ("--listen 127.0.0.1:0 --every 1ms".to_owned(), 64, vec!["100ms"]),
        ("--listen 127.0.0.1:0 --url redis://127.0.0.1:1".to_owned(), 69, vec!["127.0.0.1:1"]),
        (
            "--listen 127.0.0.1:0 --url redlock://127.0.0.1:1,127.0.0.1:2,127.0.0.1:3".to_owned(),
            69,
            vec!["127.0.0.1:1"],
        ),
        ("--listen 127.0.0.1:0 --url memory:".to_owned(), 78, vec!["memory:"]),
    ];
    for (options, exit, words) in table {
        let output = leasehold.command(&format!("dashboard {options}")).finish();
        let said = text(&output.stderr);
        assert_eq!(code(output.status), exit, "{options}: {said}");
        assert!(words.iter().all(|word| said.contains(word)) && output.stdout.is_empty(), "{options}: {said}");
    }
}

#[test]
fn a_signal_ends_it_with_pages_open() {
    let leasehold = Leasehold::new();
    let dashboard = Dashboard::start(&leasehold, "");
    let mut events = dashboard.events();
    events.next();
    assert_eq!(code(dashboard.interrupt()), 130);
}

#[test]
fn the_store_is_read_only_while_a_page_is_open() {
    let server = RedisServer::start();
    let leasehold = Leasehold::new();
    let dashboard = Dashboard::start(&leasehold, &format!("--url {}", server.url()));
    // Each question is counted as well.
    let commands = || {
        let info: String = server.command(&["INFO", "stats"]);
        let line = info.lines().find_map(|line| line.strip_prefix("total_commands_processed:")).unwrap();
        line.parse::<u64>().unwrap()
    };
    let is_quiet = || {
        let before = commands();
        sleep(Duration::from_secs(1));
        (commands() <= before + 1).then_some(())
    };
    wait_for("no command before a page is open", is_quiet);
    let mut events = dashboard.events();
    events.next();
    let before = commands();
    (0..3).for_each(|_| drop(events.next()));
    assert!(commands() > before + 2, "it is read for the page");
    drop(events);
    wait_for("no command after the page was closed", is_quiet);
    dashboard.events().next();
}

#[test]
fn pages_are_bounded_and_share_one_reader() {
    let leasehold = Leasehold::new();
    let dashboard = Dashboard::start(&leasehold, "");
    let mut pages: Vec<_> = (0..32).map(|_| dashboard.events()).collect();
    assert!(pages.iter().all(|page| page.status == "HTTP/1.1 200 OK"));
    assert_eq!(dashboard.events().status, "HTTP/1.1 503 Service Unavailable");
    pages.iter_mut().for_each(|page| drop(page.next()));
    drop(pages);
    wait_for("room for a page", || (dashboard.events().status == "HTTP/1.1 200 OK").then_some(()));
}

#[test]
fn clients_that_send_no_request_do_not_keep_others_out() {
    let leasehold = Leasehold::new();
    let dashboard = Dashboard::start(&leasehold, "");
    let silent: Vec<_> =
        (0..100).map(|count| dashboard.send(if count % 2 == 0 { "" } else { "GET / HTTP/1.1\r\n" })).collect();
    assert!(dashboard.get("/", "").starts_with("HTTP/1.1 200 "));
    // Nobody waited for those to be closed that have sent nothing for too long: a later one is still open.
    silent[60].set_nonblocking(true).unwrap();
    let open = (&silent[60]).read(&mut [0; 1]).map_err(|error| error.kind());
    assert_eq!(open, Err(std::io::ErrorKind::WouldBlock), "the page had to wait");
    silent[60].set_nonblocking(false).unwrap();
    for mut client in silent {
        // The oldest were closed at once, and that may have discarded what they had sent.
        let end = client.read_to_end(&mut Vec::new()).map_err(|error| error.kind());
        assert!(matches!(end, Ok(_) | Err(std::io::ErrorKind::ConnectionReset)), "{end:?}");
    }
}

#[test]
fn a_store_that_is_away_is_told_and_looked_for_again() {
    let mut server = RedisServer::start_with(RedisOptions::default().append_only());
    let leasehold = Leasehold::new();
    let url = server.url();
    let _holder = leasehold.start(&format!("--url {url} --ttl 60s a"), &until_let_go("one"), "one");
    let dashboard = Dashboard::start(&leasehold, &format!("--url {url}"));
    let mut events = dashboard.events();
    events.lock("a");
    server.kill();
    let told = events.until("trouble", |told| told["trouble"].is_string().then(|| told.clone()));
    assert!(lock(&told, "a").is_some(), "what was seen last is still shown: {told}");
    let age = |told: &Value| told["age_ms"].as_u64().unwrap();
    let before = age(&told);
    events.until("its age", |told| (age(told) > before).then_some(()));
    server.restart_with_data();
    events.until("the store again", |told| (told["trouble"].is_null() && lock(told, "a").is_some()).then_some(()));
}
