//! Tickets: to continue with a lease in another task or process.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::{FencingToken, Invalid, Lease, LockName, Mode, Owner};

/// How the text of a ticket begins. Another form would begin in another way.
const FORM: &str = "lht1";

/// A ticket: what it takes to continue with a lock that a guard has detached, in another task, thread or process. The first one
/// to adopt it has the lock; the others get an error.
///
/// A ticket is a secret: anyone who has it can take the lock over. `Debug` and `Display` hide the secret;
/// [`expose`](Self::expose) and serde give the whole ticket as text, which [`FromStr`] and serde read again.
///
/// Nobody renews the lease of a ticket. If it is not adopted before the ttl expires, the lock becomes free.
///
/// ```
/// # use lock_core as leasehold;
/// use leasehold::Ticket;
///
/// let ticket: Ticket = "lht1:000102030405060708090a0b0c0d0e0f:x:7:29500:invoice:42".parse()?;
/// assert_eq!(ticket.name().as_str(), "invoice:42");
/// assert_eq!(ticket.to_string(), "a ticket for the lock \"invoice:42\" (token 7)");
/// # Ok::<(), leasehold::Invalid>(())
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct Ticket {
    name: LockName,
    pub(crate) owner: Owner,
    mode: Mode,
    token: FencingToken,
    valid_for: Duration,
}

impl Ticket {
    /// A ticket for a lease that is valid for so much longer.
    pub fn new(lease: &Lease, valid_for: Duration) -> Self {
        let Lease { name, owner, tokens, terms, .. } = lease;
        // As in its text, so that a ticket equals what is read from there.
        let valid_for = Duration::from_millis(valid_for.as_millis().try_into().unwrap_or(u64::MAX));
        Self { name: name.clone(), owner: *owner, mode: terms.mode, token: tokens.high(), valid_for }
    }

    /// The name of the lock.
    pub fn name(&self) -> &LockName {
        &self.name
    }

    /// What the lease is for: to hold alone, to read, or permits.
    pub fn mode(&self) -> Mode {
        self.mode
    }

    /// The highest token of the lease. The token of the guard that adopts it is higher.
    pub fn fencing_token(&self) -> FencingToken {
        self.token
    }

    /// For how long the lease was sure to last when it was detached, in whole milliseconds. The ticket does not know how much of
    /// that has passed.
    pub fn valid_for(&self) -> Duration {
        self.valid_for
    }

    /// The whole ticket as text, with its secret: for an environment variable, a file or a message that only the one who is to
    /// adopt it can read.
    pub fn expose(&self) -> String {
        let Self { name, owner, mode, token, valid_for } = self;
        let mode = match mode {
            Mode::Exclusive => "x".to_owned(),
            Mode::Shared => "s".to_owned(),
            Mode::Permits { count, limit } => format!("{count}/{limit}"),
        };
        format!("{FORM}:{}:{mode}:{token}:{}:{name}", owner.to_wire(), valid_for.as_millis())
    }

    /// Refuses a ticket for something else than this.
    ///
    /// # Errors
    /// `Invalid` for another name, or another kind of lock. The limit of a semaphore may be another one, because it can be
    /// [changed](crate::limit).
    pub fn check(&self, name: &LockName, mode: Mode) -> Result<(), Invalid> {
        let refused = |problem: String, remedy| Err(Invalid::new("ticket for", &self.name, problem, remedy));
        if self.name != *name {
            return refused(format!("the lock is \"{name}\""), "adopt it through a lock of its name");
        }
        if self.mode.kind() != mode.kind() {
            let problem = format!("it is for {}, not for {}", wanted(self.mode), wanted(mode));
            return refused(problem, "adopt it through a lock of the kind that it was made for");
        }
        Ok(())
    }

    fn parse(text: &str) -> Option<Self> {
        let rest = text.strip_prefix(FORM)?.strip_prefix(':')?;
        let mut parts = rest.splitn(5, ':');
        let mut next = || parts.next();
        let (owner, mode, token, millis, name) = (next()?, next()?, next()?, next()?, next()?);
        let mode = match (mode, mode.split_once('/')) {
            ("x", _) => Mode::Exclusive,
            ("s", _) => Mode::Shared,
            (_, Some((count, limit))) => Mode::permits(count.parse().ok()?, limit.parse().ok()?).ok()?,
            (_, None) => return None,
        };
        let token = FencingToken::new(token.parse().ok()?).ok()?;
        let valid_for = Duration::from_millis(millis.parse().ok()?);
        Some(Self { name: name.parse().ok()?, owner: owner.parse().ok()?, mode, token, valid_for })
    }
}

