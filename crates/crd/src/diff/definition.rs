//! What is said about a kind outside of its schemas: names, versions, subresources, columns, conversion.

use super::{Finding, Findings, schema};
use crate::{Definition, Version, schema::normal};

/// Compares two definitions of the same kind. The worst findings come first.
pub fn definition(old: &Definition, new: &Definition) -> Vec<Finding> {
    let mut findings = Findings { definition: old.name.clone(), ..Findings::default() };
    names(old, new, &mut findings);
    versions(old, new, &mut findings);
    conversion(old, new, &mut findings);
    for before in &old.versions {
        if let Some(after) = new.versions.iter().find(|version| version.name == before.name) {
            findings.version = Some(before.name.clone());
            version(before, after, &mut findings);
        }
    }
    let mut found = findings.found;
    found.sort_by_key(|finding| finding.severity);
    found
}

fn names(old: &Definition, new: &Definition, findings: &mut Findings) {
    let (before, after) = (&old.names, &new.names);
    let fixed = [
        ("GroupChanged", "API group", &old.group, &new.group),
        ("KindChanged", "kind", &before.kind, &after.kind),
        ("PluralChanged", "plural", &before.plural, &after.plural),
    ];
    for (reason, what, old, new) in fixed {
        if old != new {
            findings.breaking(
                "",
                reason,
                format!(
                    "the {what} was {old} and is {new}: this is another kind, and objects do not move to it"
                ),
                "install it beside the old one, copy the objects, then remove the old one",
            );
        }
    }
    if old.scope != new.scope {
        findings.breaking(
            "",
            "ScopeChanged",
            format!(
                "the scope was {:?} and is {:?}: a definition's scope cannot be changed",
                old.scope, new.scope
            ),
            "give the kind another name",
        );
    }
    if before.singular != after.singular {
        let message = format!(
            "the singular was {} and is {}: kubectl commands change",
            before.singular, after.singular
        );
        findings.warning("", "SingularChanged", message, "tell those who type it");
    }
    if before.list_kind != after.list_kind {
        let message = format!(
            "lists were {} and are {}: typed clients may not read them",
            before.list_kind, after.list_kind
        );
        findings.breaking("", "ListKindChanged", message, "keep the list kind");
    }
    for name in before.short_names.iter().filter(|name| !after.short_names.contains(name)) {
        let message = format!("the short name {name} is gone: scripts that use it fail");
        findings.warning("", "ShortNameRemoved", message, "keep it, or tell those who type it");
    }
    for name in after.short_names.iter().filter(|name| !before.short_names.contains(name)) {
        findings.info("", "ShortNameAdded", format!("the short name {name} is new"));
    }
    for name in before.categories.iter().filter(|name| !after.categories.contains(name)) {
        findings.warning("", "CategoryRemoved", format!("`kubectl get {name}` no longer shows it"), "");
    }
    for name in after.categories.iter().filter(|name| !before.categories.contains(name)) {
        findings.info("", "CategoryAdded", format!("`kubectl get {name}` shows it now"));
    }
    if old.preserve_unknown_fields && !new.preserve_unknown_fields {
        findings.breaking(
            "",
            "PreserveUnknownFieldsRemoved",
            "unknown fields were kept in all versions and are pruned now: what the schema does not name is lost at the next write",
            "name every field that objects hold, or set x-kubernetes-preserve-unknown-fields where they are",
        );
    }
}

fn same_schema(one: &Version, other: &Version) -> bool {
    one.schema().map(normal) == other.schema().map(normal)
}

fn versions(old: &Definition, new: &Definition, findings: &mut Findings) {
    let find = |of: &'_ Definition, name: &str| of.versions.iter().position(|version| version.name == name);
    for before in old.versions.iter().filter(|version| find(new, &version.name).is_none()) {
        findings.version = Some(before.name.clone());
        let mut added = new.versions.iter().filter(|version| find(old, &version.name).is_none());
        let renamed = added.find(|after| same_schema(before, after));
        let became =
            renamed.map(|after| format!(" (its schema is now that of {})", after.name)).unwrap_or_default();
        if before.served || before.storage {
            findings.breaking(
                "",
                "VersionRemoved",
                format!("the version {} is gone{became}: requests for it fail, and objects stored in it cannot be read", before.name),
                "serve it beside the new one, migrate what is stored, then take it out of status.storedVersions",
            );
        } else {
            findings.warning(
                "",
                "VersionRemoved",
                format!("the version {}, which was not served, is gone{became}: objects may still be stored in it", before.name),
                "see that status.storedVersions does not name it",
            );
        }
    }
    for after in new.versions.iter().filter(|version| find(old, &version.name).is_none()) {
        findings.version = Some(after.name.clone());
        findings.info("", "VersionAdded", format!("the version {} is new", after.name));
    }
    findings.version = None;
    storage(old, new, findings);
}

