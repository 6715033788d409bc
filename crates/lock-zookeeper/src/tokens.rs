//! Fencing tokens: the order in which the ensemble has created the entries.

use std::time::{SystemTime, UNIX_EPOCH};

use lock_core::{FencingToken, Invalid, TokenRange, Width};
use zookeeper_client::{Acls, Client, CreateMode, Error, OneshotWatcher};

use crate::path::BASE;

/// How many tokens an entry has: as many as a lease spans at most.
const WIDTH: u64 = 64;

/// For how many elections a base that an operator raises has to leave tokens. Each takes as many as there are transactions in an epoch. Chosen:
/// one a day for three years.
const ELECTIONS_LEFT: u64 = 1000;

/// What the tokens of an ensemble begin at: the clock when it was first used, so that they rise if it is built anew.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Base(u64);

impl Base {
    /// Reads it, and writes it if nobody has yet. Also returns what learns of a change.
    pub(crate) async fn read(client: &Client, acls: Acls<'static>) -> Result<(Self, OneshotWatcher), Error> {
        let path = format!("/{BASE}");
        loop {
            match client.get_and_watch_data(&path).await {
                Ok((data, _, changed)) => return Ok((Self::of(&data)?, changed)),
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

    /// Raises it, so that all tokens of later sessions are above this one. Returns whether it was not high enough, or no number.
    pub(crate) async fn raise(client: &Client, acls: Acls<'static>, above: FencingToken) -> Result<bool, Error> {
        let path = format!("/{BASE}");
        loop {
            let (data, version) = match client.get_data(&path).await {
                Ok((data, stat)) => (data, Some(stat.version)),
                Err(Error::NoNode) => (Vec::new(), None),
                Err(failure) => return Err(failure),
            };
            if Self::of(&data).is_ok_and(|base| base.0 >= above.get()) {
                return Ok(false);
            }
            let text = above.to_string();
            let written = match version {
                Some(_) => client.set_data(&path, text.as_bytes(), version).await.map(drop),
                None => client.create(&path, text.as_bytes(), &CreateMode::Persistent.with_acls(acls)).await.map(drop),
            };
            match written {
                Ok(()) => return Ok(true),
                Err(Error::BadVersion | Error::NodeExists | Error::NoNode) => {}
                Err(failure) => return Err(failure),
            }
        }
    }

    /// Whether tokens above this one are left for many elections, at an ensemble that has come to this transaction.
    pub(crate) fn has_room(above: FencingToken, transaction: i64) -> bool {
        let used = Self(above.get()).before(transaction);
        used.saturating_add(ELECTIONS_LEFT.saturating_mul(WIDTH << 32)) <= FencingToken::MAX.get()
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
        let highest = FencingToken::new(9_000_000_000_000_000).unwrap();
        assert!(
            !Base::has_room(highest, 7) && Base::has_room(FencingToken::new(2_000_000_000_000_000).unwrap(), 7 << 32)
        );
    }
}
