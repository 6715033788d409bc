//! The service as processes, with a real HTTP client and a real Redis.
#![expect(clippy::expect_used, clippy::unwrap_used, reason = "a test fails by panicking")]

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread;

use leasehold::FencingToken;
use leasehold::blocking::Client;
use redis::Commands;
use test_support::bounds::{PATIENCE, Watchdog, status_of, wait_for};
use test_support::{RedisServer, signals};
use ureq::Agent;

/// Status, fencing token and text of an answer.
type Answer = (u16, Option<String>, String);

/// A running service.
struct Service {
    process: Child,
    url: String,
    /// Where its locks are shown.
    admin: String,
}

impl Service {
    fn start(redis: &RedisServer, bank_takes_ms: u32) -> Self {
        signals::default_in_children();
        let mut process = Command::new(env!("CARGO_BIN_EXE_axum-deadpool"))
            .envs([("REDIS_URL", redis.url()), ("BANK_TAKES_MS", bank_takes_ms.to_string())])
            .envs([("LISTEN", "127.0.0.1:0"), ("ADMIN", "127.0.0.1:0")])
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(process.stdout.take().unwrap()).lines();
        let mut address = |before| lines.next().unwrap().unwrap().strip_prefix(before).expect(before).to_owned();
        let (admin, url) = (address("the locks are shown at "), address("listening on "));
        Self { process, url, admin }
    }

    fn put(&self, invoice: u64, token: Option<FencingToken>, text: &str) -> Answer {
        let mut request = agent().put(format!("{}/invoices/{invoice}", self.url));
        if let Some(token) = token {
            request = request.header("Fencing-Token", token.to_string());
        }
        answer(request.send(text)).expect("the service answers")
    }

    /// Reads, and raises the fence before.
    fn raise(&self, invoice: u64, token: FencingToken) -> Answer {
        let request = agent().get(format!("{}/invoices/{invoice}", self.url));
        answer(request.header("Fencing-Raise", token.to_string()).call()).expect("the service answers")
    }

    /// `None` if the service ends first.
    fn pay(&self, invoice: u64) -> Option<Answer> {
        answer(agent().post(format!("{}/invoices/{invoice}/payment", self.url)).send_empty())
    }

    fn stopped(&mut self) -> ExitStatus {
        signals::terminate(self.process.id());
        status_of(&mut self.process, "the service that was asked to stop")
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        self.process.kill().ok();
        self.process.wait().ok();
    }
}

fn agent() -> Agent {
    Agent::config_builder().http_status_as_error(false).timeout_global(Some(PATIENCE)).build().into()
}

fn answer(response: Result<ureq::http::Response<ureq::Body>, ureq::Error>) -> Option<Answer> {
    let mut response = response.ok()?;
    let token = response.headers().get("fencing-token").map(|token| token.to_str().unwrap().to_owned());
    Some((response.status().as_u16(), token, response.body_mut().read_to_string().ok()?))
}

fn text(redis: &RedisServer, invoice: u64) -> String {
    redis.connection().hget(format!("invoice:{invoice}:record"), "text").unwrap()
}

fn is_free(locks: &Client, name: &str) -> bool {
    locks.mutex(name).try_acquire().unwrap().is_some()
}

#[test]
fn a_late_editor_is_refused_and_so_is_one_without_a_token() {
    let _watchdog = Watchdog::over_this_test();
    let redis = RedisServer::start();
    let locks = leasehold::blocking::connect(&redis.url()).unwrap();
    let [early, late] = [(); 2].map(|()| {
        let guard = locks.mutex("invoice:7").acquire().unwrap();
        guard.fencing_token()
    });

    let one = Service::start(&redis, 0);
    assert_eq!(one.put(7, Some(early), "first").0, 204);
    assert_eq!(one.put(7, Some(late), "second").0, 204);
    let (status, highest, reason) = one.put(7, Some(early), "too late");
    assert_eq!((status, highest), (409, Some(late.to_string())), "{reason}");
    assert!(reason.contains("comes too late"), "{reason}");
    let (status, _, reason) = one.put(7, None, "without a token");
    assert_eq!(status, 428, "{reason}");
    assert_eq!(one.put(8, Some(early), "of another invoice").0, 204);

    // Its layer has seen nothing, and Redis knows.
    let two = Service::start(&redis, 0);
    let (status, _, reason) = two.put(7, Some(early), "too late");
    assert_eq!(status, 409, "{reason}");
    assert_eq!(text(&redis, 7), "second");
}

