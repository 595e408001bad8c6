//! The contract of the queue of deliveries.

mod fixture;

macro_rules! cases {
    ($($case:ident)*) => { $(
        #[tokio::test]
        async fn $case() {
            store_contract::deliveries::$case(fixture::open().await).await;
        }
    )* };
}
cases! {
a_claim_brings_what_an_attempt_needs a_lease_hides_until_it_is_over a_stale_token_changes_nothing
a_late_report_counts_while_nobody_else_has_claimed a_failure_is_recorded_and_waits an_object_is_delivered_in_order
a_dead_letter_frees_the_later_ones one_that_failed_itself_keeps_its_own_wait a_busy_endpoint_leaves_room_for_others
two_workers_never_hold_one_delivery what_is_handed_back_is_due_at_once a_claim_sees_the_endpoint_as_it_is_now
modes_and_services_have_queues_of_their_own a_commit_that_queued_wakes concluding_what_is_not_there_changes_nothing
}
