//! From a project to its files: every scaffolded file follows from `PROJECT` and the templates, and from nothing else.

use std::collections::BTreeMap;

use minijinja::{
    AutoEscape, Environment, UndefinedBehavior, Value, context, syntax::SyntaxConfig, value::Serde,
};

use crate::{
    Project,
    error::Error,
    format,
    project::{License, Resource},
};

mod kinds;
mod sdk;
mod templates;
mod versions;

pub(crate) use kinds::{Kind, sample};
pub(crate) use sdk::is_url;
use templates::Scope;
pub(crate) use templates::TEMPLATES;
pub(crate) use versions::{is_derived, ported_paths, spoke_sample, spoke_types, with_versions};

/// The compiler of a new project: the one that windlass itself is built and tested with.
const TOOLCHAIN: (&str, &str) = ("1.95.0", "1.95");

/// Paths with `/`, and what is in them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Files(pub BTreeMap<String, String>);

impl Files {
    /// The content of a file.
    pub fn get(&self, path: &str) -> Option<&str> {
        self.0.get(path).map(String::as_str)
    }
}

/// All files that are scaffolded for a project.
pub(crate) fn files(project: &Project) -> Result<Files, Error> {
    let renderer = Renderer::new(project);
    let mut files = Files::default();
    for template in TEMPLATES {
        match template.scope {
            Scope::Project(wanted) if wanted(project) => {
                let text = renderer.render(template.name, template.text, template.path, context! {})?;
                files.0.insert(template.path.into(), text);
            }
            Scope::Project(_) => {}
            Scope::Kind(wanted) => {
                for kind in renderer.kinds.iter().filter(|kind| wanted(kind)) {
                    let path = kind.path(template.path);
                    let context = context! { kind => Value::from(Serde(kind)) };
                    files
                        .0
                        .insert(path.clone(), renderer.render(template.name, template.text, &path, context)?);
                }
            }
            Scope::Spoke(wanted) => {
                for kind in renderer.kinds.iter().filter(|kind| wanted(kind)) {
                    for spoke in &kind.spokes {
                        let path = kind.path(template.path).replace("SPOKE", &spoke.module);
                        let (of, spoke) = (Value::from(Serde(kind)), Value::from(Serde(spoke)));
                        let context = context! { kind => of, spoke };
                        files.0.insert(
                            path.clone(),
                            renderer.render(template.name, template.text, &path, context)?,
                        );
                    }
                }
            }
        }
    }
    renderer.add_spokes(&mut files)?;
    Ok(files)
}

/// Templates with what all of them see.
pub(crate) struct Renderer {
    environment: Environment<'static>,
    pub(crate) kinds: Vec<Kind>,
    shared: Value,
}

impl Renderer {
    pub(crate) fn new(project: &Project) -> Self {
        let kinds = Kind::all(project);
        Self { environment: environment(), shared: shared(project, &kinds), kinds }
    }

    pub(crate) fn render(&self, name: &str, text: &str, path: &str, own: Value) -> Result<String, Error> {
        let failed =
            |source: minijinja::Error| Error::Render { template: name.into(), source: source.into() };
        let context = context! { ..own, ..self.shared.clone() };
        let text = self.environment.render_named_str(name, text, context).map_err(failed)?;
        Ok(if is_rust(path) { format::rust(&text) } else { text })
    }
}

/// Whether a path is that of Rust code.
pub(crate) fn is_rust(path: &str) -> bool {
    std::path::Path::new(path).extension().is_some_and(|extension| extension == "rs")
}

fn environment() -> Environment<'static> {
    let mut environment = Environment::new();
    // The usual braces mean something in Rust, in justfiles and in workflows.
    let syntax = SyntaxConfig::builder()
        .block_delimiters("{%", "%}")
        .variable_delimiters("{=", "=}")
        .comment_delimiters("{#", "#}")
        .trim_blocks(true)
        .lstrip_blocks(true)
        .keep_trailing_newline(true)
        .build()
        .expect("the delimiters of the templates must be valid");
    environment.set_syntax(syntax);
    environment.set_auto_escape_callback(|_| AutoEscape::None);
    environment.set_undefined_behavior(UndefinedBehavior::Strict);
    environment
}

/// What every template sees.
fn shared(project: &Project, kinds: &[Kind]) -> Value {
    let mut modules: Vec<String> = kinds.iter().map(|kind| kind.module.clone()).collect();
    modules.sort_unstable();
    let mut tests: Vec<String> = kinds.iter().flat_map(Kind::test_modules).collect();
    let has_conversion = kinds.iter().any(Kind::has_property_tests);
    tests.extend(has_conversion.then(|| "schema".to_owned()));
    tests.sort_unstable();
    let license_id = match project.license {
        License::None => None,
        License::Mit => Some("MIT"),
        License::Apache => Some("Apache-2.0"),
    };
    let owner = project.owner.clone().unwrap_or_else(|| format!("the authors of {}", project.project_name));
    let repo_url = project
        .repo
        .as_ref()
        .map(|repo| if repo.contains("://") { repo.clone() } else { format!("https://{repo}") });
    context! {
        project => context! {
            name => project.project_name.clone(),
            lib => crate::names::library(&project.project_name),
            domain => project.domain.clone(),
            repo_url,
            license_id,
            owner,
        },
        toolchain => context! { channel => TOOLCHAIN.0, minimum => TOOLCHAIN.1 },
        sdk => sdk::dependencies(project),
        kinds => Value::from(Serde(kinds)),
        modules,
        tests,
        has_conversion,
    }
}

/// Whether an entry is the version of its kind that is stored.
pub(crate) fn is_hub(project: &Project, resource: &Resource) -> bool {
    let versions = || project.resources.iter().filter(|other| other.is_same_kind(resource));
    resource.hub || (versions().all(|other| !other.hub) && versions().next() == Some(resource))
}
