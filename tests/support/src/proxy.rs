//! A TCP proxy on loopback that breaks connections on command.

use std::borrow::Cow;
use std::io::{ErrorKind, Read, Write};
use std::net::{IpAddr, Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicU16, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use crate::must;

/// How often an idle pump checks whether it should stop.
const LOOK_EVERY: Duration = Duration::from_millis(200);

/// The address at which servers listen and name each other.
const OF_SERVERS: &[u8] = b"127.0.0.1";

/// What happens to a connection whose replies were dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AfterDrop {
    /// It stays open, and later replies are dropped too.
    Keep,
    /// It is cut at the first reply.
    Cut,
}

/// What the proxy does to bytes and connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// Nothing: all bytes pass.
    None,
    /// Bytes in both directions are held back until the fault ends, and then delivered.
    Hold,
    /// Bytes from the server are dropped.
    DropReplies(AfterDrop),
    /// The next bytes from the server are dropped and their connection is cut; then the fault ends.
    CutOneReply,
    /// New connections are accepted and closed at once; existing ones continue.
    Refuse,
    /// The same for new connections from this address only.
    RefuseFrom(Ipv4Addr),
    /// All bytes arrive this much later.
    Delay(Duration),
}

/// A proxy in front of a server on 127.0.0.1. Dropping it cuts everything.
#[derive(Debug)]
pub struct Proxy {
    address: SocketAddr,
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
    fired: AtomicU64,
    host: Ipv4Addr,
    server: AtomicU16,
}

