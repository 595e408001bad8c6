//! The contract of the store ports, as cases that every store passes.
//!
//! A store's tests pass a function that opens a fresh [`Fixture`] to `store_contract!(crate::open)`. The macro makes one test per
//! case, so a failure names the store and the case.
pub mod audit;
pub mod breaches;
pub mod caches;
pub mod cancels;
pub mod clock;
pub mod contingent_credits;
pub mod customer_breaches;
pub mod customer_forms;
pub mod customers;
pub mod deliveries;
pub mod due;
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
pub mod ledger;
pub mod lists;
pub mod master_keys;
pub mod outages;
pub mod owners;
mod partner_rows;
pub mod payment_races;
pub mod payments;
pub mod previews;
pub mod provisioning;
pub mod quotes;
pub mod races;
pub mod rail_breaches;
pub mod rails;
pub mod references;
pub mod refusals;
mod seeded;
pub mod sessions;
pub mod throughput;
pub mod trades;
pub mod transact_batch;
pub mod unreadable;
pub mod upgrades;
pub mod velocity;
pub mod verification_breaches;
pub mod verifications;
mod world;

pub use fixture::{Fixture, GateFixture, GatePorts, IDEMPOTENCY_TTL, ManualClock, Ports, WINDOW};

/// One test for every case of the contract, on stores that `$open` opens.
#[macro_export]
macro_rules! store_contract {
    ($open:path) => {
        $crate::__cases! { $open;
            quotes: opened_quote_reads_back, reads_carry_store_instant, foreign_quote_is_absent,
                reject_succeeds_once, consumed_quote_cannot_be_rejected,
                consume_and_reject_have_one_winner, expired_quote_is_refused_at_exact_millisecond,
                read_behind_writes_waits_for_open_transaction, quote_insert_requires_partner,
                old_unexecuted_quotes_are_deleted, quote_batch_is_atomic,
                every_quote_field_reads_back;
            transact_batch: purchase_reserves_fiat_and_sale_crypto,
                consumed_quote_returns_its_trade_under_every_key,
                concurrent_transacts_of_quote_open_one_trade, balance_never_goes_below_zero,
                transact_without_engine_hold_changes_nothing, quote_of_another_pool_is_unknown,
                sale_requires_entitlement, revoked_key_is_refused_in_batch,
                withdrawn_entitlement_is_refused_in_batch, batch_of_two_modes_is_refused,
                transact_batch_is_atomic, batch_equals_its_commands_one_by_one,
                refusal_affects_its_own_command_only;
            idempotency: snapshot_shows_result_of_transact,
                reused_key_with_other_request_is_refused, key_used_twice_in_batch_has_one_effect,
                keys_are_separate_between_partners, expired_record_is_overwritten,
                refusal_stores_no_record, sweep_deletes_only_its_own_expired_records,
                record_expires_by_its_own_expiry;
            velocity: cap_may_be_reached_but_not_exceeded, batch_never_exceeds_cap,
                trade_stops_counting_at_window_end, unsettled_trade_stops_counting_when_it_ends,
                failure_outside_window_is_not_subtracted_again,
                longer_window_counts_earlier_trades_again, later_cap_counts_earlier_trades,
                total_reads_back, shorter_window_drops_trades_at_exact_millisecond,
                refusals_move_window, late_failure_is_subtracted_once, cap_is_exact_to_last_unit,
                partners_and_modes_have_separate_totals,
                lagging_total_catches_up_and_refuses_nothing,
                cap_set_after_pause_counts_window_only, step_reads_at_most_its_limit;
            trades: trade_reads_back_in_every_state, foreign_trade_is_absent,
                claim_requires_previous_attempt, stale_token_changes_nothing, step_is_applied_once,
                concurrent_reports_have_one_winner, unknown_step_is_refused,
                settlement_never_changes, purchase_without_balance_gate_reserves_nothing;
            lists: pages_contain_each_trade_once, every_filter_returns_matching_trades,
                list_bounds_are_inclusive, unknown_cursor_returns_empty_page,
                paging_excludes_later_trades;
            ledger: entries_chain_from_first, accounts_are_separate_by_partner_mode_and_currency,
                pages_follow_account_numbers, ledger_bounds_are_inclusive,
                changed_account_is_not_overwritten, impossible_entries_are_refused,
                deposit_is_credited_once_per_reference, crypto_receipt_reads_back_network,
                dropped_transaction_writes_nothing, entry_insert_requires_partner,
                every_trade_end_moves_value_once, largest_balance_reads_back_exactly,
                deposit_requires_entry, refused_entry_writes_nothing;
            references: deposit_is_found_in_every_spelling,
                references_of_earlier_versions_become_comparable;
            events: trade_end_emits_one_event, foreign_event_is_absent, delivery_requires_endpoint,
                only_trade_ends_emit_events, event_id_is_used_once,
                events_of_object_are_claimed_in_order,
                endpoint_with_new_id_inherits_queued_deliveries;
            deliveries: claim_returns_data_of_attempt, lease_hides_delivery_until_expiry,
                stale_token_changes_nothing, late_report_counts_until_next_claim,
                failure_is_recorded_with_retry_time, object_events_are_delivered_in_order,
                dead_letter_unblocks_later_events, failed_delivery_keeps_own_retry_time,
                busy_endpoint_leaves_capacity_for_others, queue_stats_count_deliveries,
                delivery_is_leased_to_one_worker, released_delivery_is_due_immediately,
                claim_returns_current_endpoint, modes_and_services_have_separate_queues,
                commit_with_delivery_wakes_worker, concluding_absent_delivery_changes_nothing;
            unreadable: unreadable_delivery_is_left_out, unreadable_secret_hides_no_other_endpoint,
                unreadable_row_fails_its_page_and_its_export;
            exports: trades_are_exported_once_in_order,
                export_window_includes_start_and_excludes_end,
                entries_of_every_currency_are_exported_in_order, exported_receipt_has_network,
                export_reads_one_snapshot, exports_are_separate_by_partner_and_mode;
            owners: deposits_have_one_owner_per_mode, deposits_can_be_exchanged,
                spellings_of_one_deposit_have_one_owner, deposits_shared_before_the_rule_stay,
                key_label_and_expiry_read_back, last_uses_only_move_forward,
                text_of_older_publishable_key_is_stored_once,
                newest_publishable_key_has_a_stored_text,
                key_of_token_is_found_for_its_partner_only;
            provisioning: pools_read_back_in_order, partners_read_back,
                profiles_are_replaced_completely, origins_list_active_partners_only,
                endpoints_are_replaced_with_their_secrets, keys_are_listed_oldest_first,
                key_hash_is_unique_across_modes, key_is_revoked_once,
                key_lookup_returns_its_partner, partner_without_pools_has_absent_profile,
                every_change_raises_version, dropped_provisioning_writes_nothing,
                first_master_key_is_kept, open_store_is_ready, reopened_store_has_everything;
            caches: versions_never_repeat_after_restore,
                transact_uses_new_cap_after_five_seconds_under_repeated_version;
            clock: clock_never_runs_backwards, clock_resumes_after_newest_stored_instant,
                expired_quote_stays_expired_when_clock_is_set_back,
                clock_never_precedes_another_process, stopped_clock_prevents_trading,
                clock_jump_prevents_writes_until_accepted, restart_does_not_accept_clock_jump,
                corrected_clock_jump_leaves_no_trace;
            contingent_credits: contingent_credits_count_possible_returns,
                contingent_credits_exceed_account_limit_without_overflow,
                sale_requires_room_for_its_return, slice_reads_at_most_its_limit,
                recount_progress_reads_back, recount_during_trading_stays_upper_bound;
            history: first_transact_after_pause_takes_one_step, catch_up_runs_in_bounded_steps,
                partner_without_cap_keeps_window_start, credit_reads_no_trade_below_limit;
            audit: fresh_database_has_no_breach, permitted_operations_cause_no_breach,
                trades_under_earlier_cap_are_no_breach;
            breaches: every_planted_breach_is_reported_by_name, every_invariant_has_planted_breach,
                breach_is_reported_with_its_row, all_breaches_are_counted_and_twenty_described;
            figures: trades_are_counted_by_status, reserved_trades_of_other_engines_are_counted,
                reserved_trades_without_engine_are_claimed_once,
                trades_of_other_engines_are_counted_until_return_window_ends;
            races: concurrent_batches_never_overspend, concurrent_batches_never_exceed_cap,
                concurrent_rejections_have_one_winner, concurrent_claims_of_attempt_have_one_winner,
                concurrent_credits_all_count, concurrent_deposits_under_one_reference_count_once,
                concurrent_readers_see_committed_states;
            refusals: refusal_for_funds_or_engine_changes_nothing,
                refusal_for_other_pool_changes_nothing, refusal_of_disabled_sale_changes_nothing,
                refusal_of_revoked_key_changes_nothing, refusal_of_unknown_key_changes_nothing,
                refusal_of_suspended_organization_changes_nothing,
                refusal_for_lost_entitlement_changes_nothing,
                uncommitted_change_refuses_no_transact, refusal_of_closed_quote_changes_nothing,
                refusal_by_cap_changes_nothing, key_scope_is_partner_and_route_without_credential;
        }
    };
}

