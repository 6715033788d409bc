//! Fencing tokens: the order in which the ensemble has created the entries.

use std::time::{SystemTime, UNIX_EPOCH};

use lock_core::{FencingToken, Invalid, TokenRange, Width};
use zookeeper_client::{Acls, Client, CreateMode, Error, OneshotWatcher};

use crate::path::BASE;

/// How many tokens an entry has: as many as a lease spans at most.
const WIDTH: u64 = 64;

/// What the tokens of an ensemble begin at: the clock when it was first used, so that they rise if it is built anew.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Base(u64);

impl Base {
    /// Reads it, and writes it if nobody has yet. Also returns its version, and what learns of a change.
    pub(crate) async fn read(client: &Client, acls: Acls<'static>) -> Result<(Self, i32, OneshotWatcher), Error> {
        let path = format!("/{BASE}");
        loop {
            match client.get_and_watch_data(&path).await {
                Ok((data, stat, changed)) => return Ok((Self::of(&data)?, stat.version, changed)),
                Err(Error::NoNode) => {}
                Err(failure) => return Err(failure),
            }
            let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_micros());
            let options = CreateMode::Persistent.with_acls(acls);
            match client.create(&path, now.to_string().as_bytes(), &options).await {
                Ok(_) | Err(Error::NodeExists) => {}
                Err(failure) => return Err(failure),
            }
        }
    }

    /// Raises it, so that all tokens of later sessions are above this one. Returns false if it is high enough.
    pub(crate) async fn raise(client: &Client, acls: Acls<'static>, above: FencingToken) -> Result<bool, Error> {
        let path = format!("/{BASE}");
        loop {
            let (base, version, _) = Self::read(client, acls).await?;
            if base.0 >= above.get() {
                return Ok(false);
            }
            match client.set_data(&path, above.to_string().as_bytes(), Some(version)).await {
                Ok(_) => return Ok(true),
                Err(Error::BadVersion) => {}
                Err(failure) => return Err(failure),
            }
        }
    }

    fn of(data: &[u8]) -> Result<Self, Error> {
        let text = std::str::from_utf8(data).ok().and_then(|text| text.trim().parse().ok());
        text.map(Self).ok_or_else(|| Error::UnexpectedError(format!("/{BASE} holds no number")))
    }

    /// The tokens of an entry that was created by this transaction.
    pub(crate) fn tokens(self, created: i64, width: Width) -> Result<TokenRange, Invalid> {
        TokenRange::above(self.before(created), width)
    }

    fn before(self, created: i64) -> u64 {
        let number = u64::try_from(created).unwrap_or_default();
        self.0.saturating_add(number.saturating_mul(WIDTH))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_rise_with_the_transactions_and_do_not_overlap() {
        let base = Base::of(b"1000\n").unwrap();
        let earlier = base.tokens(7, Width::MAX).unwrap();
        assert_eq!((earlier.low().get(), earlier.high().get()), (1000 + 7 * 64 + 1, 1000 + 8 * 64));
        assert!(base.tokens(8, Width::ONE).unwrap().low() > earlier.high());
        assert!(Base::of(b"x").is_err());
        assert!(Base(0).tokens(i64::MAX, Width::ONE).is_err());
    }
}