/// What a lease of this mode is for.
fn wanted(mode: Mode) -> String {
    match mode {
        Mode::Exclusive => "a mutex or a writer".to_owned(),
        Mode::Shared => "a reader".to_owned(),
        Mode::Permits { .. } => "a semaphore".to_owned(),
    }
}

impl FromStr for Ticket {
    type Err = Invalid;

    fn from_str(text: &str) -> Result<Self, Invalid> {
        let problem = "it is not the text of a ticket of this version";
        Self::parse(text)
            .ok_or_else(|| Invalid::new("ticket", "(hidden)", problem, "pass the text that `expose` returned"))
    }
}

impl Serialize for Ticket {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.expose())
    }
}

impl<'de> Deserialize<'de> for Ticket {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(D::Error::custom)
    }
}

impl fmt::Display for Ticket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a ticket for the lock \"{}\" (token {})", self.name, self.token)
    }
}

impl fmt::Debug for Ticket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, token, .. } = self;
        f.debug_struct("Ticket").field("name", name).field("token", token).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Slots, Terms, TokenRange, Ttl};

    const SECRET: &str = "abababababababababababababababab";

    fn ticket(mode: Mode) -> Ticket {
        let [low, high] = [7, 9].map(|token| FencingToken::new(token).unwrap());
        let lease = Lease {
            name: "a:b".parse().unwrap(),
            owner: Owner::from_random([0xab; 16]),
            tokens: TokenRange::new(low, high).unwrap(),
            terms: Terms { mode, ttl: Ttl::DEFAULT },
            slots: Slots::NONE,
        };
        Ticket::new(&lease, Duration::from_micros(29_500_900))
    }

    fn permits(count: u32, limit: u32) -> Mode {
        Mode::permits(count, limit).unwrap()
    }

    #[test]
    fn a_ticket_comes_back_from_its_text_and_through_serde() {
        for mode in [Mode::Exclusive, Mode::Shared, permits(3, 8)] {
            let ticket = ticket(mode);
            let back: Ticket = ticket.expose().parse().unwrap();
            assert_eq!((back.name(), back.owner, back.mode()), (ticket.name(), ticket.owner, mode));
            assert_eq!(back, ticket);
            assert_eq!((back.fencing_token().get(), back.valid_for()), (9, Duration::from_millis(29_500)));
            let json = serde_json::to_string(&back).unwrap();
            assert_eq!(serde_json::from_str::<Ticket>(&json).unwrap(), back);
        }
    }

    #[test]
    fn only_its_exposed_text_has_the_secret() {
        let ticket = ticket(Mode::Exclusive);
        assert_eq!(ticket.expose(), format!("lht1:{SECRET}:x:9:29500:a:b"));
        let refusal = ticket.check(&"c".parse().unwrap(), Mode::Exclusive).unwrap_err();
        let broken = ticket.expose().replace("lht1", "lht2").parse::<Ticket>().unwrap_err();
        let read = serde_json::from_str::<Ticket>(&format!("\"{SECRET}\"")).unwrap_err();
        let texts =
            [format!("{ticket:?}"), ticket.to_string(), refusal.to_string(), broken.to_string(), read.to_string()];
        for text in texts {
            assert!(!text.contains("abab"), "{text}");
        }
    }

    #[test]
    fn text_that_is_not_a_ticket_is_refused() {
        let good = ticket(permits(1, 4)).expose();
        assert!(good.parse::<Ticket>().is_ok());
        for (part, by) in
            [("lht1:", ""), (SECRET, "ab"), ("1/4", "y"), ("1/4", "5/4"), (":9:", ":0:"), ("a:b", ""), (":29500", "")]
        {
            let bad = good.replace(part, by);
            assert_ne!(bad, good);
            assert!(bad.parse::<Ticket>().is_err(), "{bad}");
        }
    }

    #[test]
    fn a_ticket_for_something_else_says_for_what() {
        let refused = |of: Mode, name: &str, mode| match ticket(of).check(&name.parse().unwrap(), mode) {
            Ok(()) => String::new(),
            Err(invalid) => invalid.to_string(),
        };
        assert_eq!(refused(permits(2, 4), "a:b", permits(1, 4)), "", "for as many as it was made");
        let name = refused(Mode::Shared, "c", Mode::Shared);
        assert!(name.starts_with("ticket for \"a:b\" is not valid: the lock is \"c\""), "{name}");
        let kind = refused(Mode::Shared, "a:b", Mode::Exclusive);
        assert!(kind.contains("it is for a reader, not for a mutex or a writer"), "{kind}");
        assert_eq!(refused(permits(2, 4), "a:b", permits(1, 5)), "", "the limit was changed");
        let kind = refused(permits(2, 4), "a:b", Mode::Shared);
        assert!(kind.contains("it is for a semaphore, not for a reader"), "{kind}");
    }
}
