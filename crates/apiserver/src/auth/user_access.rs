//! Who answers the expressions of admission that ask what somebody may do.

use std::sync::Arc;

use super::{
    Identity,
    rbac::{Action, Authorizer},
};
use crate::{
    schema::cel::{Access, AccessCheck},
    store::Store,
};

/// The sender of a request, and the roles of the store.
#[derive(Debug)]
pub(crate) struct UserAccess {
    pub(crate) store: Arc<Store>,
    pub(crate) authorizer: Arc<Authorizer>,
    pub(crate) who: Identity,
}

impl Access for UserAccess {
    fn allows(&self, account: Option<(&str, &str)>, access_check: &AccessCheck, verb: &str) -> bool {
        // The real server makes it up from its name alone, and nobody has authenticated it.
        let account = account.map(|(namespace, name)| {
            let mut account = Identity::service_account(namespace, name);
            account.groups.retain(|group| group != "system:authenticated");
            account
        });
        let who = account.as_ref().unwrap_or(&self.who);
        let whole;
        let action = match access_check {
            AccessCheck::Path(path) => Action::Path { verb, path },
            AccessCheck::Resource(about) => {
                whole = match &*about.subresource {
                    "" => about.plural.clone(),
                    subresource => format!("{}/{subresource}", about.plural),
                };
                let (group, namespace, name) = (&about.group, &about.namespace, &about.name);
                Action::Resource { verb, group, resource: &whole, namespace, name }
            }
        };
        self.authorizer.allows(&self.store, who, action)
    }
}
