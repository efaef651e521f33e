//! What the role of a Go project permits beyond what Windlass computes: it goes into `src/lib.rs`, as if a person had
//! written it there.

use windlass_crd::kubebuilder::{self, Permission};

use super::Findings;
use crate::{Change, Plan, format};

/// The end of the function `operator` as it is scaffolded.
const FOLD: &str = "    kinds.iter().fold(Operator::new(env!(\"CARGO_PKG_NAME\")), |operator, register| register(operator))\n";

/// Adds the permissions to the operator.
pub(super) fn permit(go: &kubebuilder::Project, plan: &mut Plan, found: &mut Findings) {
    let (mut rules, mut is_bare) = (Vec::new(), false);
    for permission in go.permissions_beyond() {
        if let Some(namespace) = &permission.namespace {
            found.left.push(format!(
                "the Role in the namespace {namespace:?} permits {} on {}: `Operator::permits` would permit it everywhere",
                permission.verbs.join(", "),
                permission.resource
            ));
            continue;
        }
        is_bare |= !permission.names.is_empty() || !permission.urls.is_empty();
        rules.push(rule(&permission));
    }
    if rules.is_empty() {
        return;
    }
    let is_ruled = rules.iter().any(|rule| rule.contains("rule("));
    for change in &mut plan.changes {
        if let Change::Create { path, content } = change
            && path == "src/lib.rs"
        {
            let permits = format!(
                "    let operator =\n    {FOLD};\n    // What the role of the Go operator permitted and no declaration of a controller explains. Remove what is not needed.\n    operator.permits([{}])\n",
                rules.join(", ")
            )
            .replace(")\n;", ");");
            let mut imports = vec!["Operator"];
            imports.extend(is_bare.then_some("k8s_openapi::api::rbac::v1::PolicyRule"));
            imports.extend(is_ruled.then_some("rbac::rule"));
            let uses = format!("use windlass::{{{}}};", imports.join(", "));
            let text = content.replacen(FOLD, &permits, 1).replacen("use windlass::Operator;", &uses, 1);
            *content = format::rust(&text);
        }
    }
}

fn rule(permission: &Permission) -> String {
    let list = |names: &[String]| names.iter().map(|name| format!("{name:?}")).collect::<Vec<_>>().join(", ");
    let owned =
        |names: &[String]| names.iter().map(|name| format!("{name:?}.into()")).collect::<Vec<_>>().join(", ");
    if !permission.urls.is_empty() {
        return format!(
            "PolicyRule {{ non_resource_urls: Some(vec![{}]), verbs: vec![{}], ..PolicyRule::default() }}",
            owned(&permission.urls),
            owned(&permission.verbs)
        );
    }
    let (group, resource) = (&permission.group, &permission.resource);
    let rule = format!("rule({group:?}, [{resource:?}], [{}])", list(&permission.verbs));
    if permission.names.is_empty() {
        return rule;
    }
    format!("PolicyRule {{ resource_names: Some(vec![{}]), ..{rule} }}", owned(&permission.names))
}
