//! Which template becomes which file, and for whom.

use super::kinds::Kind;
use crate::{Project, project::License};

/// For whom a template is.
pub(crate) enum Scope {
    /// Once for a project.
    Project(fn(&Project) -> bool),
    /// For every kind, where the path says `KIND` and `SAMPLE`.
    Kind(fn(&Kind) -> bool),
    /// For every version of a kind that is not stored, where the path says `SPOKE`.
    Spoke(fn(&Kind) -> bool),
}

/// A file to come.
pub(crate) struct Template {
    pub(crate) name: &'static str,
    pub(crate) path: &'static str,
    pub(crate) text: &'static str,
    pub(crate) scope: Scope,
}

macro_rules! template {
    ($name:literal => $path:literal, $scope:expr) => {
        Template {
            name: $name,
            path: $path,
            text: include_str!(concat!("../../templates/", $name, ".j2")),
            scope: $scope,
        }
    };
}

const ALWAYS: Scope = Scope::Project(|_| true);
const MIT: Scope = Scope::Project(|project| project.license == License::Mit);
const APACHE: Scope = Scope::Project(|project| project.license == License::Apache);
const OWN: Scope = Scope::Kind(|kind| !kind.external && kind.ported.is_none());
const PLAIN: Scope = Scope::Kind(is_plain);
const WORKED: Scope = Scope::Kind(|kind| is_plain(kind) && kind.controller);
const TYPES_ONLY: Scope = Scope::Kind(|kind| is_plain(kind) && !kind.controller);
const EXTERNAL: Scope = Scope::Kind(|kind| kind.external);
const PORTED: Scope = Scope::Kind(|kind| kind.ported.is_some());
const PORTED_WORKED: Scope = Scope::Kind(|kind| kind.ported.is_some() && kind.controller);
const PORTED_REPORTED: Scope = Scope::Kind(|kind| {
    kind.controller
        && kind.ported.as_ref().is_some_and(|ported| ported.conditions || ported.observed_generation)
});
const IMAGE: Scope = Scope::Kind(|kind| !kind.external && kind.image.is_some());
const HOOKED: Scope = Scope::Kind(|kind| kind.webhook);
const HOOKED_OWN: Scope = Scope::Kind(|kind| kind.webhook && kind.ported.is_none());
const CONVERTED: Scope = Scope::Project(|project| Kind::all(project).iter().any(Kind::has_property_tests));
const SPOKE: Scope = Scope::Spoke(Kind::has_property_tests);
const PORTED_SPOKE: Scope = Scope::Spoke(|kind| kind.conversion && kind.ported.is_some());

fn is_plain(kind: &Kind) -> bool {
    !kind.external && kind.image.is_none() && kind.ported.is_none()
}

/// All of them.
pub(crate) const TEMPLATES: &[Template] = &[
    template!("project/Cargo.toml" => "Cargo.toml", ALWAYS),
    template!("project/rust-toolchain.toml" => "rust-toolchain.toml", ALWAYS),
    template!("project/rustfmt.toml" => "rustfmt.toml", ALWAYS),
    template!("project/clippy.toml" => "clippy.toml", ALWAYS),
    template!("project/gitignore" => ".gitignore", ALWAYS),
    template!("project/dockerignore" => ".dockerignore", ALWAYS),
    template!("project/Makefile" => "Makefile", ALWAYS),
    template!("project/justfile" => "justfile", ALWAYS),
    template!("project/Dockerfile" => "Dockerfile", ALWAYS),
    template!("project/Dockerfile.prebuilt" => "Dockerfile.prebuilt", ALWAYS),
    template!("project/README.md" => "README.md", ALWAYS),
    template!("project/LICENSE-mit" => "LICENSE", MIT),
    template!("project/LICENSE-apache" => "LICENSE", APACHE),
    template!("project/lint.yml" => ".github/workflows/lint.yml", ALWAYS),
    template!("project/test.yml" => ".github/workflows/test.yml", ALWAYS),
    template!("project/devcontainer.json" => ".devcontainer/devcontainer.json", ALWAYS),
    template!("project/extensions.json" => ".vscode/extensions.json", ALWAYS),
    template!("project/launch.json" => ".vscode/launch.json", ALWAYS),
    template!("project/settings.json" => ".vscode/settings.json", ALWAYS),
    template!("project/tasks.json" => ".vscode/tasks.json", ALWAYS),
    template!("project/main.rs" => "src/main.rs", ALWAYS),
    template!("project/lib.rs" => "src/lib.rs", ALWAYS),
    template!("project/it_main.rs" => "tests/it/main.rs", ALWAYS),
    template!("kind/kind.rs" => "src/KIND.rs", OWN),
    template!("kind/api.rs" => "src/KIND/api.rs", PLAIN),
    template!("kind/build.rs" => "src/KIND/build.rs", WORKED),
    template!("kind/status.rs" => "src/KIND/status.rs", WORKED),
    template!("kind/controller.rs" => "src/KIND/controller.rs", WORKED),
    template!("kind/tests.rs" => "src/KIND/tests.rs", WORKED),
    template!("kind/it.rs" => "tests/it/KIND.rs", WORKED),
    template!("kind/types_it.rs" => "tests/it/KIND.rs", TYPES_ONLY),
    template!("kind/sample.yaml" => "config/samples/SAMPLE", PLAIN),
    template!("image/api.rs" => "src/KIND/api.rs", IMAGE),
    template!("image/build.rs" => "src/KIND/build.rs", IMAGE),
    template!("image/status.rs" => "src/KIND/status.rs", IMAGE),
    template!("image/controller.rs" => "src/KIND/controller.rs", IMAGE),
    template!("image/tests.rs" => "src/KIND/tests.rs", IMAGE),
    template!("image/it.rs" => "tests/it/KIND.rs", IMAGE),
    template!("image/sample.yaml" => "config/samples/SAMPLE", IMAGE),
    template!("external/kind.rs" => "src/KIND.rs", EXTERNAL),
    template!("external/build.rs" => "src/KIND/build.rs", EXTERNAL),
    template!("external/controller.rs" => "src/KIND/controller.rs", EXTERNAL),
    template!("external/it.rs" => "tests/it/KIND.rs", EXTERNAL),
    template!("ported/kind.rs" => "src/KIND.rs", PORTED),
    template!("ported/controller.rs" => "src/KIND/controller.rs", PORTED_WORKED),
    template!("ported/status.rs" => "src/KIND/status.rs", PORTED_REPORTED),
    template!("ported/it.rs" => "tests/it/KIND.rs", PORTED),
    template!("ported/version_it.rs" => "tests/it/KIND_SPOKE.rs", PORTED_SPOKE),
    template!("webhook/webhook.rs" => "src/KIND/webhook.rs", HOOKED),
    template!("webhook/it.rs" => "tests/it/KIND_webhook.rs", HOOKED_OWN),
    template!("version/schema.rs" => "tests/it/schema.rs", CONVERTED),
    template!("version/it.rs" => "tests/it/KIND_SPOKE.rs", SPOKE),
];
