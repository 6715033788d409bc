//! A running `leasehold dashboard`, and requests to it as bytes.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, ExitStatus, Stdio};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use test_support::bounds::{PATIENCE, status_of, within};

use super::leasehold::Leasehold;
use super::wait_for;

/// It serves on a port of its own until the test ends.
pub(crate) struct Dashboard {
    child: Child,
    /// Address and port.
    pub(crate) address: String,
}

impl Dashboard {
    pub(crate) fn start(leasehold: &Leasehold, options: &str) -> Self {
        let mut command = leasehold.command(&format!("dashboard --json --every 100ms --listen 127.0.0.1:0 {options}"));
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let line = first_line(&mut BufReader::new(child.stdout.take().unwrap()));
        let told: Value = serde_json::from_str(&line).unwrap_or_else(|_| panic!("the dashboard said {line:?}"));
        let address = told["url"].as_str().unwrap().trim_start_matches("http://").trim_end_matches('/').to_owned();
        Self { child, address }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}/", self.address)
    }

    /// Sends this, and returns the whole answer.
    pub(crate) fn answer(&self, request: &str) -> String {
        let mut stream = self.send(request);
        let mut answer = String::new();
        within("the whole answer", || stream.read_to_string(&mut answer)).unwrap();
        answer
    }

    /// Sends this, and returns the first line of the answer.
    pub(crate) fn status(&self, request: &str) -> String {
        first_line(&mut BufReader::new(self.send(request)))
    }

    /// The answer to a request for this path with these further lines in its head.
    pub(crate) fn get(&self, path: &str, head: &str) -> String {
        self.answer(&format!("GET {path} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n{head}\r\n", self.address))
    }

    /// The texts of a page, as they arrive.
    pub(crate) fn events(&self) -> Events {
        let request = format!("GET /events HTTP/1.1\r\nHost: {}\r\n\r\n", self.address);
        let mut lines = BufReader::new(self.send(&request));
        Events { status: first_line(&mut lines), lines }
    }

    pub(crate) fn interrupt(mut self) -> ExitStatus {
        kill_process(Pid::from_child(&self.child), Signal::INT).unwrap();
        status_of(&mut self.child, "the dashboard")
    }

    /// Sends this. What is read from it must arrive in time.
    pub(crate) fn send(&self, request: &str) -> TcpStream {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream.write_all(request.as_bytes()).unwrap();
        stream
    }
}

fn first_line(lines: &mut impl BufRead) -> String {
    let mut line = String::new();
    lines.read_line(&mut line).unwrap();
    line.trim().to_owned()
}

impl Drop for Dashboard {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The stream of one page.
pub(crate) struct Events {
    pub(crate) status: String,
    lines: BufReader<TcpStream>,
}

impl Events {
    /// The next text of the page.
    pub(crate) fn next(&mut self) -> Value {
        let mut line = String::new();
        loop {
            line.clear();
            assert!(self.lines.read_line(&mut line).unwrap() > 0, "the stream has ended");
            if let Some(data) = line.strip_prefix("data: ") {
                return serde_json::from_str(data).unwrap();
            }
        }
    }

    /// Waits until the page has what is looked for.
    pub(crate) fn until<T>(&mut self, what: &str, find: impl Fn(&Value) -> Option<T>) -> T {
        wait_for(what, || find(&self.next()))
    }

    /// Waits until a lock is shown.
    pub(crate) fn lock(&mut self, name: &str) -> Value {
        self.until(name, |told| lock(told, name).cloned())
    }
}

/// A lock on the page.
pub(crate) fn lock<'a>(told: &'a Value, name: &str) -> Option<&'a Value> {
    told["locks"].as_array().unwrap().iter().find(|lock| lock["name"] == name)
}
