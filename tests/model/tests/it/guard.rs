//! The guard with all its rules keeps every claim, and without any one of them two hold at a time.

use quorum_model::guard::Claim::{self, OneHolder};
use quorum_model::guard::{Bounds, Form, Looks, Scene, Steps};

/// The claims that fall where so much happens.
fn refuted_within(scene: Scene, form: Form, bounds: Bounds) -> Vec<Claim> {
    let report = scene.explore(form, bounds);
    println!("{scene:?}, {form:?}, {bounds:?}: {report}");
    report.refuted()
}

fn refuted(scene: Scene, form: Form) -> Vec<Claim> {
    refuted_within(scene, form, scene.bounds())
}

/// Two nodes lose everything, one after the other.
fn two_losses() -> Bounds {
    Bounds { losses: 2, ticks: 3, looks: Looks::AtOnce, ..Scene::Three.bounds() }
}

fn a_step(when: Steps) -> Bounds {
    Bounds { steps: (1, when), looks: Looks::AtOnce, ..Scene::Three.bounds() }
}

#[test]
fn the_guard_keeps_every_claim() {
    assert_eq!(refuted(Scene::Three, Form::Complete), []);
    assert_eq!(refuted(Scene::Five, Form::Complete), []);
    let restart = Bounds { restarts: 1, looks: Looks::AtOnce, ..Scene::Three.bounds() };
    assert_eq!(refuted_within(Scene::Three, Form::Complete, restart), []);
}

#[test]
fn a_ttl_that_was_not_announced_is_forgotten_with_the_node_that_granted_it() {
    assert_eq!(refuted(Scene::Three, Form::Unannounced), [OneHolder]);
}

#[test]
fn a_dwell_that_counts_past_the_look_may_be_too_short() {
    assert_eq!(refuted(Scene::Three, Form::PastLook), [OneHolder]);
}

#[test]
fn one_old_record_may_be_of_a_clock_that_stepped() {
    let bounds = a_step(Steps::WhileFree);
    assert_eq!(refuted_within(Scene::Three, Form::OneRecord, bounds), [OneHolder]);
    assert_eq!(refuted_within(Scene::Three, Form::Complete, bounds), []);
}

#[test]
fn what_came_back_by_the_clock_has_to_know_the_longest_ttl() {
    assert_eq!(refuted_within(Scene::Three, Form::LowLongest, two_losses()), [OneHolder]);
}

/// The nodes that count as told know it at no one time, if one of them may have been back meanwhile.
#[test]
fn an_announcement_takes_less_time_than_any_dwell() {
    assert_eq!(refuted_within(Scene::Three, Form::Complete, two_losses()), []);
    assert_eq!(refuted_within(Scene::Three, Form::SlowAnnouncement, two_losses()), [OneHolder]);
}

/// The look may be older than the announcement, the claim and the loss.
#[test]
fn nodes_that_know_no_ttl_dwell_too() {
    assert_eq!(refuted(Scene::Fresh, Form::Complete), []);
    assert_eq!(refuted(Scene::Fresh, Form::NoLeast), [OneHolder]);
}

#[test]
fn after_a_total_loss_a_shorter_max_ttl_shortens_nothing() {
    assert_eq!(refuted(Scene::ShortUrl, Form::Complete), []);
    assert_eq!(refuted(Scene::ShortUrl, Form::ShortBlank), [OneHolder]);
}

#[test]
fn a_move_that_left_a_node_behind_and_a_loss_make_no_two_deployments() {
    let bounds = Bounds { ticks: 2, ..Scene::Replaced.bounds() };
    assert_eq!(refuted_within(Scene::Replaced, Form::Complete, bounds), []);
    assert_eq!(refuted_within(Scene::Replaced, Form::Strangers, bounds), [OneHolder]);
}

/// The node that the move did not reach still votes in the old list.
#[test]
fn a_node_with_data_from_before_a_move_does_not_undo_it() {
    let bounds = Bounds { ticks: 2, losses: 0, rollbacks: 1, ..Scene::Replaced.bounds() };
    assert_eq!(refuted_within(Scene::Replaced, Form::Complete, bounds), []);
    assert_eq!(refuted_within(Scene::Replaced, Form::Outdated, bounds), [OneHolder]);
}

#[test]
fn voters_from_an_earlier_time_do_not_shorten_the_wait_after_a_move() {
    assert_eq!(refuted(Scene::Back, Form::Complete), []);
    assert_eq!(refuted(Scene::Back, Form::LeftVoters), [OneHolder]);
}

/// Two of the three old nodes lose their data after the move.
#[test]
fn a_move_that_was_decided_ends_whatever_is_lost_then() {
    let bounds = Bounds { losses: 2, ..Scene::Replaced.bounds() };
    assert_eq!(refuted_within(Scene::Replaced, Form::Complete, bounds), []);
    assert_eq!(refuted_within(Scene::Replaced, Form::NoProof, bounds), [Claim::Finishes]);
}

/// Which list is to grant may then be unknown to all that is left: none does.
#[test]
fn two_moves_at_once_and_a_loss_make_no_two_holders() {
    let bounds = Bounds { ticks: 1, losses: 1, ..Scene::Rivals.bounds() };
    assert!(!refuted_within(Scene::Rivals, Form::Complete, bounds).contains(&OneHolder));
}

/// Of a lease that a bare majority keeps, each of these nodes is needed: this is assumed away.
#[test]
fn a_clock_that_steps_under_a_lease_makes_two_holders() {
    let bounds = Bounds { losses: 0, ..a_step(Steps::AnyTime) };
    assert_eq!(refuted_within(Scene::Three, Form::Complete, bounds), [OneHolder]);
}

/// Blank nodes look the same to two deployments that list them: this is assumed away.
#[test]
fn a_second_list_needs_passes_that_reach_every_node() {
    let bounds = Bounds { silent: 1, ..Scene::Replaced.bounds() };
    assert_eq!(refuted_within(Scene::Replaced, Form::Complete, bounds), [OneHolder]);
}

/// Two operators move one deployment at once, and each of their requests may arrive late.
#[test]
fn of_two_moves_at_once_one_settles_when_it_is_run_again() {
    assert_eq!(refuted(Scene::Rivals, Form::Complete), []);
    let moves_alone = Bounds { ticks: 0, ..Scene::Rivals.bounds() };
    for (form, settles) in [(Form::Complete, true), (Form::NoSibling, false)] {
        let refuted = refuted_within(Scene::Rivals, form, moves_alone);
        assert_eq!(refuted.contains(&Claim::Settles), !settles, "{form:?}");
    }
}

/// A move reaches a few nodes, late, and the passes of the new list see no node of the old one.
#[test]
fn a_new_list_waits_until_the_old_one_cannot_grant() {
    assert_eq!(refuted(Scene::Widened, Form::Complete), []);
    assert_eq!(refuted(Scene::Widened, Form::Hasty), [OneHolder]);
}

#[test]
fn of_two_halves_one_list_grants() {
    let refuted_by = |form| refuted(Scene::Halved, form).contains(&OneHolder);
    assert!(!refuted_by(Form::Complete));
    assert!(refuted_by(Form::Halves));
}
