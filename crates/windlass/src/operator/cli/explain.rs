//! `explain-rbac`: every rule, and the lines of code that asked for it.

use std::{fmt::Write as _, io::Write as _};

use clap::{Args, ValueEnum};
use k8s_openapi::api::rbac::v1::PolicyRule;

use super::{CliError, Operator, Target};
use crate::operator::{ExplainedRule, Reason};

#[derive(Clone, Debug, Args)]
pub(super) struct ExplainArgs {
    #[command(flatten)]
    place: Target,
    /// How it is printed
    #[arg(long, short, value_enum, default_value_t)]
    output: Output,
}

#[derive(Clone, Copy, Debug, Default, ValueEnum)]
enum Output {
    #[default]
    Text,
    Json,
    Yaml,
}

pub(super) fn explain(mut operator: Operator, args: ExplainArgs) -> Result<(), CliError> {
    let placement = args.place.placement(&mut operator, None, 1);
    let explained = operator.explain_rbac(&placement.namespace);
    let page = match args.output {
        Output::Text => text(&explained),
        Output::Json => serde_json::to_string_pretty(&explained).map_err(CliError::Json)? + "\n",
        Output::Yaml => serde_saphyr::to_string(&explained).map_err(CliError::Yaml)?,
    };
    std::io::stdout().write_all(page.as_bytes()).map_err(CliError::Stdout)
}

/// A paragraph for each role, in it a line for each rule, below it one for each call.
fn text(explained: &[ExplainedRule]) -> String {
    let mut page = String::new();
    let mut role = None;
    for one in explained {
        let heading = match one.namespaces.join(", ") {
            namespaces if namespaces.is_empty() => one.role.clone(),
            namespaces => format!("{} in {namespaces}", one.role),
        };
        if role.as_ref() != Some(&heading) {
            let gap = if role.is_some() { "\n" } else { "" };
            let _ = writeln!(page, "{gap}{heading}");
            role = Some(heading);
        }
        let _ = writeln!(page, "  {}", rule(&one.rule));
        for reason in &one.reasons {
            let _ = writeln!(page, "      {}", because(reason));
        }
    }
    page
}

/// `apps: deployments, statefulsets (get, list)`, with `core` for the group without a name.
fn rule(rule: &PolicyRule) -> String {
    let join = |list: &Option<Vec<String>>| list.clone().unwrap_or_default().join(", ");
    let what = match &rule.non_resource_urls {
        Some(urls) => urls.join(", "),
        None => {
            let groups = join(&rule.api_groups);
            format!("{}: {}", if groups.is_empty() { "core" } else { &groups }, join(&rule.resources))
        }
    };
    let named =
        rule.resource_names.as_ref().map_or(String::new(), |names| format!(" named {}", names.join(", ")));
    format!("{what}{named} ({})", rule.verbs.join(", "))
}

fn because(reason: &Reason) -> String {
    let mut line = reason.call.clone();
    if let Some(kind) = &reason.kind {
        let _ = write!(line, " {kind}");
    }
    if let Some(controller) = &reason.controller {
        let _ = write!(line, ", controller {controller}");
    }
    if let (Some(file), Some(place)) = (&reason.file, reason.line) {
        let _ = write!(line, ", {file}:{place}");
    }
    line
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::apps::v1::Deployment;

    use super::*;
    use crate::{Controller, operator::manifests::tests::Maps, rbac};

    #[test]
    fn the_text_names_the_role_the_rule_the_call_and_the_line() {
        let secret =
            PolicyRule { resource_names: Some(vec!["key".into()]), ..rbac::rule("", ["secrets"], ["get"]) };
        let controller = Controller::new(Maps).namespace("a").owns::<Deployment>().permits([secret]);
        let line = line!() - 1;
        let page = text(&Operator::new("op").controller(controller).explain_rbac("sys"));
        let expected = format!(
            "Role op-manager-role in a
  core: configmaps (get, list, watch, patch)
      Controller::new ConfigMap, controller configmap, FILE:{line}
  core: configmaps/finalizers (update)
      Controller::new ConfigMap, controller configmap, FILE:{line}
  core: configmaps/status (patch)
      Controller::new ConfigMap, controller configmap, FILE:{line}
  apps: deployments (get, list, watch, create, patch, delete)
      Controller::owns Deployment, controller configmap, FILE:{line}
  events.k8s.io: events (create, patch)
      Controller::new: events ConfigMap, controller configmap, FILE:{line}
  core: secrets named key (get)
      Controller::permits, controller configmap, FILE:{line}

Role op-leader-election-role in sys
  coordination.k8s.io: leases (get, list, watch, create, update)
      leader election (--leader-elect)

ClusterRole op-metrics-auth-role
  authentication.k8s.io: tokenreviews (create)
      metrics are served to whom may read them (--metrics-secure)
  authorization.k8s.io: subjectaccessreviews (create)
      metrics are served to whom may read them (--metrics-secure)
"
        );
        assert_eq!(page, expected.replace("FILE", file!()));
    }
}
