//! Locks by hand: plain requests to Redis, and nothing else.

use std::thread;
use std::time::Duration;

use leasehold::clock::{Clock, HostClock};
use redis::{Cmd, Connection, ConnectionLike, RedisError, Value};

use super::history::{Lane, Tone};
use super::recorder::Recorder;
use crate::shared::failure::{Exit, Failure};

/// How long a request may take, and how long an event that must happen. Only a fault of the system takes as long.
const PATIENCE: Duration = Duration::from_secs(30);
const POLL: Duration = Duration::from_millis(2);

/// A client that sends plain requests.
pub(crate) struct ByHand {
    lane: Lane,
    connection: Connection,
}

impl ByHand {
    /// Connects to the server at this URL.
    pub(crate) fn connect(lane: Lane, url: &str) -> Result<Self, Failure> {
        Ok(Self { lane, connection: connect(url)? })
    }

    /// Sends the words to the server of this lane, records both, and returns the reply.
    pub(crate) fn send(&mut self, story: &mut Recorder, to: Lane, words: &str) -> Result<String, Failure> {
        let reply = ask(&mut self.connection, words)?;
        let text = format!("{words} → {reply}");
        if words.starts_with("SET") && ["nil", "0"].contains(&reply.as_str()) {
            story.refused(self.lane, to, text, Tone::Plain);
        } else {
            story.message(self.lane, to, text, Tone::Plain);
        }
        Ok(reply)
    }

    /// Sends the words to the server of this lane, records them, and loses the connection.
    pub(crate) fn send_unanswered(&mut self, story: &mut Recorder, to: Lane, words: &str) -> Result<(), Failure> {
        story.message(self.lane, to, words, Tone::Plain);
        fails(&mut self.connection, words, RedisError::is_connection_dropped)
    }

    /// The same, where only one reply is possible if the scene goes as planned.
    pub(crate) fn expect(
        &mut self,
        story: &mut Recorder,
        to: Lane,
        words: &str,
        expected: &str,
    ) -> Result<(), Failure> {
        let reply = self.send(story, to, words)?;
        if reply == expected { Ok(()) } else { Err(unplanned(words, &reply)) }
    }
}

/// A connection without a record of its requests.
pub(crate) fn connect(url: &str) -> Result<Connection, Failure> {
    let connection = redis::Client::open(url).and_then(|client| client.get_connection_with_timeout(PATIENCE));
    let connection = connection.map_err(|error| unanswered(&error))?;
    connection.set_read_timeout(Some(PATIENCE)).map_err(|error| unanswered(&error))?;
    Ok(connection)
}

/// Sends words that are separated by spaces, and returns the reply as text.
pub(crate) fn ask(connection: &mut Connection, words: &str) -> Result<String, Failure> {
    Ok(text(&connection.req_command(&request(words)).map_err(|error| unanswered(&error))?))
}

/// The same, where the server may refuse: then the reply is its error.
pub(crate) fn ask_or_refusal(connection: &mut Connection, words: &str) -> Result<String, Failure> {
    match connection.req_command(&request(words)) {
        Ok(reply) => Ok(text(&reply)),
        Err(error) if error.code().is_some() => Ok(error.to_string()),
        Err(error) => Err(unanswered(&error)),
    }
}

/// The same, where no reply may come, and the error has to be of this kind.
pub(crate) fn fails(connection: &mut Connection, words: &str, is: fn(&RedisError) -> bool) -> Result<(), Failure> {
    match connection.req_command(&request(words)) {
        Err(error) if is(&error) => Ok(()),
        other => Err(unplanned(words, &format!("{other:?}"))),
    }
}

fn request(words: &str) -> Cmd {
    let mut request = Cmd::new();
    for word in words.split(' ') {
        request.arg(word);
    }
    request
}

/// Waits until something has happened.
pub(crate) fn until(what: &str, mut has: impl FnMut() -> Result<bool, Failure>) -> Result<(), Failure> {
    let deadline = HostClock.now() + PATIENCE;
    while HostClock.now() < deadline {
        if has()? {
            return Ok(());
        }
        thread::sleep(POLL);
    }
    Err(Failure::system("the scene waited too long", what))
}

/// The scene took another course than planned.
pub(crate) fn unplanned(what: &str, reply: &str) -> Failure {
    Failure::system("the scene took another course", format!("{what}: {reply}"))
}

fn unanswered(error: &RedisError) -> Failure {
    Failure::new(Exit::Unavailable, format!("a server of the scene does not answer: {error}; play the scene again"))
}

#[expect(clippy::wildcard_enum_match_arm, reason = "other replies are only searched for a word")]
fn text(reply: &Value) -> String {
    match reply {
        Value::Nil => "nil".to_owned(),
        Value::Int(number) => number.to_string(),
        Value::BulkString(bytes) => String::from_utf8_lossy(bytes).into_owned(),
        Value::SimpleString(text) => text.clone(),
        Value::Okay => "OK".to_owned(),
        Value::Array(values) => values.iter().map(text).collect::<Vec<_>>().join(" "),
        other => format!("{other:?}"),
    }
}
