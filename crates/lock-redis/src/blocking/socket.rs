//! One connection of a thread.

use std::sync::Arc;
use std::time::Duration;

use lock_core::Moment;
use lock_host::{Clock, HostClock};
use redis::{Connection, RedisError, RedisResult, Value};

use crate::classify::classify;
use crate::connect::{bound, connecting, plain};
use crate::failure::Failure;
use crate::replicas::Wait;
use crate::runs::{Request, Run};
use crate::server::greeting::{Met, again, greeting, meet};
use crate::server::server_info::ServerInfo;
use crate::span::Span;
use crate::target::Target;
use crate::wire::Call;

type Reply = RedisResult<Value>;
type Replies = Vec<Reply>;

/// A connection, and the present timeout of its socket: setting that costs two system calls.
pub(crate) struct Socket {
    connection: Connection,
    pub(crate) server_info: Arc<ServerInfo>,
    patience: Duration,
    /// Why its replies may not be in step with the requests any more.
    broken: Option<RedisError>,
    /// When it was used last.
    pub(crate) used_at: Moment,
}

/// Connects to a server and greets it.
pub(crate) fn connect(target: &Target, span: Span) -> Result<Socket, Failure> {
    target.confirm(span)?;
    let server = target.shown();
    if span.left().is_zero() {
        return Err(Failure::no_connection(&server, span.within));
    }
    let failed = |error| classify(connecting(&server, span.within), &error);
    let mut connection = plain(target.client.get_connection_info(), span).map_err(failed)?;
    let greeted = greeting(target.deployment).query(&mut connection).map_err(failed)?;
    let Met { server_info, preparation } = meet(target, greeted)?;
    if let Some(preparation) = preparation {
        bound(&connection, span.left()).map_err(failed)?;
        preparation.exec(&mut connection).map_err(failed)?;
    }
    let (server_info, patience) = (Arc::new(server_info), Duration::ZERO);
    Ok(Socket { connection, server_info, patience, broken: None, used_at: HostClock.now() })
}

impl Socket {
    /// Sends a command and waits for its answer until the time is over.
    pub(crate) fn ask(&mut self, call: &Call, span: Span) -> RedisResult<Value> {
        self.bound(span)?;
        call.ask(&mut self.connection)
    }

    /// Asks several things in one write, those of one verb for different locks as one command. Returns the replies in the
    /// order of the requests.
    ///
    /// Different threads wait for them at the same time, so they may take effect in any order.
    pub(crate) fn ask_all(&mut self, calls: Vec<Call>, span: Span) -> Vec<RedisResult<Value>> {
        let mut runs = Run::of(calls.into_iter().zip(0..).map(|(call, answer)| Request { call, answer }).collect());
        let commands = runs.iter_mut().map(|run| run.command().get_packed_command()).collect();
        let (replies, waited) = self.exchange(commands, Run::wait(&runs), span);
        let answers = runs.into_iter().zip(replies).flat_map(|(run, reply)| run.answers(reply, waited.as_ref()));
        let mut answers: Vec<(usize, _)> = answers.collect();
        answers.sort_by_key(|(place, _)| *place);
        answers.into_iter().map(|(_, answer)| answer?.extract_error()).collect()
    }

    /// Sends commands, and returns as many replies, and that to the wait for replicas if there is one. After an error of the
    /// connection there are no more of them: a late reply would be taken for the one to a later command.
    fn exchange(&mut self, mut commands: Vec<Vec<u8>>, wait: Option<Wait>, span: Span) -> (Replies, Option<Reply>) {
        commands.extend(wait.map(|wait| wait.command().get_packed_command()));
        if self.broken.is_none() {
            let sent = self.bound(span).and_then(|()| self.connection.send_packed_command(&commands.concat()));
            self.broken = sent.err();
        }
        let mut replies: Replies = commands.iter().map(|_| self.receive(span)).collect();
        let waited = wait.and_then(|_| replies.pop());
        (replies, waited)
    }

    fn receive(&mut self, span: Span) -> Reply {
        if let Some(error) = &self.broken {
            return Err(error.clone());
        }
        let reply = self.bound(span).and_then(|()| self.connection.recv_response());
        self.broken = reply.as_ref().err().cloned();
        reply
    }

    /// Whether the server is still there, with the history that the greeting found. Takes at most half of the time.
    pub(crate) fn is_still_good(&mut self, span: Span) -> bool {
        let answer = self.ask(&Call::plain(again()), span.at_most(span.left() / 2));
        answer.is_ok_and(|answer| self.server_info.is_still(answer))
    }

    /// Makes the socket give up when the time is over; otherwise it would wait forever. The present timeout is close
    /// enough if it differs by less than a tenth.
    fn bound(&mut self, span: Span) -> RedisResult<()> {
        let left = span.left();
        if self.patience.abs_diff(left) > left / 10 {
            bound(&self.connection, left)?;
            self.patience = left;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::{TcpListener, TcpStream};
    use std::thread;

    use redis::{Client, ProtocolVersion};

    use super::*;
    use crate::connect::speaking;
    use crate::script;

    /// Waits until so many commands with this word have come. `false` if the client has gone.
    fn hear(stream: &mut TcpStream, word: &str, count: usize) -> bool {
        let (mut heard, mut part) = (String::new(), [0; 4096]);
        while heard.matches(word).count() < count {
            match stream.read(&mut part).unwrap() {
                0 => return false,
                length => heard.push_str(&String::from_utf8_lossy(&part[..length])),
            }
        }
        true
    }

    /// A server that has forgotten its scripts, and stalls before the second answer.
    fn stalling(listener: &TcpListener) {
        let (mut stream, _) = listener.accept().unwrap();
        assert!(hear(&mut stream, "SETINFO", 2));
        stream.write_all(b"+OK\r\n+OK\r\n").unwrap();
        assert!(hear(&mut stream, "EVALSHA", 3));
        stream.write_all(b"-NOSCRIPT No matching script.\r\n").unwrap();
        if hear(&mut stream, "EVALSHA", 2) {
            // The late answers, and then those to what was asked meanwhile.
            stream.write_all(b"*2\r\n:1\r\n:2\r\n*2\r\n:3\r\n:4\r\n$4\r\nhash\r\n:5\r\n:6\r\n").unwrap();
        }
    }

    #[test]
    fn after_a_stall_no_request_gets_the_answer_to_another() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let client = Client::open(format!("redis://{}", listener.local_addr().unwrap())).unwrap();
        let server = thread::spawn(move || stalling(&listener));
        let connection = speaking(&client, ProtocolVersion::RESP2).unwrap().get_connection().unwrap();
        // The socket gives up a little before the time is over, and so leaves time to ask again.
        let (within, patience) = (Duration::from_millis(1000), Duration::from_millis(920));
        bound(&connection, patience).unwrap();
        let server_info = Arc::new(ServerInfo::UNKNOWN.clone());
        let mut socket = Socket { connection, server_info, patience, broken: None, used_at: HostClock.now() };
        let release = |lock| {
            let script = script::RELEASE.counting(script::Counting::Stored);
            Call::script(script, &["leasehold:counter", lock, "queue", "waiters"]).arg("owner")
        };
        let calls = ["a", "b", "a", "b", "a", "b"].map(release).into();
        let answers = socket.ask_all(calls, Span::from_now(within));
        assert!(answers.len() == 6 && answers.iter().all(Result::is_err), "{answers:?}");
        drop(socket);
        server.join().unwrap();
    }
}
