//! One connection of a thread.

use std::sync::Arc;
use std::time::Duration;

use lock_core::Moment;
use lock_host::{Clock, HostClock};
use redis::{Cmd, Connection, ConnectionLike, ProtocolVersion, RedisError, RedisResult, Value};

use crate::classify::classify;
use crate::connect::{bound, connecting, speaking, tuned};
use crate::failure::Failure;
use crate::replicas::Wait;
use crate::runs::{NOT_RUN, apart, grouped, many, together};
use crate::script::Many;
use crate::server::greeting::{Met, again, greeting, meet};
use crate::server::server_info::ServerInfo;
use crate::span::Span;
use crate::target::Target;
use crate::wire::{Call, load};

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
    let (server, left) = (target.shown(), span.left());
    if left.is_zero() {
        return Err(Failure::no_connection(&server, span.within));
    }
    let failed = |error| classify(connecting(&server, span.within), &error);
    // These connections carry no notifications.
    let client = tuned(&target.client).and_then(|client| speaking(&client, ProtocolVersion::RESP2)).map_err(failed)?;
    // Connecting waits twice for a server that hangs: for the answers to the two commands in which the library
    // describes itself.
    let mut connection = client.get_connection_with_timeout(left / 2).map_err(failed)?;
    bound(&connection, span.left()).map_err(failed)?;
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
    pub(crate) fn ask(&mut self, command: &Cmd, span: Span) -> RedisResult<Value> {
        self.bound(span)?;
        command.query(&mut self.connection)
    }

    /// Asks a server that does not own the keys yet.
    pub(crate) fn ask_moving(&mut self, call: &Call, span: Span) -> RedisResult<Value> {
        self.bound(span)?;
        let all = call.pipeline();
        let replies = self.connection.req_packed_commands(&all.get_packed_pipeline(), 0, all.len())?;
        call.reply_of(replies)
    }

    /// Asks several things in one write, those of one verb for different locks as one command. Returns the replies in the
    /// order of the requests.
    ///
    /// Different threads wait for them at the same time, so they may take effect in any order.
    pub(crate) fn ask_all(&mut self, calls: Vec<Call>, span: Span) -> Vec<RedisResult<Value>> {
        let runs = grouped(calls.into_iter().enumerate().collect(), |(_, call)| call);
        let (places, runs): (Vec<Vec<usize>>, Vec<Vec<Call>>) =
            runs.into_iter().map(|run| run.into_iter().unzip()).unzip();
        let commands = runs.iter().map(|run| packed(run)).collect();
        let (replies, waited) = self.exchange(commands, wait_of(runs.iter().flatten()), span);
        let answers = runs.iter().zip(replies).flat_map(|(run, reply)| match (many(run.iter()), reply) {
            (None, reply) => joined(run, vec![reply], waited.as_ref()),
            (Some(many), Ok(Value::ServerError(error))) if NOT_RUN.contains(&error.code()) => {
                self.ask_one_by_one(many, run, span)
            }
            (Some(many), Ok(reply)) => {
                joined(run, apart(many, reply, run.len()).into_iter().map(Ok).collect(), waited.as_ref())
            }
            (Some(_), Err(error)) => vec![Err(error); run.len()],
        });
        let mut answers: Vec<_> = places.into_iter().flatten().zip(answers).collect();
        answers.sort_by_key(|(place, _)| *place);
        answers.into_iter().map(|(_, answer)| answer?.extract_error()).collect()
    }

    /// Loads the script for many, in case the server has forgotten it, but does without it this time.
    fn ask_one_by_one(&mut self, many: &Many, calls: &[Call], span: Span) -> Vec<RedisResult<Value>> {
        let alone = calls.iter().map(|call| call.command.get_packed_command());
        let commands = [load(&many.script).get_packed_command()].into_iter().chain(alone).collect();
        let (mut replies, waited) = self.exchange(commands, wait_of(calls.iter()), span);
        joined(calls, replies.split_off(1), waited.as_ref())
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
        let answer = self.ask(&again(), span.at_most(span.left() / 2));
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

/// One wait for replicas for all of these requests, if any of them has to wait.
fn wait_of<'a>(calls: impl Iterator<Item = &'a Call>) -> Option<Wait> {
    Wait::for_all(calls.filter_map(|call| call.wait))
}

/// The replies to these requests, each with that to the wait for replicas if it had to wait.
fn joined(calls: &[Call], replies: Replies, waited: Option<&Reply>) -> Replies {
    calls.iter().zip(replies).map(|(call, reply)| call.reply(reply, waited)).collect()
}

fn packed(run: &[Call]) -> Vec<u8> {
    match many(run.iter()) {
        Some(many) => together(many, run.iter()).get_packed_command(),
        None => run.iter().flat_map(|call| call.command.get_packed_command()).collect(),
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::{TcpListener, TcpStream};
    use std::thread;

    use redis::Client;

    use super::*;
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
