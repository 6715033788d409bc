//! Sentinels replace a primary that works. It takes writes for about ten more seconds. Its clients leave it as soon as they hear of
//! that, so without protection there are two holders for milliseconds, if at all.

use std::time::Duration;

use stress::cast::{BOOK, Cast, LONG_TTL};
use stress::double::longest_pause;
use stress::history::now;
use stress::part::Facade;
use stress::run::{await_that, await_workers};
use test_support::{Sentinel, Trio};

use crate::{BARE, Setting, crew, ground, in_each, judge, one_holder, post, turns_of, url};

const DWELL: Setting = "failover=dwell&max_ttl=2s";
const ACKNOWLEDGED: Setting = "failover=dwell&max_ttl=2s&replicas=2";

/// The leases from before have ended by then.
const LATER: Duration = LONG_TTL.saturating_mul(3).checked_div(2).unwrap();

#[test]
fn a_planned_fail_over_under_load_makes_no_second_holder() {
    in_each([BARE, DWELL, ACKNOWLEDGED], |setting| {
        let trio = Trio::start();
        let url = url(trio.sentinels.iter().map(Sentinel::port), setting);
        let facades = [Facade::Async, Facade::Blocking, Facade::Async, Facade::Blocking];
        let clerks = facades.map(|facade| post(facade, &url, Cast::Clerks));
        let mut crew = crew(ground(), &url, clerks.into());
        await_workers(&crew);
        let at = now();
        trio.fail_over();
        let later = at + u64::try_from(LATER.as_nanos()).unwrap();
        let had_one = |clerk| turns_of(&crew, clerk).iter().any(|turn| turn.from > later);
        await_that("all clerks go on", || (0..facades.len()).all(had_one));
        println!("{setting}: without a holder for {:.1?}", longest_pause(&crew.turns(), BOOK, at));
        let mut problems = crew.end();
        if setting != BARE {
            problems.extend(one_holder(&crew));
        }
        judge(crew, setting, problems);
    });
}