/// The later editor reads from one server. The earlier one writes to another, whose layer has seen nothing.
#[test]
fn an_editor_that_was_paused_is_refused_by_each_server_once_a_later_one_has_read() {
    let _watchdog = Watchdog::over_this_test();
    let redis = RedisServer::start();
    let locks = leasehold::blocking::connect(&redis.url()).unwrap();
    let [early, late] = [(); 2].map(|()| locks.mutex("invoice:7").acquire().unwrap().fencing_token());
    let services = [Service::start(&redis, 0), Service::start(&redis, 0)];

    assert_eq!(services[0].raise(7, early).0, 200);
    assert_eq!(services[1].put(7, Some(early), "first").0, 204);
    let (status, _, text_then) = services[0].raise(7, late);
    assert_eq!((status, text_then.as_str()), (200, "first"));
    let (status, _, reason) = services[1].put(7, Some(early), "late");
    assert_eq!(status, 409, "{reason}");
    assert_eq!(services[1].raise(7, early).0, 409);
    assert_eq!(services[1].put(7, Some(late), "second").0, 204);
    assert_eq!(text(&redis, 7), "second");
}

#[test]
fn two_servers_that_are_asked_at_once_pay_an_invoice_once() {
    let _watchdog = Watchdog::over_this_test();
    let redis = RedisServer::start();
    let services = [Service::start(&redis, 200), Service::start(&redis, 200)];
    let receipts: Vec<_> = thread::scope(|scope| {
        let threads: Vec<_> = (0..8)
            .map(|n| {
                scope.spawn({
                    let service = &services[n % 2];
                    || service.pay(7)
                })
            })
            .collect();
        threads.into_iter().map(|thread| thread.join().unwrap().expect("the service answers")).collect()
    });
    for (status, _, receipt) in receipts {
        assert_eq!((status, receipt.as_str()), (200, "receipt 1 for invoice 7"));
    }
    let payments: u64 = redis.connection().get("bank:payments").unwrap();
    assert_eq!(payments, 1);
}

#[test]
fn administrators_see_the_lock_of_a_payment_on_a_port_of_their_own() {
    let _watchdog = Watchdog::over_this_test();
    let redis = RedisServer::start();
    let service = Service::start(&redis, 3_000);
    let answer = |path: &str| agent().get(path).call().unwrap();
    assert_eq!(answer(&service.admin).status(), 200);
    assert_eq!(answer(&service.url).status(), 404, "the public port does not show the page");
    let foreign = agent().get(&service.admin).header("Host", "evil.example").call().unwrap();
    assert_eq!(foreign.status(), 421);
    let events = answer(&format!("{}/events", service.admin)).into_body().into_reader();
    thread::scope(|scope| {
        scope.spawn(|| service.pay(7));
        let mut told = BufReader::new(events).lines().map(Result::unwrap);
        let told = told.find(|line| line.contains("\"invoice:7\"")).expect("the page is told of the lock");
        assert!(told.contains("\"why\":\"payment\""), "{told}");
    });
}

/// Asks a service to stop during a payment, and says what its client was answered.
fn stopped_during_a_payment(bank_takes_ms: u32) -> Option<Answer> {
    let _watchdog = Watchdog::over_this_test();
    let redis = RedisServer::start();
    let locks = leasehold::blocking::connect(&redis.url()).unwrap();
    let mut service = Service::start(&redis, bank_takes_ms);
    let url = service.url.clone();
    let payment = thread::spawn(move || answer(agent().post(format!("{url}/invoices/7/payment")).send_empty()));
    wait_for("the payment to begin", || (!is_free(&locks, "invoice:7")).then_some(()));

    assert!(service.stopped().success());
    assert!(is_free(&locks, "invoice:7"), "a lease of 30 s was left behind");
    payment.join().unwrap()
}

#[test]
fn a_service_that_is_asked_to_stop_finishes_its_payments() {
    let (status, _, receipt) = stopped_during_a_payment(1_000).expect("an answer");
    assert_eq!((status, receipt.as_str()), (200, "receipt 1 for invoice 7"));
}

#[test]
fn a_service_that_is_asked_to_stop_gives_up_what_takes_too_long() {
    let answer = stopped_during_a_payment(3_600_000);
    assert!(answer.as_ref().is_none_or(|(status, ..)| *status == 503), "{answer:?}");
}
