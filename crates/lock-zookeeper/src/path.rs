//! Where the entries of a lock are: its name as a path.

use lock_core::{LockName, Prefix};

/// The node that the tokens begin at.
pub(crate) const BASE: &str = "leasehold-base";

/// The directory of what is remembered of leases that operators ended.
pub(crate) const REVOKED: &str = "leasehold-revoked";

/// The directory of latches.
pub(crate) const LATCHES: &str = "leasehold-latches";

/// What the names of entries begin with, as Curator's do. A segment that begins so is escaped, so that no lock looks like an entry of another one.
pub(crate) const OF_ENTRIES: &str = "_c_";

/// The directory of a lock, from the chroot on. The slashes of a name separate directories, as in the paths of Curator's locks, and a
/// slash in front is added. What ZooKeeper does not accept is escaped.
pub(crate) fn of(prefix: &Prefix, name: &LockName) -> String {
    let key = prefix.key(name.as_str());
    let segments = key.split('/').map(escaped);
    segments.fold(String::new(), |path, segment| path + "/" + &segment)
}

/// The name of the lock that has this directory. `None` if it is that of no lock, or of one without the prefix.
pub(crate) fn name_at(prefix: &Prefix, path: &str) -> Option<LockName> {
    let segments: Option<Vec<String>> = path.split('/').skip(1).map(original).collect();
    prefix.name(&segments?.join("/"))
}

/// What stands for a segment without a character. No escape looks like it.
const EMPTY: &str = "%";

fn escaped(segment: &str) -> String {
    if segment.is_empty() {
        return EMPTY.to_owned();
    }
    let is_reserved = is_reserved(segment);
    let is_escaped = |at: usize, c: char| (at == 0 && is_reserved) || c == '%' || is_refused(c);
    let mut bytes = [0; 4];
    segment.char_indices().fold(String::new(), |text, (at, c)| {
        let c_bytes = c.encode_utf8(&mut bytes);
        if !is_escaped(at, c) {
            return text + c_bytes;
        }
        c_bytes.bytes().fold(text, |text, byte| text + &format!("%{byte:02X}"))
    })
}

fn original(segment: &str) -> Option<String> {
    if segment == EMPTY {
        return Some(String::new());
    }
    let mut parts = segment.split('%');
    let mut bytes = parts.next()?.as_bytes().to_vec();
    for part in parts {
        let (digits, rest) = part.split_at_checked(2)?;
        bytes.push(u8::from_str_radix(digits, 16).ok()?);
        bytes.extend(rest.as_bytes());
    }
    String::from_utf8(bytes).ok()
}

/// Segments that mean something else: to paths, to ZooKeeper, or to this library.
fn is_reserved(segment: &str) -> bool {
    [".", "..", "zookeeper", BASE, REVOKED, LATCHES].contains(&segment) || segment.starts_with(OF_ENTRIES)
}

/// What ZooKeeper refuses in a path, beyond the control characters, which no name has. It reads UTF-16, so it refuses what takes two units.
///
/// # Source
/// ZooKeeper, `PathUtils.validatePath`.
const fn is_refused(c: char) -> bool {
    matches!(c, '\u{e000}'..='\u{f8ff}' | '\u{fff0}'..)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(text: &str) -> LockName {
        text.parse().unwrap()
    }

    #[test]
    fn names_are_paths_as_curator_writes_them() {
        let none = Prefix::default();
        for (text, path) in [
            ("nightly", "/nightly"),
            ("shop/invoice 42", "/shop/invoice 42"),
            ("/locks/a", "/%/locks/a"),
            ("a//b", "/a/%/b"),
            ("a/", "/a/%"),
            ("..", "/%2E."),
            ("a/./b", "/a/%2E/b"),
            ("100%", "/100%25"),
            ("zookeeper", "/%7Aookeeper"),
            ("_c_1-lock-0000000001", "/%5Fc_1-lock-0000000001"),
            ("sp\u{e4}t", "/sp\u{e4}t"),
            ("\u{e000}", "/%EE%80%80"),
            ("\u{1f512}", "/%F0%9F%94%92"),
        ] {
            assert_eq!(of(&none, &name(text)), path);
            assert_eq!(name_at(&none, path), Some(name(text)));
        }
        let shop = "shop".parse().unwrap();
        assert_eq!(of(&shop, &name("a")), "/shop:a");
        assert_eq!((name_at(&shop, "/shop:a"), name_at(&shop, "/a")), (Some(name("a")), None));
        assert_eq!(["/a%", "/a%4", "/%FF", "/%zz"].map(|path| name_at(&none, path)), [const { None }; 4]);
    }
}