fn storage(old: &Definition, new: &Definition, findings: &mut Findings) {
    let (Some(before), Some(after)) = (old.storage(), new.storage()) else { return };
    if before.name == after.name {
        return;
    }
    let what = format!("objects were stored in {} and are stored in {}", before.name, after.name);
    let converted = new.conversion == "Webhook";
    let left = new.versions.iter().find(|version| version.name == before.name);
    if !converted && !left.is_some_and(|left| same_schema(left, after)) {
        findings.breaking(
            "",
            "StorageVersionChanged",
            format!("{what} without a conversion: they are only relabelled, and what the new schema does not name is lost"),
            "convert with a webhook, or give both versions the same schema",
        );
    } else {
        findings.warning(
            "",
            "StorageVersionChanged",
            format!("{what}: what exists stays in {} until it is written again", before.name),
            "migrate what is stored before the old version is removed",
        );
    }
}

fn conversion(old: &Definition, new: &Definition, findings: &mut Findings) {
    findings.version = None;
    match (old.conversion.as_str(), new.conversion.as_str()) {
        (before, after) if before == after => {}
        ("Webhook", _) => {
            let served: Vec<&Version> =
                new.versions.iter().filter(|version| version.served || version.storage).collect();
            let alike = served.windows(2).all(|pair| same_schema(pair[0], pair[1]));
            let message = "objects are no longer converted between versions, only relabelled";
            if alike {
                findings.warning("", "ConversionRemoved", message, "");
            } else {
                findings.breaking(
                    "",
                    "ConversionRemoved",
                    format!("{message}, and their schemas differ: what the other one does not name is lost"),
                    "keep the conversion webhook while more than one version is served or stored",
                );
            }
        }
        _ => findings.warning(
            "",
            "ConversionAdded",
            "objects are converted by a webhook: without it no other version can be read or written",
            "start the webhook before the definition is installed",
        ),
    }
}

fn version(old: &Version, new: &Version, findings: &mut Findings) {
    if old.served && !new.served {
        findings.breaking(
            "",
            "VersionNotServed",
            format!("the version {} is no longer served: requests for it fail", old.name),
            "deprecate it first, and move its clients to another version",
        );
    }
    if !old.served && new.served {
        findings.info("", "VersionServed", format!("the version {} is served now", old.name));
    }
    if !old.deprecated && new.deprecated {
        findings.info(
            "",
            "VersionDeprecated",
            format!("clients of {} are warned that it is deprecated", old.name),
        );
    }
    subresources(old, new, findings);
    for path in old.selectable_fields().filter(|path| new.selectable_fields().all(|new| new != *path)) {
        let message = "field selectors can no longer name this field: such requests fail";
        findings.breaking(path, "SelectableFieldRemoved", message, "keep it selectable");
    }
    for path in new.selectable_fields().filter(|path| old.selectable_fields().all(|old| old != *path)) {
        findings.info(path, "SelectableFieldAdded", "field selectors can name this field");
    }
    columns(old, new, findings);
    match (old.schema(), new.schema()) {
        (Some(before), Some(after)) => schema::compare_roots(before, after, findings),
        (None, Some(_)) => findings.breaking(
            "",
            "SchemaAdded",
            "there was no schema and there is one: objects that do not fit cannot be written, and what it does not name is pruned",
            "check the stored objects against it first",
        ),
        (Some(_), None) => findings.warning("", "SchemaRemoved", "nothing is checked any more", "give it a schema"),
        (None, None) => {}
    }
}

fn subresources(old: &Version, new: &Version, findings: &mut Findings) {
    match (old.has_status(), new.has_status()) {
        (true, false) => findings.breaking(
            ".status",
            "StatusSubresourceRemoved",
            "the status is no subresource any more: requests to /status fail, and whoever writes the object writes its status",
            "keep the status subresource",
        ),
        (false, true) => findings.warning(
            ".status",
            "StatusSubresourceAdded",
            "the status is a subresource now: a write to the object itself no longer changes it",
            "let whoever writes the status do so by /status",
        ),
        _ => {}
    }
    match (old.scale(), new.scale()) {
        (Some(_), None) => findings.breaking(
            "",
            "ScaleSubresourceRemoved",
            "the scale subresource is gone: `kubectl scale` and autoscalers fail",
            "keep the scale subresource",
        ),
        (None, Some(_)) => findings.info("", "ScaleSubresourceAdded", "`kubectl scale` and autoscalers work"),
        (Some(before), Some(after)) if before != after => findings.warning(
            "",
            "ScaleSubresourceChanged",
            "the scale subresource reads or writes other fields",
            "see that objects hold their replicas where it looks",
        ),
        _ => {}
    }
}

fn columns(old: &Version, new: &Version, findings: &mut Findings) {
    for before in &old.printer_columns {
        match new.printer_columns.iter().find(|after| after.name == before.name) {
            None => findings.info(
                &before.json_path,
                "PrinterColumnRemoved",
                format!("the column {} is gone", before.name),
            ),
            Some(after) if after != before => {
                findings.info(
                    &after.json_path,
                    "PrinterColumnChanged",
                    format!("the column {} is another", before.name),
                );
            }
            Some(_) => {}
        }
    }
    for after in &new.printer_columns {
        if old.printer_columns.iter().all(|before| before.name != after.name) {
            findings.info(
                &after.json_path,
                "PrinterColumnAdded",
                format!("the column {} is new", after.name),
            );
        }
    }
}
