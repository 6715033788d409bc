//! The arguments of `leasehold break`.

use clap::Args;
use leasehold::{FencingToken, Invalid, LockName};

use super::store::StoreArgs;
use super::work::why;

/// `leasehold break`.
#[derive(Debug, Args)]
pub(crate) struct BreakArgs {
    #[command(flatten)]
    pub(crate) store: StoreArgs,
    /// The fencing token of the lease to end, as `leasehold show NAME` prints it. If another lease holds the lock by then, nothing
    /// is changed. By default, the current lease; required if there are several.
    #[arg(long, value_name = "N", value_parser = token)]
    pub(crate) token: Option<FencingToken>,
    /// Do not ask for confirmation; required without a terminal.
    #[arg(short, long)]
    pub(crate) yes: bool,
    /// The reason; shown with your name by the holder's `leasehold run` when it reports the loss.
    #[arg(long, value_name = "TEXT", default_value = "", hide_default_value = true, value_parser = why)]
    pub(crate) why: String,
    /// Print a JSON object instead of a sentence.
    #[arg(long)]
    pub(crate) json: bool,
    /// The name of the lock.
    #[arg(value_name = "NAME")]
    pub(crate) name: LockName,
}

/// A token, or the range of tokens of a lease, which a table shows as `7..9`.
pub(crate) fn token(text: &str) -> Result<FencingToken, Invalid> {
    text.rsplit_once("..").map_or(text, |(_, high)| high).parse().map_err(|_| {
        let remedy = "give the token that `leasehold show NAME` prints";
        Invalid::new("fencing token", text, "it is not a number between 1 and 2^53 - 1", remedy)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_taken_as_a_table_shows_it() {
        assert_eq!(token("7").unwrap().get(), 7);
        assert_eq!(token("7..9").unwrap().get(), 9);
        for bad in ["", "0", "-1", "seven", "7..", "9007199254740992"] {
            assert!(token(bad).unwrap_err().to_string().contains("leasehold show"), "{bad}");
        }
    }
}
