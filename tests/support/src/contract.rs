//! The contract of the store ports, as cases that every store passes.
//!
//! A store's own tests give a function that opens a fresh [`Fixture`] and run
//! `store_contract!(crate::open)`: one test for each case, so a failure names the store and the
//! case.
pub mod audit;
pub mod breaches;
pub mod caches;
pub mod clock;
pub mod commitments;
pub mod customer_breaches;
pub mod customers;
pub mod deliveries;
pub mod events;
pub mod exports;
pub mod figures;
pub mod fixture;
pub mod gate;
pub mod gate_breaches;
pub mod gate_caches;
pub mod gate_races;
mod gate_world;
pub mod history;
pub mod idempotency;
pub mod lane;
pub mod ledger;
pub mod lists;
pub mod master_keys;
pub mod outages;
pub mod owners;
pub mod previews;
pub mod provisioning;
pub mod quotes;
pub mod races;
pub mod rail_breaches;
pub mod rails;
pub mod refusals;
mod seeded;
pub mod sessions;
mod standing;
pub mod throughput;
pub mod trades;
pub mod upgrades;
pub mod velocity;
mod world;

pub use fixture::{Fixture, GateFixture, GatePorts, IDEMPOTENCY_TTL, ManualClock, Ports, WINDOW};

/// One test for every case of the contract, on stores that `$open` opens.
#[macro_export]
macro_rules! store_contract {
    ($open:path) => {
        $crate::__cases! { $open;
            quotes: an_opened_quote_reads_back, what_was_seen_has_the_stores_instant,
                a_foreign_quote_is_absent, reject_succeeds_once, a_consumed_quote_is_not_rejected,
                consume_and_reject_have_one_winner, expired_is_refused_at_the_exact_millisecond,
                behind_writes_waits_for_them, a_quote_needs_a_partner,
                old_quotes_that_were_never_executed_are_forgotten,
                a_batch_of_quotes_is_all_or_none, every_field_of_a_quote_reads_back;
            lane: a_purchase_reserves_fiat_and_a_sale_crypto,
                a_consumed_quote_has_its_trade_under_every_key,
                one_quote_has_one_trade_however_many_ask, a_balance_never_goes_below_zero,
                without_the_engines_hold_nothing_happens, a_quote_of_another_pool_is_unknown,
                a_sale_must_be_enabled, a_revoked_key_is_refused_inside_the_lane,
                an_entitlement_withdrawn_is_refused_inside_the_lane, a_batch_is_of_one_mode,
                a_batch_is_written_wholly_or_not_at_all, a_batch_equals_its_commands_one_by_one,
                a_refusal_costs_its_own_command_alone;
            idempotency: a_look_knows_what_a_transact_left,
                the_same_key_for_another_request_is_refused,
                a_key_used_twice_in_one_batch_counts_once, keys_never_meet_across_partners,
                an_expired_record_is_overwritten, a_refusal_leaves_its_key_free,
                a_sweep_deletes_expired_records_of_its_own, a_record_counts_as_long_as_it_says;
            velocity: the_cap_may_be_reached_and_not_passed, one_batch_never_passes_the_cap,
                a_trade_leaves_with_the_window, what_never_settled_stops_counting,
                what_had_left_the_window_is_not_subtracted_twice, a_longer_window_counts_again,
                a_cap_set_later_finds_what_was_traded, a_total_reads_back,
                a_shorter_window_lets_trades_go_at_the_millisecond, refusals_move_the_window_too,
                what_fails_before_the_total_moves_on_is_taken_off_once,
                the_cap_is_exact_to_the_last_unit, partners_and_modes_have_totals_of_their_own,
                a_lagging_total_moves_on_and_refuses_nothing,
                a_cap_set_after_a_pause_counts_the_window_alone, a_step_reads_no_more_than_its_limit;
            trades: a_trade_reads_back_in_every_state, a_foreign_trade_is_absent,
                a_claim_needs_the_attempt_before, a_stale_token_changes_nothing,
                a_step_happens_once, concurrent_reports_have_one_winner,
                a_step_the_rules_do_not_know_is_refused, a_settlement_never_changes,
                a_purchase_without_the_gate_reserves_nothing;
            lists: pages_lose_and_repeat_nothing, every_filter_finds_its_trades,
                bounds_let_in_their_own_instant, an_unknown_cursor_gives_an_empty_page,
                a_walk_sees_what_was_there_when_it_began;
            ledger: entries_chain_from_the_first,
                accounts_are_each_partners_modes_and_currencies, pages_follow_the_accounts_numbers,
                bounds_of_the_ledger_let_in_their_own_instant,
                an_account_that_moved_on_is_not_written_over, impossible_entries_are_refused,
                a_deposit_counts_once_per_reference, a_crypto_receipt_keeps_its_network,
                a_dropped_transaction_leaves_nothing, an_entry_needs_a_partner,
                every_end_of_a_trade_moves_its_value_once, the_largest_balance_is_kept_exactly,
                a_deposit_needs_its_entry, a_refused_entry_is_not_half_there;
            events: an_end_is_reported_once, a_foreign_event_is_absent,
                a_delivery_needs_an_endpoint, every_end_says_so_and_nothing_else_does,
                an_id_is_used_once, events_of_one_object_come_in_their_order,
                an_endpoint_under_a_new_id_takes_over_what_waits;
            deliveries: a_claim_brings_what_an_attempt_needs, a_lease_hides_until_it_is_over,
                a_stale_token_changes_nothing, a_late_report_counts_while_nobody_else_has_claimed,
                a_failure_is_recorded_and_waits, an_object_is_delivered_in_order,
                a_dead_letter_frees_the_later_ones, one_that_failed_itself_keeps_its_own_wait,
                a_busy_endpoint_leaves_room_for_others, the_queue_is_counted,
                two_workers_never_hold_one_delivery,
                what_is_handed_back_is_due_at_once, a_claim_sees_the_endpoint_as_it_is_now,
                modes_and_services_have_queues_of_their_own, a_commit_that_queued_wakes,
                concluding_what_is_not_there_changes_nothing;
            exports: trades_come_in_their_order_and_once, a_window_has_its_start_and_not_its_end,
                entries_of_every_currency_come_in_their_order, a_receipt_says_where_it_came_in,
                an_export_is_of_one_moment, exports_are_each_partners_and_modes;
            owners: deposits_have_one_owner_per_mode, deposits_can_be_exchanged,
                a_keys_label_and_expiry_read_back, last_uses_only_move_forward;
            provisioning: pools_read_back_in_order, partners_read_back,
                profiles_are_replaced_wholly, origins_are_those_of_active_partners,
                endpoints_are_replaced_with_their_secrets,
                keys_are_listed_the_oldest_first, a_keys_hash_is_unique_in_all_modes,
                a_key_is_revoked_once, a_key_is_found_with_its_partner,
                a_partner_without_pools_has_an_absent_profile, every_change_raises_the_version,
                dropped_provisioning_leaves_nothing, the_first_master_key_stays,
                an_open_store_is_ready, a_reopened_store_has_everything;
            caches: versions_never_return_after_a_restore,
                transact_uses_new_cap_after_five_seconds_under_a_repeated_version;
            clock: the_clock_never_runs_backwards, the_clock_goes_on_where_it_stopped,
                what_has_expired_stays_expired_when_the_clock_is_set_back,
                no_process_precedes_another, nothing_is_traded_on_a_clock_that_stands_still,
                jump_of_the_clock_stores_nothing_until_it_is_accepted,
                restart_does_not_accept_a_jump_of_the_clock,
                jump_that_was_corrected_leaves_no_trace;
            commitments: what_may_come_back_is_counted,
                more_than_an_account_could_hold_is_counted, a_sale_takes_its_room,
                a_slice_reads_no_more_than_its_limit, a_recount_keeps_its_progress,
                a_recount_among_moving_trades_stays_an_upper_bound;
            history: the_first_transact_after_a_pause_takes_one_step,
                catching_up_goes_on_in_bounded_steps, a_partner_without_a_cap_forgets_nothing,
                a_credit_reads_no_trade_while_there_is_room;
            audit: a_fresh_database_is_clean, everything_the_rules_do_is_clean,
                what_the_cap_allowed_then_is_no_breach;
            breaches: every_planted_breach_is_found_under_its_name,
                every_invariant_has_a_planted_breach, a_breach_is_described_with_its_row,
                many_breaches_are_counted_and_twenty_described;
            figures: trades_are_counted_by_where_they_stand,
                reserved_trades_of_other_engines_are_counted,
                reserved_trades_without_an_engine_are_claimed_once;
            races: raced_batches_spend_no_more_than_there_is, raced_batches_never_pass_the_cap,
                of_raced_rejections_one_wins, of_raced_claims_of_one_attempt_one_wins,
                raced_credits_all_count, of_raced_deposits_under_one_reference_one_counts,
                readers_see_whole_states;
            refusals: short_funds_and_the_engine_leave_nothing_behind,
                another_pool_leaves_nothing_behind,
                a_sale_that_is_not_enabled_leaves_nothing_behind,
                a_revoked_key_leaves_nothing_behind, a_key_nobody_has_leaves_nothing_behind,
                a_suspended_organization_leaves_nothing_behind,
                a_lost_entitlement_leaves_nothing_behind, a_change_that_was_dropped_denies_nobody,
                a_closed_quote_leaves_nothing_behind, the_cap_leaves_nothing_behind,
                a_key_is_scoped_by_partner_and_route_and_not_by_credential;
        }
    };
}

