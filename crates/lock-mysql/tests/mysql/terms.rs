//! What claims ask for: the fast functions answer as the rules do.

use lock_core::{ErrorKind, FencingToken, Width};

use crate::support::{Place, SOON, claim, granted, is_queued, releases, take, waiting};

/// The highest token that there is.
const HIGHEST: u64 = (1 << 53) - 1;

#[test]
fn a_place_that_is_refreshed_has_the_terms_of_the_latest_claim() {
    let place = Place::new();
    let [one, other] = [place.client(), place.client()];
    let first = claim("a");
    take(&one, &first);
    let narrow = waiting("a");
    is_queued(other.acquire(&narrow, SOON), 1);
    let wide = lock_core::Claim { width: Width::for_waiters(16), ..narrow };
    is_queued(other.acquire(&wide, SOON), 1);
    releases(&one, &first);
    assert_eq!(granted(other.acquire(&wide, SOON)).tokens.width(), Width::for_waiters(16));
}

#[test]
fn tokens_that_are_used_up_are_refused_and_nothing_is_written() {
    let place = Place::new();
    let client = place.client();
    let floor = Some(FencingToken::new(HIGHEST - 4).unwrap());
    let last = lock_core::Claim { floor, width: Width::for_waiters(8), ..claim("a") };
    let error = client.acquire(&last, SOON).unwrap_err();
    assert!(error.kind() == ErrorKind::Protocol && error.to_string().contains("used up"), "{error}");
    assert_eq!(place.session().value::<i64>("SELECT COUNT(*) FROM leasehold_hold"), 0);
    let fits = lock_core::Claim { width: Width::for_waiters(2), ..last };
    assert_eq!(take(&client, &fits).tokens.high().get(), HIGHEST - 2);
}
