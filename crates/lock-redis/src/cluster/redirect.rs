//! Where a server of a cluster sends a request instead of running it.

use crate::address::Address;

/// What a server answers if it does not serve the hash slot of a request. Nothing was run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Redirect {
    /// Another server serves the hash slot from now on.
    Moved(Address),
    /// The hash slot is moving, and this key is not here any more. Asked for that, the other server serves it.
    Ask(Address),
    /// The server is cut off from the cluster, or that does not serve the hash slot now. Others may know more.
    Down,
}

impl Redirect {
    /// Reads the code and the details of an error: `MOVED SLOT HOST:PORT`, `ASK SLOT HOST:PORT`, or `CLUSTERDOWN` and why.
    pub(crate) fn read(code: &str, details: &str) -> Option<Self> {
        let to = match code {
            "MOVED" => Self::Moved,
            "ASK" => Self::Ask,
            "CLUSTERDOWN" => return Some(Self::Down),
            _ => return None,
        };
        let (_hash_slot, address) = details.split_once(' ')?;
        Address::read(address.trim()).map(to)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn redirects_are_read_with_every_kind_of_address() {
        let at = |host: &str, port| Address { host: host.to_owned(), port };
        for (code, details, expected) in [
            ("MOVED", "3999 127.0.0.1:6381", Some(Redirect::Moved(at("127.0.0.1", 6381)))),
            ("ASK", "3999 DB1.example:7", Some(Redirect::Ask(at("db1.example", 7)))),
            ("MOVED", "3999 ::1:6381", Some(Redirect::Moved(at("::1", 6381)))),
            ("MOVED", "3999 [::1]:6381", Some(Redirect::Moved(at("::1", 6381)))),
            ("MOVED", "3999 :6381", Some(Redirect::Moved(at("", 6381)))),
            ("CLUSTERDOWN", "The cluster is down", Some(Redirect::Down)),
            ("MOVED", "3999", None),
            ("MOVED", "3999 127.0.0.1", None),
            ("MOVED", "3999 127.0.0.1:99999", None),
            ("TRYAGAIN", "Multiple keys request during rehashing of slot", None),
        ] {
            assert_eq!(Redirect::read(code, details), expected, "{code} {details}");
        }
    }

    #[test]
    fn a_server_that_does_not_know_its_host_is_at_that_of_the_one_that_was_asked() {
        let asked = Address::read("db1:6379").unwrap();
        let beside = |text: &str| Address::read(text).unwrap().beside(&asked).to_string();
        assert_eq!(
            [":7000", "?:7000", "db2:7000", "::1:7000"].map(beside),
            ["db1:7000", "db1:7000", "db2:7000", "[::1]:7000"]
        );
    }
}