/// One test for every case of the gate's contract, on stores that `$open` opens.
#[macro_export]
macro_rules! gate_contract {
    ($open:path) => {
        $crate::__cases! { $open;
            sessions: session_reads_back_field_by_field, session_ends_once_before_its_deadline,
                foreign_session_is_absent, session_pages_are_contiguous,
                unreadable_session_fails_its_page,
                overdue_sessions_are_listed, transactions_read_back_and_one_pays,
                dropped_gate_transaction_writes_nothing, session_emits_each_event_once;
            gate: stored_response_is_overwritten_after_expiry, changed_tally_is_not_overwritten,
                stale_branding_revision_is_refused, key_lookup_returns_gate_profile,
                only_dead_letter_is_replayed, delivery_pages_are_contiguous_for_every_status,
                replay_with_concurrent_workers_is_delivered_once;
            gate_races: concurrent_creates_under_one_key_count_once,
                concurrent_creates_stay_within_quota, retries_with_concurrent_sweep_count_once,
                concurrent_ends_have_one_winner, concurrent_branding_changes_all_count;
            gate_caches: gate_uses_new_entitlements_after_five_seconds_under_repeated_version;
            master_keys: sealed_values_are_paged_and_replaced_if_unchanged,
                older_keys_are_retired_only_by_creator_of_current_key;
            customers: customer_reads_back, blind_indexes_belong_to_one_customer,
                stale_customer_revision_is_refused, customer_pages_are_contiguous,
                customers_of_earlier_versions_are_found_by_each_spelling,
                concurrent_creates_of_one_email_count_once, concurrent_customer_changes_all_count;
            customer_forms: customers_without_forms_are_read_in_pages,
                form_is_stored_once_and_changes_nothing_else,
                changed_customer_gets_no_form_of_its_earlier_state;
            previews: preview_reads_back_and_is_used_once_before_expiry,
                concurrent_sessions_with_one_preview_count_once, usable_preview_is_not_swept;
            customer_breaches: every_customer_breach_is_reported_by_name;
            rails: signed_quote_reads_back_and_is_consumed_once_before_expiry,
                rail_record_reads_back_and_ends_once, woken_record_is_due_at_once_and_keeps_its_lease,
                concurrent_redemptions_count_once,
                concurrent_settlements_have_one_winner,
                concurrent_redemptions_of_session_have_one_winner,
                session_waits_for_its_payment_and_completes_after_its_deadline,
                concurrent_redemption_and_end_of_session_have_one_winner,
                payments_older_than_rule_settle_and_session_completes_once;
            payment_races: quote_and_payment_at_once_have_one_winner,
                payment_and_expiry_at_once_have_one_winner,
                giving_up_and_settlement_at_once_have_one_winner,
                widget_and_rails_of_server_at_once_pay_session_once;
            payments: session_has_one_quote_that_can_be_paid,
                payment_is_refused_after_its_token_or_key_has_ended,
                payment_is_refused_while_its_partner_may_not_use_gate,
                concurrent_payments_of_session_have_one_winner,
                key_of_payment_counts_for_its_session_only,
                payout_account_is_sealed_and_erased_after_thirty_days,
                swap_is_stored_whole_and_paid_once;
            cancels: cancel_and_poll_have_one_outcome_in_each_order,
                concurrent_cancel_and_settlement_have_one_winner;
            due: overdue_sessions_are_read_partner_by_partner, due_payments_are_read_partner_by_partner,
                due_verifications_are_read_partner_by_partner, unreadable_row_hides_no_other_due_row;
            rail_breaches: every_rail_breach_is_reported_by_name;
            verifications: verification_reads_back_and_ends_once,
                concurrent_starts_and_refusals_emit_one_event,
                concurrent_polls_of_verification_have_one_winner;
            verification_breaches: every_verification_breach_is_reported_by_name;
            gate_breaches: every_gate_breach_is_reported_by_name;
        }
    };
}

