//! The loop against an API server: exact counts of writes, and what happens when things go wrong.
//!
//! Every scenario runs twice: against the embedded API server on a paused clock, and, ignored unless asked for,
//! against a real cluster: `KUBECONFIG=… cargo test -p windlass --test it -- --ignored`.

#![expect(clippy::unwrap_used, unreachable_pub, reason = "all of this is test code")]

mod counting;
mod fixture;
mod gadget;
mod pool;
mod scenarios;

/// Makes two tests of each scenario.
macro_rules! scenarios {
    ($($name:ident),* $(,)?) => {
        mod embedded {
            $(
                #[tokio::test(start_paused = true)]
                async fn $name() {
                    crate::fixture::embedded(crate::scenarios::$name).await;
                }
            )*
        }

        mod real {
            $(
                #[tokio::test]
                #[ignore = "needs a real cluster"]
                async fn $name() {
                    crate::fixture::real(crate::scenarios::$name).await;
                }
            )*
        }
    };
}

scenarios! {
    writes_are_the_least_that_can_be,
    unwanted_children_go_and_drift_is_repaired,
    a_foreign_object_of_the_same_name_is_left_alone,
    a_panic_a_hang_and_a_deletion_are_survived,
    a_pool_never_creates_a_member_too_many,
    a_finalizer_holds_the_object_until_the_cleanup_is_done,
    a_paused_object_is_left_alone,
    a_standby_follows_a_release_a_death_and_a_theft,
}
