//! The arguments of `leasehold dashboard`.

use std::net::{Ipv4Addr, SocketAddr};

use clap::Args;
use leasehold::Invalid;

use super::every::EveryArgs;
use super::store::StoreArgs;

/// `leasehold dashboard`.
#[derive(Debug, Args)]
pub(crate) struct DashboardArgs {
    #[command(flatten)]
    pub(crate) store: StoreArgs,
    /// The loopback address and the port of the page. Port 0 is any free port.
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:7373", value_parser = address)]
    pub(crate) listen: SocketAddr,
    /// Print the URL of the page as one JSON object.
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) every: EveryArgs,
    /// Names to show: `*` matches any text, `?` matches one character.
    #[arg(value_name = "PATTERN", default_value = "*")]
    pub(crate) pattern: String,
}

fn address(text: &str) -> Result<SocketAddr, Invalid> {
    let local = |port: &str| Some(SocketAddr::from((Ipv4Addr::LOCALHOST, port.parse().ok()?)));
    let named = text.strip_prefix("localhost:").and_then(local);
    named.or_else(|| text.parse().ok()).ok_or_else(|| {
        Invalid::new(
            "listen",
            text,
            "it is not an address with a port",
            "give one, such as 127.0.0.1:7373 or [::1]:7373",
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_has_a_port() {
        for good in ["127.0.0.1:0", "[::1]:80", "localhost:7373", "0.0.0.0:1"] {
            assert!(address(good).is_ok(), "{good}");
        }
        for bad in ["7373", "127.0.0.1", "localhost", "localhost:x", "db1:80", "127.0.0.1:65536", ""] {
            assert!(address(bad).is_err(), "{bad}");
        }
    }
}