#[derive(Debug)]
struct State {
    fault: Fault,
    connections: Vec<[TcpStream; 2]>,
    closing: Closing,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Closing {
    No,
    Yes,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Direction {
    ToServer,
    ToClient,
}

/// Whether a pump continues.
enum Pumped {
    On,
    End,
}

impl Proxy {
    /// Starts a proxy in front of a server's port.
    pub fn start(server: u16) -> Self {
        Self::bind(Ipv4Addr::LOCALHOST, 0, server)
    }

    /// Starts a proxy with the port of its server, on this address of the loopback network. Where the server says 127.0.0.1, the proxy says
    /// this address, so that clients of sentinels go through proxies as well. The address has to be as long.
    pub fn with_port_of(server: u16, host: Ipv4Addr) -> Self {
        assert_eq!(host.to_string().len(), OF_SERVERS.len(), "the address of a proxy");
        Self::bind(host, server, server)
    }

    fn bind(host: Ipv4Addr, port: u16, server: u16) -> Self {
        let listener = must("bind the proxy", TcpListener::bind((host, port)));
        let address = must("look at the proxy's address", listener.local_addr());
        let state = Mutex::new(State { fault: Fault::None, connections: Vec::new(), closing: Closing::No });
        let shared =
            Arc::new(Shared { state, changed: Condvar::new(), fired: AtomicU64::new(0), host, server: server.into() });
        let accepting = Arc::clone(&shared);
        thread::spawn(move || accept(&listener, &accepting));
        Self { address, shared }
    }

    /// The port for clients.
    pub fn port(&self) -> u16 {
        self.address.port()
    }

    /// Routes new connections to another server's port; existing ones stay.
    pub fn lead_to(&self, server: u16) {
        self.shared.server.store(server, Ordering::SeqCst);
    }

    /// Starts a fault, replacing the previous one, and counts how often it fires from now on.
    pub fn set(&self, fault: Fault) {
        self.shared.lock().fault = fault;
        self.shared.fired.store(0, Ordering::SeqCst);
        self.shared.changed.notify_all();
    }

    /// Ends the fault: bytes that were held back are delivered. The count stays.
    pub fn heal(&self) {
        self.shared.lock().fault = Fault::None;
        self.shared.changed.notify_all();
    }

    /// Cuts every open connection and returns how many there were.
    pub fn cut(&self) -> usize {
        let connections = std::mem::take(&mut self.shared.lock().connections);
        let open = connections.iter().filter(|[client, _]| client.peer_addr().is_ok()).count();
        for stream in connections.iter().flatten() {
            stream.shutdown(Shutdown::Both).ok();
        }
        open
    }

    /// How often the current or last fault fired: chunks held, dropped or delayed, connections refused.
    pub fn fired(&self) -> u64 {
        self.shared.fired.load(Ordering::SeqCst)
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.shared.lock().closing = Closing::Yes;
        self.shared.changed.notify_all();
        self.cut();
        // Wakes the accepting thread, so that it sees that it is over.
        TcpStream::connect(self.address).ok();
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn count(&self) {
        self.fired.fetch_add(1, Ordering::SeqCst);
    }

    /// Whether this is the one reply that is dropped.
    fn takes_the_one_reply(&self) -> bool {
        let mut state = self.lock();
        let takes = state.fault == Fault::CutOneReply;
        if takes {
            state.fault = Fault::None;
        }
        takes
    }

    /// A reply as the client gets it: with the proxy's address in place of 127.0.0.1.
    fn told<'a>(&self, piece: &'a [u8]) -> Cow<'a, [u8]> {
        let mut told = Cow::Borrowed(piece);
        if self.host != Ipv4Addr::LOCALHOST {
            let host = self.host.to_string();
            for at in (0..piece.len()).filter(|at| piece[*at..].starts_with(OF_SERVERS)) {
                told.to_mut()[at..at + OF_SERVERS.len()].copy_from_slice(host.as_bytes());
            }
        }
        told
    }

    /// Waits while bytes are held back, and returns the fault that then applies.
    fn wait_while_held(&self) -> Fault {
        let mut state = self.lock();
        if state.fault == Fault::Hold {
            self.count();
        }
        while state.fault == Fault::Hold && state.closing == Closing::No {
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        state.fault
    }
}

fn accept(listener: &TcpListener, shared: &Arc<Shared>) {
    for client in listener.incoming() {
        let Ok(client) = client else { continue };
        let state = shared.lock();
        if state.closing == Closing::Yes {
            return;
        }
        let fault = state.fault;
        drop(state);
        if refuses(fault, &client) {
            shared.count();
        } else if let Ok(server) = TcpStream::connect((Ipv4Addr::LOCALHOST, shared.server.load(Ordering::SeqCst))) {
            join(shared, client, server);
        }
    }
}

fn refuses(fault: Fault, client: &TcpStream) -> bool {
    match fault {
        Fault::Refuse => true,
        Fault::RefuseFrom(host) => client.peer_addr().is_ok_and(|peer| peer.ip() == IpAddr::V4(host)),
        Fault::None | Fault::Hold | Fault::DropReplies(_) | Fault::CutOneReply | Fault::Delay(_) => false,
    }
}

fn join(shared: &Arc<Shared>, client: TcpStream, server: TcpStream) {
    let (Ok(client_end), Ok(server_end)) = (client.try_clone(), server.try_clone()) else { return };
    let (Ok(client_out), Ok(server_out)) = (client.try_clone(), server.try_clone()) else { return };
    client.set_nodelay(true).ok();
    server.set_nodelay(true).ok();
    let connections = &mut shared.lock().connections;
    connections.retain(|[client, _]| client.peer_addr().is_ok());
    connections.push([client_end, server_end]);
    let (to_server, to_client) = (Arc::clone(shared), Arc::clone(shared));
    thread::spawn(move || pump(&to_server, client, server_out, Direction::ToServer));
    thread::spawn(move || pump(&to_client, server, client_out, Direction::ToClient));
}

fn pump(shared: &Shared, mut from: TcpStream, mut to: TcpStream, direction: Direction) {
    from.set_read_timeout(Some(LOOK_EVERY)).ok();
    let mut piece = [0; 16 * 1024];
    loop {
        match from.read(&mut piece) {
            Ok(0) => break,
            Ok(length) => match pass(shared, &piece[..length], &mut to, direction) {
                Pumped::On => {}
                Pumped::End => break,
            },
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
                if shared.lock().closing == Closing::Yes {
                    break;
                }
            }
            Err(_) => break,
        }
    }
    // Only what this pump wrote to is ended: held bytes still arrive after their sender has gone.
    to.shutdown(Shutdown::Write).ok();
    from.shutdown(Shutdown::Read).ok();
}

fn pass(shared: &Shared, piece: &[u8], to: &mut TcpStream, direction: Direction) -> Pumped {
    match (shared.wait_while_held(), direction) {
        (Fault::DropReplies(after), Direction::ToClient) => {
            shared.count();
            return if after == AfterDrop::Cut { Pumped::End } else { Pumped::On };
        }
        (Fault::Delay(by), _) => {
            shared.count();
            thread::sleep(by);
        }
        (Fault::CutOneReply, Direction::ToClient) if shared.takes_the_one_reply() => {
            shared.count();
            return Pumped::End;
        }
        (
            Fault::None
            | Fault::Hold
            | Fault::Refuse
            | Fault::RefuseFrom(_)
            | Fault::DropReplies(_)
            | Fault::CutOneReply,
            _,
        ) => {}
    }
    let piece = if direction == Direction::ToClient { shared.told(piece) } else { piece.into() };
    if to.write_all(&piece).is_ok() { Pumped::On } else { Pumped::End }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::RedisServer;

    fn ping(proxy: &Proxy) -> redis::RedisResult<String> {
        let client = redis::Client::open(("127.0.0.1", proxy.port())).unwrap();
        let mut connection = client.get_connection_with_timeout(Duration::from_secs(2))?;
        connection.set_read_timeout(Some(Duration::from_millis(300)))?;
        redis::cmd("PING").query(&mut connection)
    }

    #[test]
    fn faults_fire_and_heal() {
        let server = RedisServer::start();
        let proxy = Proxy::start(server.port());
        assert_eq!(ping(&proxy).unwrap(), "PONG");
        for fault in [Fault::Hold, Fault::DropReplies(AfterDrop::Cut), Fault::CutOneReply, Fault::Refuse] {
            proxy.set(fault);
            assert!(ping(&proxy).is_err(), "{fault:?}");
            assert!(proxy.fired() > 0, "{fault:?}");
            proxy.heal();
            assert_eq!(ping(&proxy).unwrap(), "PONG");
        }
        proxy.set(Fault::Delay(Duration::from_millis(20)));
        assert_eq!(ping(&proxy).unwrap(), "PONG");
        assert!(proxy.fired() > 0);
    }

    #[test]
    fn held_bytes_arrive_later_even_if_the_sender_has_gone() {
        let server = RedisServer::start();
        let proxy = Proxy::start(server.port());
        let client = redis::Client::open(("127.0.0.1", proxy.port())).unwrap();
        let mut connection = client.get_connection().unwrap();
        proxy.set(Fault::Hold);
        connection.send_packed_command(&redis::cmd("SET").arg("late").arg(1).get_packed_command()).unwrap();
        drop(connection);
        thread::sleep(Duration::from_millis(100));
        assert_eq!(server.command::<Option<u8>>(&["GET", "late"]), None);
        proxy.heal();
        for _ in 0..500 {
            if server.command::<Option<u8>>(&["GET", "late"]) == Some(1) {
                return;
            }
            thread::sleep(Duration::from_millis(10));
        }
        panic!("the held bytes never arrived");
    }
}
