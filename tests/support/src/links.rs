//! The connections between servers that replicate each other.

use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, Shutdown, TcpListener, TcpStream};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use crate::must;

/// A request of SOCKS 5 to connect to an IPv4 address ...
const CONNECT: [u8; 4] = [5, 1, 0, 1];
/// ... and the answers: it may ask, and it is connected, or refused.
const MAY_ASK: [u8; 2] = [5, 0];
const CONNECTED: [u8; 10] = [5, 0, 0, 1, 0, 0, 0, 0, 0, 0];
const REFUSED: [u8; 10] = [5, 5, 0, 1, 0, 0, 0, 0, 0, 0];
/// How long a server may take to say where it connects to.
const ASKS_WITHIN: Duration = Duration::from_secs(10);

/// Proxies between servers: each server reaches the others through one of its own, because they tell each other their real ports.
/// Dropping this cuts everything.
#[derive(Debug)]
pub(crate) struct Links {
    /// The proxy of each server.
    pub(crate) ways: Vec<u16>,
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    /// Where each server listens for the others.
    ports: Vec<Vec<u16>>,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// The servers that are cut off.
    apart: Vec<usize>,
    open: Vec<Link>,
    is_over: bool,
}

/// A connection of one server to another.
#[derive(Debug)]
struct Link {
    ends: [usize; 2],
    streams: [TcpStream; 2],
}

impl Links {
    /// Starts a proxy for each server. These are the ports of the servers.
    pub(crate) fn start(ports: Vec<Vec<u16>>) -> Self {
        let count = ports.len();
        let shared = Arc::new(Shared { ports, state: Mutex::default() });
        let ways = (0..count).map(|server| listen(server, &shared)).collect();
        Self { ways, shared }
    }

    /// Cuts a server off from the others.
    pub(crate) fn cut(&self, server: usize) {
        let mut state = self.shared.lock();
        state.apart.push(server);
        state.open.retain(|link| {
            let stays = !link.ends.contains(&server);
            if !stays {
                link.end();
            }
            stays
        });
    }

    /// Lets it reach the others again.
    pub(crate) fn heal(&self, server: usize) {
        self.shared.lock().apart.retain(|apart| *apart != server);
    }

    /// Whether a server is cut off.
    pub(crate) fn is_cut(&self, server: usize) -> bool {
        self.shared.lock().apart.contains(&server)
    }
}

impl Drop for Links {
    fn drop(&mut self) {
        let mut state = self.shared.lock();
        state.is_over = true;
        state.open.drain(..).for_each(|link| link.end());
        drop(state);
        // Wakes the accepting threads, so that they see that it is over.
        for way in &self.ways {
            TcpStream::connect((Ipv4Addr::LOCALHOST, *way)).ok();
        }
    }
}

impl Link {
    fn end(&self) {
        for stream in &self.streams {
            stream.shutdown(Shutdown::Both).ok();
        }
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Connects a server to where it wants, unless one of both is cut off.
    fn connect(&self, from: usize, stream: &TcpStream, port: u16) -> io::Result<TcpStream> {
        let found = self.ports.iter().position(|ports| ports.contains(&port));
        let ends = [from, found.ok_or_else(|| io::Error::other("no server has this port"))?];
        let target = TcpStream::connect((Ipv4Addr::LOCALHOST, port))?;
        let streams = [stream.try_clone()?, target.try_clone()?];
        let mut state = self.lock();
        if state.is_over || ends.iter().any(|end| state.apart.contains(end)) {
            return Err(io::Error::other("it is cut off"));
        }
        state.open.retain(|link| link.streams[0].peer_addr().is_ok());
        state.open.push(Link { ends, streams });
        Ok(target)
    }
}

/// Starts the proxy of a server, and returns its port.
fn listen(server: usize, shared: &Arc<Shared>) -> u16 {
    let listener = must("bind the proxy", TcpListener::bind((Ipv4Addr::LOCALHOST, 0)));
    let port = must("look at the proxy's address", listener.local_addr()).port();
    let shared = Arc::clone(shared);
    thread::spawn(move || {
        for stream in listener.incoming() {
            if shared.lock().is_over {
                return;
            }
            let (Ok(stream), shared) = (stream, Arc::clone(&shared)) else { continue };
            thread::spawn(move || serve(&shared, server, stream));
        }
    });
    port
}

fn serve(shared: &Shared, server: usize, mut stream: TcpStream) -> io::Result<()> {
    let port = wanted(&mut stream)?;
    let Ok(target) = shared.connect(server, &stream, port) else { return stream.write_all(&REFUSED) };
    stream.write_all(&CONNECTED)?;
    let (from_target, to_stream) = (target.try_clone()?, stream.try_clone()?);
    thread::spawn(move || pump(from_target, to_stream));
    pump(stream, target);
    Ok(())
}

/// Reads where a server wants to connect to.
fn wanted(stream: &mut TcpStream) -> io::Result<u16> {
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(ASKS_WITHIN))?;
    let [_version, count] = read(stream)?;
    io::copy(&mut stream.take(count.into()), &mut io::sink())?;
    stream.write_all(&MAY_ASK)?;
    let [a, b, c, d, _, _, _, _, port @ ..] = read::<10>(stream)?;
    stream.set_read_timeout(None)?;
    if [a, b, c, d] == CONNECT { Ok(u16::from_be_bytes(port)) } else { Err(io::Error::other("another request")) }
}

fn read<const LENGTH: usize>(stream: &mut TcpStream) -> io::Result<[u8; LENGTH]> {
    let mut bytes = [0; LENGTH];
    stream.read_exact(&mut bytes)?;
    Ok(bytes)
}

fn pump(mut from: TcpStream, mut to: TcpStream) {
    to.set_nodelay(true).ok();
    io::copy(&mut from, &mut to).ok();
    to.shutdown(Shutdown::Both).ok();
    from.shutdown(Shutdown::Both).ok();
}
