//! The worker as a process, with a real Redis.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::process::{Command, Stdio};

use test_support::RedisServer;
use test_support::bounds::{Watchdog, output_of};

/// What the worker has exported, span by span.
struct Spans(Vec<String>);

impl Spans {
    fn of_worker(url: &str) -> Self {
        let process = Command::new(env!("CARGO_BIN_EXE_opentelemetry-spans"))
            .env("LOCKS_URL", url)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let output = output_of(process, "the worker");
        assert!(output.status.success(), "{:?}", output.status);
        let text = String::from_utf8(output.stdout).unwrap();
        Self(text.split("Span #").skip(1).map(str::to_owned).collect())
    }

    fn named(&self, name: &str) -> Vec<&String> {
        let line = format!("\tName         : {name}\n");
        let found: Vec<_> = self.0.iter().filter(|span| span.contains(&line)).collect();
        assert_eq!(found.len(), 3, "spans with the name {name}: {:#?}", self.0);
        found
    }
}

fn field<'a>(span: &'a str, name: &str) -> &'a str {
    let line = span.lines().find_map(|line| line.trim().strip_prefix(name)).unwrap();
    line.trim_start_matches([' ', ':'])
}

#[test]
fn each_lock_is_a_span_of_the_work_that_needs_it() {
    let _watchdog = Watchdog::over_this_test();
    let server = RedisServer::start();
    let spans = Spans::of_worker(&server.url());
    let payments = spans.named("pay");
    for acquisition in spans.named("acquire") {
        let of_payment = |payment: &&&String| field(payment, "SpanId") == field(acquisition, "ParentSpanId");
        let payment = payments.iter().find(of_payment).unwrap();
        assert_eq!(field(payment, "TraceId"), field(acquisition, "TraceId"));
        let number = field(payment, "->  invoice: ").split('"').nth(1).unwrap();
        assert!(acquisition.contains(&format!("->  lock: String(Owned(\"invoice:{number}\"))")), "{acquisition}");
        assert!(acquisition.contains("->  outcome: String(Owned(\"acquired\"))"), "{acquisition}");
        assert!(acquisition.contains("Name      : acquired\n"), "its events are in the span: {acquisition}");
    }
}
