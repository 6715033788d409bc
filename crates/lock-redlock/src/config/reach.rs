//! Whether all clients reach the same servers under the listed addresses, as far as the addresses show.

use std::net::IpAddr;

use lock_core::Invalid;
use url::Host;

use super::{NodeUrl, refuse};

/// If nodes are on several hosts, none may be named as the local host: on another host, that name is another server.
pub(super) fn check(nodes: &[NodeUrl]) -> Result<(), Invalid> {
    let (here, elsewhere): (Vec<_>, Vec<_>) = nodes.iter().partition(|node| node.is_here);
    let (Some(here), Some(elsewhere)) = (here.first(), elsewhere.first()) else { return Ok(()) };
    let problem = format!("{} means another server on each host, and {} is elsewhere", here.address, elsewhere.address);
    Err(refuse(problem, "name each node as all clients reach it"))
}

/// Whether this name means the local host, on every host.
pub(super) fn is_here(host: &Host<&str>) -> bool {
    let is_loopback = |ip: IpAddr| ip.is_loopback() || ip.is_unspecified();
    match host {
        Host::Domain(name) => {
            let name = name.trim_end_matches('.').to_ascii_lowercase();
            name == "localhost" || name.ends_with(".localhost") || name.parse().is_ok_and(is_loopback)
        }
        Host::Ipv4(ip) => is_loopback((*ip).into()),
        Host::Ipv6(ip) => is_loopback(ip.to_canonical()),
    }
}

#[cfg(test)]
mod tests {
    use super::super::RedlockConfig;

    #[test]
    fn a_list_is_of_one_host_or_of_several() {
        for mixed in [
            "redlock://localhost,db2,db3",
            "redlock://db1,db2,127.0.0.9:7003",
            "redlock://db1,[::1],db3",
            "redlock://db1,[::ffff:127.0.0.1],db3",
            "redlock://db1,db2,0.0.0.0",
            "redlock://db1,db2,LocalHost.",
            "redlock://?node=unix:///run/redis.sock&node=redis://db2&node=redis://db3",
            "redlock://?node=redis://db1&node=rediss://127.0.0.1:1&node=redis://db3",
        ] {
            let refusal = RedlockConfig::from_url(mixed).unwrap_err().to_string();
            assert!(refusal.contains("means another server on each host"), "{mixed}: {refusal}");
        }
        for one in ["redlock://localhost:1,127.0.0.1:2,[::1]:3", "redlock://db1,localhost.example,10.0.0.1"] {
            assert!(RedlockConfig::from_url(one).is_ok(), "{one}");
        }
    }
}