/// One test for every case of the gate's contract, on stores that `$open` opens.
#[macro_export]
macro_rules! gate_contract {
    ($open:path) => {
        $crate::__cases! { $open;
            sessions: a_session_reads_back_field_by_field, a_session_ends_once_and_in_time,
                a_foreign_session_is_absent, pages_of_sessions_follow_each_other,
                what_is_overdue_is_found, transactions_read_back_and_one_pays,
                a_dropped_gate_transaction_leaves_nothing, a_session_says_each_thing_once;
            gate: a_kept_answer_is_overwritten_once_expired,
                a_tally_that_moved_on_is_not_written_over, an_old_revision_of_branding_is_refused,
                a_gate_profile_comes_with_the_key, a_dead_letter_is_replayed_and_no_other,
                a_replay_beside_workers_is_delivered_once;
            gate_races: of_raced_creates_under_one_key_one_counts,
                raced_creates_stay_within_the_quota, of_retries_beside_a_sweep_one_counts,
                of_raced_ends_one_happens,
                raced_changes_of_branding_all_count;
            gate_caches: gate_uses_new_entitlements_after_five_seconds_under_a_repeated_version;
            master_keys: every_sealed_value_is_paged_and_replaced_as_it_was_read,
                older_keys_are_retired_only_by_who_made_the_current_one;
            customers: a_customer_reads_back_as_it_was_kept,
                what_a_customer_is_found_by_stays_its_own,
                an_old_revision_of_a_customer_is_refused, pages_of_customers_follow_each_other,
                of_raced_creates_of_one_email_one_counts, raced_changes_of_a_customer_all_count;
            previews: a_preview_reads_back_and_is_used_once_and_in_time,
                of_raced_sessions_of_one_preview_one_counts,
                a_preview_that_may_still_be_used_is_not_swept;
            customer_breaches: every_breach_of_customers_is_found_under_its_name;
            rails: a_signed_quote_reads_back_and_is_consumed_once_and_in_time,
                a_rail_record_reads_back_and_ends_once, of_raced_redemptions_one_counts,
                of_raced_settlements_one_happens,
                concurrent_redemptions_of_one_session_have_one_winner,
                session_waits_for_its_payment_and_completes_after_its_deadline,
                concurrent_redemption_and_end_of_one_session_have_one_winner,
                payments_from_before_the_rule_settle_and_their_session_completes_once;
            rail_breaches: every_breach_of_rails_is_found_under_its_name;
            gate_breaches: every_breach_of_the_gate_is_found_under_its_name;
        }
    };
}

