//! What each command asks for: a request comes in, a [`Plan`](crate::Plan) leaves.

mod api;
mod delete;
mod from_kubebuilder;
mod init;
#[cfg(test)]
mod tests;
mod upgrade;
mod webhook;

pub use api::{ApiRequest, create_api, is_further_version};
pub use delete::delete_api;
pub use from_kubebuilder::{from_kubebuilder, read_kubebuilder};
pub use init::{InitRequest, init};
pub use upgrade::upgrade;
pub use webhook::{WebhookRequest, create_webhook, delete_webhook};

use crate::{Error, Project};

/// A kind that is there, in one version.
#[derive(Clone, Debug)]
pub struct Target {
    /// The group, without the domain.
    pub group: String,
    /// The version.
    pub version: String,
    /// The kind.
    pub kind: String,
}

impl Target {
    fn find(&self, project: &Project) -> Result<usize, Error> {
        let found = project.resources.iter().position(|known| {
            known.kind == self.kind && known.group == self.group && known.version == self.version
        });
        found.ok_or_else(|| {
            let group = if self.group.is_empty() { String::new() } else { format!("{}.", self.group) };
            let wanted = format!("{} in {group}{}/{}", self.kind, project.domain, self.version);
            Error::NoKind {
                wanted,
                known: project.resources.iter().map(crate::project::Resource::describe).collect(),
            }
        })
    }
}
