//! The router in a service, over HTTP.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::mpsc;
use std::time::Duration;

use axum::Router;
use leasehold_dashboard::Dashboard;
use test_support::bounds::{PATIENCE, wait_for};
use tokio::net::TcpListener;
use tokio::runtime::Runtime;

/// Serves a router on a port of its own for as long as the runtime lives.
fn served(runtime: &Runtime, router: impl FnOnce(Dashboard) -> Router) -> (SocketAddr, leasehold::Client) {
    runtime.block_on(async {
        let locks = leasehold::connect("memory:").await.unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let router = router(Dashboard::new(locks.clone()).store("the shop").every(Duration::from_millis(50)));
        tokio::spawn(async move { axum::serve(listener, router).await });
        (address, locks)
    })
}

fn send(address: SocketAddr, path: &str, head: &str) -> BufReader<TcpStream> {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    write!(stream, "GET {path} HTTP/1.1\r\nConnection: close\r\n{head}\r\n").unwrap();
    BufReader::new(stream)
}

fn status(address: SocketAddr, path: &str, head: &str) -> String {
    let mut line = String::new();
    send(address, path, head).read_line(&mut line).unwrap();
    line.split(' ').nth(1).unwrap().to_owned()
}

/// The next text of an open page that contains this.
fn told(page: &mut impl BufRead, what: &str) -> serde_json::Value {
    wait_for(what, || {
        let mut line = String::new();
        assert!(page.read_line(&mut line).unwrap() > 0, "the stream has ended");
        let data = line.strip_prefix("data: ")?;
        data.contains(what).then(|| serde_json::from_str(data).unwrap())
    })
}

#[test]
fn a_page_that_is_nested_in_a_service_is_told_what_its_client_holds() {
    let runtime = Runtime::new().unwrap();
    let (address, locks) = served(&runtime, |page| Router::new().nest_service("/locks", page.router()));
    let host = format!("Host: {address}\r\n");
    for path in ["/locks", "/locks/"] {
        let mut page = String::new();
        send(address, path, &host).read_to_string(&mut page).unwrap();
        assert!(page.starts_with("HTTP/1.1 200") && page.contains("<title>leasehold</title>"), "{path}: {page}");
    }
    assert_eq!(status(address, "/locks/other", &host), "404");
    let mut events = send(address, "/locks/events", &host);
    let first = told(&mut events, "the shop");
    assert_eq!((&first["held"], &first["trouble"]), (&0.into(), &serde_json::Value::Null));
    let guard = runtime.block_on(locks.mutex("invoice:7").why("payment").acquire()).unwrap();
    let held = told(&mut events, "invoice:7");
    let lock = &held["locks"][0];
    assert_eq!((&lock["token"], &lock["why"]), (&guard.fencing_token().get().into(), &"payment".into()));
    runtime.block_on(guard.release()).unwrap();
    let event = &told(&mut events, "\"released\"")["history"][0];
    assert_eq!((&event["name"], &event["lease"]["why"]), (&"invoice:7".into(), &"payment".into()));
}

#[test]
fn only_names_that_were_allowed_are_answered() {
    let runtime = Runtime::new().unwrap();
    let (address, _locks) = served(&runtime, |page| page.allow_host("admin.example").router());
    let table = [
        ("Host: admin.example\r\n", "200"),
        ("Host: Admin.example:8443\r\nOrigin: https://admin.example:8443\r\nSec-Fetch-Site: same-origin\r\n", "200"),
        ("Host: localhost\r\n", "200"),
        ("Host: evil.example\r\n", "421"),
        ("Host: admin.example.evil.example\r\n", "421"),
        ("Host: admin.example\r\nOrigin: https://evil.example\r\n", "403"),
        ("Host: admin.example\r\nOrigin: ftp://admin.example\r\n", "403"),
        ("Host: admin.example\r\nSec-Fetch-Site: cross-site\r\n", "403"),
    ];
    for path in ["/", "/events"] {
        for (head, expected) in table {
            assert_eq!(status(address, path, head), expected, "{path} {head}");
        }
    }
}

#[test]
fn pages_are_bounded() {
    let runtime = Runtime::new().unwrap();
    let (address, _locks) = served(&runtime, Dashboard::router);
    let host = "Host: localhost\r\n";
    let mut pages: Vec<_> = (0..32).map(|_| send(address, "/events", host)).collect();
    pages.iter_mut().for_each(|page| drop(told(page, "the shop")));
    assert_eq!(status(address, "/events", host), "503");
    drop(pages);
    wait_for("room for a page", || (status(address, "/events", host) == "200").then_some(()));
}

/// A store that cannot be read is shown on the page, and reported once; when it can be read again, so is that.
#[test]
fn a_store_that_is_away_is_told_to_the_page_and_to_the_service() {
    use leasehold::memory::faults::{Fault, Faults, Faulty};
    use std::sync::Arc;

    let runtime = Runtime::new().unwrap();
    let (faults, (tell, heard)) = (Faults::new(), mpsc::channel());
    let address = runtime.block_on(async {
        let store = Faulty::new(leasehold::memory::MemoryStore::default().nonblocking(), &faults);
        let locks = leasehold::Client::new(Arc::new(store)).unwrap();
        let page = Dashboard::new(locks).every(Duration::from_millis(50));
        faults.fail_everything(Fault::Refused(leasehold::ErrorKind::Unreachable));
        assert!(page.check().await.is_err());
        let router = page.on_trouble(move |trouble| tell.send(trouble.map(str::to_owned)).unwrap()).router();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        tokio::spawn(async move { axum::serve(listener, router).await });
        address
    });
    let mut events = send(address, "/events", "Host: localhost\r\n");
    let away = told(&mut events, "\"trouble\":\"");
    assert_eq!((&away["age_ms"], &away["held"]), (&serde_json::Value::Null, &0.into()), "nothing was seen yet");
    faults.heal_everything();
    told(&mut events, "\"trouble\":null");
    let first = heard.recv_timeout(PATIENCE).unwrap();
    assert!(first.is_some());
    assert_eq!(heard.recv_timeout(PATIENCE).unwrap(), None);
}
