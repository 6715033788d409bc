//! What all our connections have in common.

use std::io::{self, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::time::Duration;

use redis::io::tcp::{TcpSettings, socket2::TcpKeepalive};
use redis::{
    Client, Connection, ConnectionAddr, ConnectionInfo, ErrorKind, ProtocolVersion, RedisError, RedisResult,
    ServerErrorKind,
};

use crate::address::Address;
use crate::failure::{Failure, Scene, Stage};
use crate::span::Span;

/// How long a new connection may take, including the greeting.
///
/// # Source
/// The default of redis-rs for asynchronous connections; a server that is further away is of no use for locks.
pub(crate) const CONNECT_WITHIN: Duration = Duration::from_secs(1);

/// How soon an idle connection checks that its peer still exists, and how often before it is given up.
const KEEPALIVE: (Duration, Duration, u32) = (Duration::from_secs(10), Duration::from_secs(5), 3);

/// The shortest timeout of a socket: without one it would wait forever.
pub(crate) const SOCKET_TIMEOUT_MIN: Duration = Duration::from_millis(1);

/// How long each step of finding out what a server speaks may take.
const PROBE_WITHIN: Duration = Duration::from_millis(200);
/// A TLS record that no TLS server accepts; each says so with an alert, whose first byte is 0x15.
const BAD_HANDSHAKE: &[u8] = &[0x16, 3, 1, 0, 4, 1, 0, 0, 0];
const ALERT: u8 = 0x15;

/// A server as it is shown to users: without user, password and database.
pub(crate) fn shown(server: &ConnectionInfo) -> String {
    match (server.addr(), Address::of(server.addr())) {
        (ConnectionAddr::TcpTls { .. }, Some(address)) => format!("rediss://{address}"),
        (_, Some(address)) => format!("redis://{address}"),
        (ConnectionAddr::Unix(path), None) => format!("unix://{}", path.display()),
        (other, None) => other.to_string(),
    }
}

/// How a server is reached that is reached like this one, but elsewhere.
pub(crate) fn at(server: &ConnectionInfo, address: &Address) -> ConnectionInfo {
    let Address { host, port } = address.clone();
    server.clone().set_addr(match server.addr() {
        ConnectionAddr::TcpTls { insecure, tls_params, .. } => {
            ConnectionAddr::TcpTls { host, port, insecure: *insecure, tls_params: tls_params.clone() }
        }
        ConnectionAddr::Tcp(..) | ConnectionAddr::Unix(_) | _ => ConnectionAddr::Tcp(host, port),
    })
}

/// Why nobody named a server: the answer of one of the sentinels, or that none answered.
pub(crate) fn nobody_answered(who: &str, remedy: &'static str, failures: &[Failure], span: Span) -> Failure {
    if let Some(answered) = failures.iter().find(|failure| failure.is_an_answer()) {
        return answered.clone();
    }
    let told: Vec<_> = failures.iter().map(Failure::message).collect();
    if told.is_empty() {
        return Failure::no_connection(who, span.within);
    }
    let message = format!("no {who} answered: {}", told.join(", "));
    Failure::new(lock_core::ErrorKind::Unreachable, lock_core::Effect::None, message).remedy(remedy)
}

/// The context of errors while a connection is made.
pub(crate) fn connecting(server: &str, within: Duration) -> Scene<'_> {
    Scene { stage: Stage::Connecting, server, within }
}

/// The same client with the socket options that locks want: small requests leave at once, dead peers are noticed.
pub(crate) fn tuned(client: &Client) -> RedisResult<Client> {
    #[cfg(feature = "tls")]
    lock_host::tls::choose_provider();
    let info = client.get_connection_info().clone();
    let keepalive = info.tcp_settings().keepalive().cloned().unwrap_or_else(|| {
        TcpKeepalive::new().with_time(KEEPALIVE.0).with_interval(KEEPALIVE.1).with_retries(KEEPALIVE.2)
    });
    let tcp: TcpSettings = info.tcp_settings().clone().set_nodelay(true).set_keepalive(keepalive);
    let redis = info.redis_settings().clone().set_lib_name("leasehold", env!("CARGO_PKG_VERSION"));
    Client::open(info.set_tcp_settings(tcp).set_redis_settings(redis))
}

/// Whether a connection of this client can receive pushed messages.
#[cfg(feature = "async")]
pub(crate) fn tells(client: &Client) -> bool {
    client.get_connection_info().redis_settings().protocol() == ProtocolVersion::RESP3
}

/// Whether a server refused the newer version of the protocol: it may lack it, or the command that selects it.
#[cfg(feature = "async")]
pub(crate) fn knows_no_resp3(error: &RedisError) -> bool {
    let told = error.to_string();
    error.kind() == ErrorKind::RESP3NotSupported
        || told.contains("NOPROTO")
        || (told.contains("unknown command") && told.contains("HELLO"))
}

/// The same client with this version of the protocol.
pub(crate) fn speaking(client: &Client, protocol: ProtocolVersion) -> RedisResult<Client> {
    let info = client.get_connection_info().clone();
    let redis = info.redis_settings().clone().set_protocol(protocol);
    Client::open(info.set_redis_settings(redis))
}

/// Whether the server has forgotten the script, so that nothing was run.
pub(crate) fn has_forgotten_the_script(error: &RedisError) -> bool {
    error.kind() == ErrorKind::Server(ServerErrorKind::NoScript)
}

/// Makes a connection give up after this time.
pub(crate) fn bound(connection: &Connection, patience: Duration) -> RedisResult<()> {
    let patience = patience.max(SOCKET_TIMEOUT_MIN);
    connection.set_read_timeout(Some(patience))?;
    connection.set_write_timeout(Some(patience))
}

/// Opens a connection for a question or a subscription, and bounds its waits.
pub(crate) fn for_one_question(server: &ConnectionInfo, span: Span) -> RedisResult<Connection> {
    let client = speaking(&tuned(&Client::open(server.clone())?)?, ProtocolVersion::RESP2)?;
    // Connecting may wait twice: for the answers to the two commands in which the library describes itself.
    let connection = client.get_connection_with_timeout(span.left() / 2)?;
    bound(&connection, span.left())?;
    Ok(connection)
}

/// Distinguishes TLS where plain was expected, and the reverse, from a server that is not there: a plain Redis waits
/// silently for the rest of a TLS greeting, and a TLS port only closes a plain connection.
pub(crate) fn explain(server: &ConnectionInfo, failure: Failure) -> Failure {
    if failure.is_an_answer() {
        return failure;
    }
    let addr = server.addr();
    if let ConnectionAddr::Tcp(host, port) = addr
        && matches!(first_byte(host, *port, BAD_HANDSHAKE), Ok(ALERT))
    {
        return Failure::speaks_tls(&shown(server));
    }
    if let ConnectionAddr::TcpTls { host, port, .. } = addr
        && matches!(first_byte(host, *port, b"PING\r\n"), Ok(b'+' | b'-'))
    {
        return Failure::speaks_no_tls(&shown(server));
    }
    failure
}

fn first_byte(host: &str, port: u16, said: &[u8]) -> io::Result<u8> {
    let address = (host, port).to_socket_addrs()?.next().ok_or(io::ErrorKind::NotFound)?;
    let mut stream = TcpStream::connect_timeout(&address, PROBE_WITHIN)?;
    stream.set_read_timeout(Some(PROBE_WITHIN))?;
    stream.set_write_timeout(Some(PROBE_WITHIN))?;
    stream.write_all(said)?;
    let mut heard = [0];
    stream.read_exact(&mut heard)?;
    Ok(heard[0])
}
