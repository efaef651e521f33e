//! The loop against an API server: exact counts of writes, and what happens when things go wrong.
//!
//! Every scenario runs twice: against the embedded API server on a paused clock, and, ignored unless asked for,
//! against a real cluster: `KUBECONFIG=… cargo test -p windlass --test it -- --ignored`.

#![expect(clippy::unwrap_used, unreachable_pub, reason = "all of this is test code")]

mod appliers;
mod beside;
mod counting;
mod dynamic;
mod fixture;
mod gadget;
mod intents;
mod keepers;
mod outage;
mod pool;
mod readme;
mod restores;
mod scenarios;
mod scoped;
mod silence;
mod sizes;
mod stalls;
mod terms;
mod truth;
mod widget;
mod wrapped;

/// Makes two tests of each scenario.
macro_rules! scenarios {
    ($($module:ident: $($name:ident),* ;)*) => {
        mod embedded {
            $($(
                #[tokio::test(start_paused = true)]
                async fn $name() {
                    crate::fixture::embedded(crate::scenarios::$module::$name).await;
                }
            )*)*
        }

        mod real {
            $($(
                #[tokio::test]
                #[ignore = "needs a real cluster"]
                async fn $name() {
                    crate::fixture::real(crate::scenarios::$module::$name).await;
                }
            )*)*
        }
    };
}

scenarios! {
    core:
        writes_are_the_least_that_can_be,
        unwanted_children_go_and_drift_is_repaired,
        a_foreign_object_of_the_same_name_is_left_alone,
        a_panic_a_hang_and_a_deletion_are_survived,
        no_delay_and_no_panic_outside_of_a_run_ends_the_operator,
        a_pool_never_creates_a_member_too_many,
        a_paused_object_is_left_alone,
        a_standby_follows_a_release_a_death_and_a_theft,
        a_second_reconcile_writes_nothing,
        a_child_that_fails_does_not_hold_up_the_others;
    adoption:
        pruning_deletes_only_what_was_applied,
        what_a_former_manager_has_set_goes_when_it_is_not_wanted,
        an_object_that_somebody_has_just_made_is_not_adopted,
        a_child_that_only_the_cache_misses_is_not_taken_for_foreign;
    apply:
        nothing_is_sent_only_when_nothing_would_change;
    detached:
        a_child_without_a_reference_is_repaired_pruned_and_deleted_with_its_owner;
    finalizers:
        a_finalizer_holds_the_object_until_the_cleanup_is_done,
        a_run_that_began_before_the_deletion_lets_nothing_go;
    kinds:
        an_optional_kind_may_come_and_go,
        the_reconciled_kind_may_vanish_and_return,
        an_operator_without_its_kind_says_what_is_missing,
        an_object_that_cannot_be_read_stops_no_other;
    dynamic:
        a_kind_known_at_run_time_is_reconciled_like_any_other,
        metadata_alone_is_enough_to_own,
        watches_come_and_go_while_the_controller_runs;
    status:
        two_controllers_of_one_status_lose_nothing,
        a_status_made_from_an_older_copy_takes_nothing_away,
        a_kind_without_a_status_subresource_is_told;
    scope:
        several_namespaces_are_watched_and_no_other,
        a_dry_run_writes_nothing;
    sight:
        a_child_comes_back_or_its_author_is_told,
        a_child_in_a_namespace_that_is_not_watched_is_an_error;
    watches:
        a_watch_that_is_refused_is_an_error_and_is_tried_again,
        an_event_that_cannot_be_read_leads_to_a_list,
        a_name_that_becomes_free_is_taken,
        two_indexes_of_one_name_do_not_start,
        what_a_stream_adds_is_counted;
    selectors:
        a_cached_list_selects_as_the_server_does;
}
