//! What the API server asks before it stores or deletes a Database: all that no schema can say.
//!
//! The controller repeats every check, so that a webhook that does not answer costs an early word and nothing else.

use windlass::webhook::{FailurePolicy, Request, Validator, Verdict, Webhook};

use super::{api::Database, build};

/// The rules.
#[derive(Clone, Copy, Debug)]
pub struct Rules;

/// The webhook that applies them. It is not asked for what it could not forbid.
pub(super) fn webhook() -> Webhook {
    Webhook::validating(Rules).on_delete().failure_policy(FailurePolicy::Ignore)
}

impl Validator for Rules {
    type Resource = Database;

    async fn validate_create(&self, db: &Database, _: &Request) -> Verdict {
        let mut verdict = match build::check(db) {
            Ok(()) => Verdict::allow(),
            Err(problem) => Verdict::deny(problem.message),
        };
        if build::is_out_of_life(db) {
            verdict
                .warn(format!("PostgreSQL {} gets no more fixes; choose a newer version", db.spec.version));
        }
        verdict
    }

    async fn validate_update(&self, old: &Database, new: &Database, request: &Request) -> Verdict {
        if old.spec == new.spec {
            // Labels and finalizers of an object that is older than a rule must stay changeable.
            return Verdict::allow();
        }
        // The status of the stored object: what a client sends of it is not taken.
        let with_status = Database { status: old.status.clone(), ..new.clone() };
        if let Err(problem) = build::check_version(&with_status) {
            return Verdict::deny(problem.message);
        }
        match (build::check(old), build::check(new)) {
            // Older than a rule, and no worse than it was: the rest must stay changeable, and the controller tells.
            (Err(before), Err(now)) if before == now => {
                let mut verdict = Verdict::allow();
                verdict.warn(now.message);
                verdict
            }
            _ => self.validate_create(new, request).await,
        }
    }

    async fn validate_delete(&self, db: &Database, _: &Request) -> Verdict {
        if db.spec.deletion_protection {
            return Verdict::deny("the Database is protected; set spec.deletionProtection to false first");
        }
        Verdict::allow()
    }
}
