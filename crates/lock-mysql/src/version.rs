//! Which server this is, and whether it is one that is tested.

use std::fmt;

/// The version of a server, as it says it.
pub(crate) struct Version<'a>(&'a str);

impl<'a> Version<'a> {
    /// The remedy for a version that is not tested.
    pub(crate) const REMEDY: &'static str = "try your use of locks on this version before you rely on it";

    pub(crate) const fn of(version: &'a str) -> Self {
        Self(version)
    }

    /// The warning about a version that is not tested.
    pub(crate) fn untested(&self) -> Option<String> {
        (!self.is_like_tested()).then(|| format!("{self}: tested are MariaDB 10.11 and MySQL 9.7"))
    }

    fn is_mariadb(&self) -> bool {
        self.0.contains("MariaDB")
    }

    /// Whether it is MariaDB from 10.11 on, or a MySQL 9.
    fn is_like_tested(&self) -> bool {
        let mut numbers = self.0.split(['.', '-']).map_while(|number| number.parse::<u32>().ok());
        let release = (numbers.next().unwrap_or_default(), numbers.next().unwrap_or_default());
        if self.is_mariadb() { release >= (10, 11) } else { release.0 == 9 }
    }
}

impl fmt::Display for Version<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let product = if self.is_mariadb() { "" } else { "MySQL " };
        write!(f, "{product}{}", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_told_from_those_that_nobody_has_tried() {
        for version in ["10.11.19-MariaDB-0+deb12u1", "11.8.3-MariaDB", "9.7.4-2"] {
            assert_eq!(Version::of(version).untested(), None);
        }
        for version in ["10.6.22-MariaDB", "8.4.6", "8.0.mysql_aurora.3.08.0", "8.0.11-TiDB-v8.5.1", "10.0.0", ""] {
            assert!(Version::of(version).untested().is_some(), "{version}");
        }
        let warning = "MySQL 8.4.6: tested are MariaDB 10.11 and MySQL 9.7";
        assert_eq!(Version::of("8.4.6").untested().as_deref(), Some(warning));
    }
}