/// The tests of [`store_contract!`] and [`gate_contract!`].
#[doc(hidden)]
#[macro_export]
macro_rules! __cases {
    ($open:path; $($noun:ident: $($case:ident),+;)+) => { $(
        mod $noun {
            $(
                #[tokio::test]
                async fn $case() {
                    $crate::contract::$noun::$case($open().await).await;
                }
            )+
        }
    )+ };
}

#[cfg(test)]
mod tests {
    /// A case that is not in the list above is run by nobody.
    #[test]
    fn every_case_is_in_the_list() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/src/contract");
        let list = std::fs::read_to_string(format!("{folder}.rs")).unwrap();
        let listed = |noun: &str, case: &str| {
            let mut nouns = list.split(';');
            let cases = nouns.find_map(|part| part.trim().strip_prefix(&format!("{noun}:")));
            cases.is_some_and(|cases| cases.split(',').any(|listed| listed.trim() == case))
        };
        let mut found = 0;
        for file in std::fs::read_dir(folder).unwrap() {
            let path = file.unwrap().path();
            let noun = path.file_stem().unwrap().to_str().unwrap();
            let text = std::fs::read_to_string(&path).unwrap();
            for line in text.lines() {
                let case = line.strip_prefix("pub async fn ").and_then(|rest| {
                    let (case, arguments) = rest.split_once('(')?;
                    let fixtures = [": impl Fixture) {", ": impl GateFixture) {"];
                    let of_ours = fixtures.iter().any(|end| arguments.ends_with(end));
                    of_ours.then_some(case)
                });
                if let Some(case) = case {
                    found += 1;
                    assert!(listed(noun, case), "{noun}::{case} is not in the list");
                }
            }
        }
        assert!(found > 100, "{found}");
    }
}
