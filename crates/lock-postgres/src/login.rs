//! Who connects: what the URL leaves out, from the places where PostgreSQL's own programs look.

use std::env;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;

use lock_core::UrlHost;

use crate::PostgresConfig;

/// The port unless the URL gives one.
pub(crate) const PORT: u16 = 5432;

/// The user; `None` if nothing says who.
pub(crate) fn user(config: &PostgresConfig) -> Option<String> {
    let from_environment = || ["PGUSER", "USER", "LOGNAME"].into_iter().find_map(|name| env::var(name).ok());
    config.address.user().map(str::to_owned).or_else(from_environment)
}

/// The password for a server, if there is one.
///
/// # Source
/// The PostgreSQL manual, "Environment Variables" and "The Password File".
pub(crate) fn password(config: &PostgresConfig, host: &UrlHost, user: &str) -> Option<String> {
    let given = config.address.password().map(str::to_owned).or_else(|| env::var("PGPASSWORD").ok());
    given.or_else(|| {
        let port = host.port.unwrap_or(PORT).to_string();
        find(&password_file()?, [&host.name, &port, config.address.database(), user])
    })
}

/// The text of the password file. One that others may read is not used.
fn password_file() -> Option<String> {
    let in_home = || Some(PathBuf::from(env::var_os("HOME")?).join(".pgpass"));
    let path = env::var_os("PGPASSFILE").map(PathBuf::from).or_else(in_home)?;
    let is_private = fs::metadata(&path).ok()?.mode() & 0o077 == 0;
    if is_private { fs::read_to_string(path).ok() } else { None }
}

/// The password of the first line whose four fields match.
fn find(file: &str, wanted: [&str; 4]) -> Option<String> {
    file.lines().filter(|line| !line.starts_with('#')).find_map(|line| {
        let fields = fields(line);
        let matches = |(field, wanted): (&String, &str)| field == "*" || field == wanted;
        (fields.len() >= 5 && fields.iter().zip(wanted).all(matches)).then(|| fields[4].clone())
    })
}

/// What colons separate. A backslash takes the meaning from what follows it.
fn fields(line: &str) -> Vec<String> {
    let (mut fields, mut chars) = (vec![String::new()], line.chars());
    while let Some(next) = chars.next() {
        match next {
            ':' => fields.push(String::new()),
            '\\' => fields.last_mut().into_iter().for_each(|field| field.extend(chars.next())),
            other => fields.last_mut().into_iter().for_each(|field| field.push(other)),
        }
    }
    fields
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_line_that_matches_gives_the_password() {
        let file = "# db:1:a:b:no\ndb1:5432:shop:app:one\n*:*:*:app:an\\:y\\\\\nshort:line";
        let find = |host, user| find(file, [host, "5432", "shop", user]);
        assert_eq!(find("db1", "app").as_deref(), Some("one"));
        assert_eq!(find("db2", "app").as_deref(), Some("an:y\\"));
        assert_eq!(find("db1", "other"), None);
    }
}
