//! The list of all cases.

use std::fmt;

use crate::{Bench, Fault, Need, cases};

/// Something that must be true of every store, or of every store that has what it needs.
#[derive(Clone, Copy)]
pub struct Case {
    /// `group::name`.
    pub path: &'static str,
    /// The store or its harness must have all of these.
    pub needs: &'static [Need],
    /// Panics if it is not true.
    pub check: fn(&Bench),
}

/// Calls a macro with all groups of cases. The only list of them. A group is marked with what it tests: a `store`, or what a `facade`
/// makes of any such store, which another variant of the store cannot change.
#[doc(hidden)]
#[macro_export]
macro_rules! __cases {
    ($($then:ident)::+ [$($argument:tt)*]) => {
        $($then)::+! { [$($argument)*]
            store exclusion {
                a_second_owner_is_refused: Nothing;
                racing_claims_have_one_winner: Nothing;
                requests_in_flight_together_have_their_own_answers: Nothing;
                racing_clients_never_hold_together: Nothing;
                names_are_independent: Nothing;
                names_are_compared_byte_by_byte: Nothing;
                names_that_look_like_keys_of_others_are_independent: Nothing;
            }
            store rules {
                requests_are_answered_as_the_rules_say: Mode(Permits);
                overlapping_requests_are_answered_as_a_sequence_of_them: Mode(Permits), OwnTtl;
                pairs_are_answered_as_one_after_the_other: Queue;
            }
            store ownership {
                a_stranger_cannot_release: Nothing;
                a_stranger_cannot_renew: OwnTtl;
                a_second_release_is_harmless: Nothing;
                the_same_owner_gets_the_same_tokens: Nothing;
                asking_again_re_arms_the_ttl: OwnTtl;
                a_renewal_never_creates: Nothing;
                renewals_are_answered_in_their_order: Nothing;
                a_fence_knows_the_stored_grant: Nothing;
                a_waiter_gives_up_its_place: Queue;
            }
            store time {
                an_unrenewed_lease_ends: OwnTtl;
                no_grant_is_longer_than_asked: Nothing;
                a_renewal_counts_from_now: OwnTtl;
                a_late_renewal_is_refused: OwnTtl;
                renewal_outlives_the_ttl: Nothing;
                a_loss_is_noticed_before_the_store_lets_go: Need::Fault(Fault::Cut);
            }
            store fencing {
                tokens_rise_over_releases: Nothing;
                tokens_rise_over_expiry: OwnTtl;
                tokens_rise_for_each_name_whoever_asks: Nothing;
                a_width_draws_so_many_tokens: Nothing;
                a_floor_never_lowers_tokens: Nothing;
                tokens_rise_over_a_restart_with_data: Need::Fault(Fault::RestartWithData);
                tokens_rise_over_a_restart_without_data: Need::Fault(Fault::RestartEmpty);
                a_store_that_forgot_is_not_believed: Need::Fault(Fault::RestartEmpty);
            }
            store unknown {
                an_acquire_without_an_answer_can_be_asked_again: Need::Fault(Fault::LoseReplies);
                an_acquire_without_an_answer_can_be_given_up: Need::Fault(Fault::LoseReplies);
                a_renewal_without_an_answer_can_be_repeated: Need::Fault(Fault::LoseReplies);
                a_release_without_an_answer_can_be_repeated: Need::Fault(Fault::LoseReplies);
                a_fence_without_an_answer_changes_nothing: Need::Fault(Fault::LoseReplies);
                a_claim_that_arrives_after_its_release_leaves_nothing: Nothing;
                a_claim_that_arrives_after_its_release_takes_no_place: Nothing;
                a_try_without_an_answer_leaves_nothing: Need::Fault(Fault::LoseReplies);
                a_wait_survives_lost_answers: Need::Fault(Fault::LoseReplies);
            }
            store waiting {
                busy_names_the_holder_and_what_remains: Nothing;
                without_a_wish_no_place_is_kept: Nothing;
                a_try_is_answered_at_once: Nothing;
                a_release_wakes_a_waiter_long_before_the_ttl: Nothing;
                a_wait_that_is_over_names_the_holder: Nothing;
                a_cancelled_waiter_leaves_nothing: Nothing;
                waiters_are_served_in_their_order: Queue;
                nobody_overtakes_the_queue: Queue;
                asking_again_keeps_the_place: Queue;
                a_place_that_is_not_refreshed_is_skipped: Queue, OwnTtl;
                a_hand_over_that_nobody_takes_goes_on: Queue, OwnTtl;
            }
            store keeping {
                a_kept_lock_is_free_when_its_time_is_over_and_not_before: Ability(Keep);
                keeping_again_never_lengthens_the_time: Ability(Keep);
                the_owner_that_left_has_nothing_of_a_kept_lock: Ability(Keep);
                a_release_ends_the_keeping: Ability(Keep);
                a_waiter_has_a_kept_lock_when_its_time_is_over: Ability(Keep);
                a_guard_is_released_for_later: Ability(Keep);
            }
            store replacing {
                a_lease_is_replaced_in_one_step_past_the_queue: Ability(Replace);
                a_replacement_that_is_asked_again_is_the_same: Ability(Replace);
                only_a_lease_that_is_held_is_replaced: Ability(Replace);
                a_late_replacement_that_was_given_up_is_refused: Ability(Replace);
                the_owner_that_was_replaced_has_nothing: Ability(Replace);
            }
            store latching {
                an_id_counts_once: Latch;
                arrivals_before_the_count_are_counted: Latch;
                another_count_is_refused_and_changes_nothing: Latch;
                a_latch_lasts_for_its_ttl_and_no_longer: Latch;
                an_arrival_re_arms_the_ttl_and_never_shortens_it: Latch;
                a_reset_begins_anew: Latch;
                a_reset_that_is_repeated_ends_one_generation: Latch;
                an_arrival_that_is_repeated_after_a_reset_is_not_counted: Latch;
                a_count_that_is_repeated_after_a_reset_is_not_set: Latch;
                an_arrival_without_an_answer_counts_once: Latch;
                a_lock_of_the_same_name_is_independent: Latch;
                a_waiter_goes_on_when_the_last_one_arrives: Latch;
                a_wait_that_is_over_says_how_many_are_missing: Latch;
                a_waiter_learns_how_its_generation_ended: Latch;
                arrivals_outlive_those_who_arrived: Latch;
            }
            store sharing {
                readers_hold_together_and_never_beside_a_writer: Mode(Shared);
                tokens_rise_over_readers_and_writers: Mode(Shared);
                a_reader_that_asks_again_is_the_same: Mode(Shared), OwnTtl;
                a_reader_acts_for_itself_alone: Mode(Shared);
                a_dead_reader_ends_alone: Mode(Shared), OwnTtl;
                a_dead_reader_ends_at_its_own_end: Mode(Shared), OwnTtl;
                a_waiting_writer_is_not_overtaken: Mode(Shared);
                one_release_serves_all_the_readers_at_the_head: Mode(Shared);
                readers_go_on_when_the_writer_before_them_leaves: Mode(Shared);
                a_late_claim_to_read_leaves_nothing: Mode(Shared);
                a_downgrade_lets_waiting_readers_in_and_no_writer: Mode(Shared), Ability(Replace);
                an_upgrade_is_granted_to_the_only_reader: Mode(Shared), Ability(Replace);
                an_upgrade_beside_another_reader_changes_nothing: Mode(Shared), Ability(Replace);
                a_reader_is_replaced_by_another_owner: Mode(Shared), Ability(Replace);
                each_reader_is_shown_and_revoked_alone: Mode(Shared);
            }
            store permits {
                no_more_than_the_limit_are_held: Mode(Permits);
                slots_are_unique_while_they_are_held: Mode(Permits);
                the_tokens_of_a_slot_rise: Mode(Permits);
                permits_that_are_asked_for_again_are_the_same: Mode(Permits), OwnTtl;
                the_permits_of_a_dead_holder_come_back_at_its_end: Mode(Permits), OwnTtl;
                a_large_request_at_the_head_is_not_overtaken: Mode(Permits);
                one_release_serves_all_that_fit: Mode(Permits);
                another_limit_is_refused_and_changes_nothing: Mode(Permits);
                another_kind_is_refused_and_changes_nothing: Mode(Permits);
                a_late_claim_for_permits_leaves_nothing: Mode(Permits);
                permits_are_given_back_in_part: Mode(Permits), Ability(Replace);
                permits_are_replaced_by_as_many_and_not_by_more: Mode(Permits), Ability(Replace);
                each_holder_is_shown_with_its_slots: Mode(Permits);
            }
            store limits {
                a_raised_limit_serves_those_who_wait: Ability(SetLimit);
                a_lowered_limit_takes_nothing_away: Ability(SetLimit);
                slots_stay_below_the_limit_in_force: Ability(SetLimit);
                a_limit_that_was_replaced_stands_for_the_one_in_force: Ability(SetLimit);
                the_eight_latest_limits_that_were_replaced_are_known: Ability(SetLimit);
                a_limit_that_was_set_outlives_the_holders: Ability(SetLimit);
                a_claim_above_the_limit_is_refused_and_blocks_nobody: Ability(SetLimit);
                a_place_that_a_limit_took_away_is_taken_anew: Ability(SetLimit);
                a_lease_goes_on_under_another_limit: Ability(SetLimit);
                a_limit_can_be_set_again: Ability(SetLimit);
                a_lock_has_no_limit: Ability(SetLimit);
                permits_are_counted: Ability(SetLimit);
                a_deployment_changes_the_limit: Ability(SetLimit);
                a_waiter_that_can_never_be_served_gets_an_error: Ability(SetLimit);
                wrong_limits_are_invalid: Ability(SetLimit);
            }
            store barging {
                a_reader_passes_a_writer_that_waits: Mode(Shared), Ability(Barge);
                a_small_request_passes_a_large_one: Mode(Permits), Ability(Barge);
                a_claim_that_does_not_fit_takes_its_place: Mode(Permits), Ability(Barge);
                those_who_fit_are_served_first: Mode(Shared), Ability(Barge);
                the_option_lets_readers_pass: Mode(Shared), Ability(Barge);
                the_option_lets_small_requests_pass: Mode(Permits), Ability(Barge);
            }
            facade reading {
                readers_exclude_writers_and_not_each_other: Mode(Shared);
                a_mutex_is_the_write_side: Mode(Shared), MutexIsWriteSide;
                racing_readers_and_writers_never_hold_together: Mode(Shared);
                a_writer_that_waits_is_before_later_readers: Mode(Shared);
                the_only_reader_becomes_the_writer: Mode(Shared), Ability(Replace);
                a_reader_beside_others_stays_one: Mode(Shared), Ability(Replace);
                a_downgrade_lets_readers_in_and_no_writer: Mode(Shared), Ability(Replace);
                a_hold_is_changed_again_and_again: Mode(Shared), Ability(Replace);
                a_changed_hold_is_renewed: Mode(Shared), Ability(Replace);
                a_reader_learns_of_its_loss: Mode(Shared);
                closing_ends_readers: Mode(Shared);
            }
            facade semaphores {
                as_many_hold_as_there_are_permits: Mode(Permits);
                tokens_of_each_slot_rise: Mode(Permits);
                several_are_granted_together: Mode(Permits);
                a_large_request_is_not_overtaken: Mode(Permits);
                some_are_given_back: Mode(Permits), Ability(Replace);
                wrong_numbers_are_invalid: Mode(Permits);
                another_limit_is_an_error: Mode(Permits), Ability(SetLimit);
                another_kind_is_an_error: Mode(Permits);
                a_name_is_used_otherwise_right_after_a_drop: Mode(Permits);
                a_holder_learns_of_its_loss: Mode(Permits);
                permits_are_renewed: Mode(Permits), Ability(Replace);
                closing_ends_permits: Mode(Permits);
            }
            facade tickets {
                a_detached_lock_goes_on_under_a_higher_token: Ability(Replace);
                a_ticket_is_adopted_once: Ability(Replace);
                a_ticket_of_a_released_lock_is_over: Ability(Replace);
                those_who_wait_keep_their_places: Ability(Replace);
                a_ticket_that_is_not_adopted_ends_with_its_ttl: Ability(Replace);
                an_adopted_lease_is_renewed: Ability(Replace);
                a_lost_lock_is_not_detached: Ability(Replace);
                an_adoption_survives_lost_answers: Need::Fault(Fault::LoseReplies);
                a_reader_goes_on_beside_others: Mode(Shared), Ability(Replace);
                permits_go_on_with_their_slots: Mode(Permits), Ability(Replace);
                permits_are_not_adopted_under_another_limit: Ability(SetLimit);
            }
            store failure {
                unreachable_is_not_busy: Need::Fault(Fault::Cut);
                an_effect_of_none_is_true: Need::Fault(Fault::Cut);
                an_error_says_what_was_being_done: Need::Fault(Fault::Cut);
                a_client_recovers_by_itself: Need::Fault(Fault::Cut);
                a_waiter_waits_out_an_outage: Need::Fault(Fault::Cut);
                nothing_takes_longer_than_it_may: Need::Fault(Fault::Hang);
                a_client_recovers_from_a_store_that_hung: Need::Fault(Fault::Hang);
                holds_survive_a_restart_with_data: Need::Fault(Fault::RestartWithData);
            }
            facade facades {
                the_other_facade_is_refused: Nothing;
                the_other_facade_is_woken: Nothing;
                both_facades_never_hold_together: Nothing;
                clients_of_one_backend_are_all_told: Nothing;
            }
            facade cross_process {
                processes_exclude_each_other: Processes;
                a_killed_holder_frees_the_lock_after_its_ttl_and_not_before: Processes;
                a_killed_waiter_is_not_waited_for: Processes;
                a_stopped_holder_knows_that_it_lost: Processes;
                a_process_goes_on_with_the_lock_of_another: Processes;
            }
            store ages {
                a_lease_is_as_old_as_its_grant: Inspect, OwnTtl;
                a_replacement_is_as_old_as_the_lease_before_it: Ability(Replace), Inspect;
                a_waiter_is_as_old_as_its_first_claim: Inspect, Queue;
            }
            store truth {
                capabilities_do_not_change: Nothing;
                places_are_given_as_the_capabilities_say: Nothing;
                the_next_in_line_is_told_as_the_capabilities_say: Queue;
                what_was_given_up_first_is_free_first: Nothing;
                requests_for_a_lock_take_effect_in_order_as_the_capabilities_say: Nothing;
                a_holder_is_shown_as_it_is: Inspect;
                waiters_are_shown_in_their_order: Inspect, Queue;
                a_revocation_by_another_token_changes_nothing: Inspect;
                a_holder_learns_who_revoked_its_lease: Inspect;
                listings_are_complete: Inspect;
                what_is_over_is_not_shown: Inspect, OwnTtl;
            }
        }
    };
}

macro_rules! table {
    ([] $($layer:ident $group:ident { $($name:ident: $($need:expr),+;)* })*) => {
        /// All cases, group by group.
        pub const CASES: &[Case] = {
            use Need::{Ability, Inspect, Latch, Mode, Nothing, OwnTtl, Processes, Queue, MutexIsWriteSide};
            use lock_core::Ability::{Barge, Keep, Replace, SetLimit};
            use lock_core::ModeKind::{Permits, Shared};
            &[$($(Case {
                path: concat!(stringify!($group), "::", stringify!($name)),
                needs: &[$($need),+],
                check: cases::$group::$name,
            },)*)*]
        };
    };
}

__cases!(table []);

/// The case with this path, such as `exclusion::names_are_independent`.
///
/// # Panics
/// If there is none.
pub fn case(path: &str) -> &'static Case {
    CASES.iter().find(|case| case.path == path).unwrap_or_else(|| panic!("there is no case {path}"))
}

impl fmt::Debug for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Case").field("path", &self.path).field("needs", &self.needs).finish_non_exhaustive()
    }
}