/// The tests of [`store_contract!`] and [`gate_contract!`].
#[doc(hidden)]
#[macro_export]
macro_rules! __cases {
    ($open:path; $($entity:ident: $($case:ident),+;)+) => { $(
        mod $entity {
            $(
                #[tokio::test]
                async fn $case() {
                    $crate::contract::$entity::$case($open().await).await;
                }
            )+
        }
    )+ };
}

#[cfg(test)]
mod tests {
    /// A case that is not in the list above would never run.
    #[test]
    fn every_case_is_in_the_list() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/src/contract");
        let list = std::fs::read_to_string(format!("{folder}.rs")).unwrap();
        let listed = |entity: &str, case: &str| {
            let mut entities = list.split(';');
            let cases = entities.find_map(|part| part.trim().strip_prefix(&format!("{entity}:")));
            cases.is_some_and(|cases| cases.split(',').any(|listed| listed.trim() == case))
        };
        let mut found = 0;
        for file in std::fs::read_dir(folder).unwrap() {
            let path = file.unwrap().path();
            let entity = path.file_stem().unwrap().to_str().unwrap();
            let text = std::fs::read_to_string(&path).unwrap();
            for line in text.lines() {
                let case = line.strip_prefix("pub async fn ").and_then(|rest| {
                    let (case, arguments) = rest.split_once('(')?;
                    let fixtures = [": impl Fixture) {", ": impl GateFixture) {"];
                    let takes_fixture = fixtures.iter().any(|end| arguments.ends_with(end));
                    takes_fixture.then_some(case)
                });
                if let Some(case) = case {
                    found += 1;
                    assert!(listed(entity, case), "{entity}::{case} is not in the list");
                }
            }
        }
        assert!(found > 100, "{found}");
    }
}
