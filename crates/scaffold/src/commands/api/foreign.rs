//! A kind that somebody else defines, known by its CRD: YAML comes in, what to ask for and Rust types leave.

use windlass_crd::{Definition, Options, Scope};

use super::ApiRequest;
use crate::{Error, format};

/// What a CRD says.
pub(super) struct Foreign {
    /// The request with all that the CRD knows.
    pub(super) request: ApiRequest,
    /// The types, as a module.
    pub(super) types: String,
}

/// Reads a file of CRDs: the kind that is asked for, or the only one; the version that is asked for, or the stored one.
pub(super) fn read(yaml: &str, request: &ApiRequest) -> Result<Foreign, Error> {
    let wrong = |error: windlass_crd::Error| {
        Error::refused(
            format!("failed to read the CRD: {error}"),
            "give a file with a CustomResourceDefinition",
        )
    };
    let definitions = Definition::parse(yaml).map_err(wrong)?;
    let matching: Vec<&Definition> = definitions
        .iter()
        .filter(|found| request.kind.is_empty() || found.names.kind == request.kind)
        .filter(|found| request.group.is_empty() || found.group == request.group)
        .collect();
    let [definition] = matching.as_slice() else {
        let kinds: Vec<&str> = definitions.iter().map(|found| found.names.kind.as_str()).collect();
        let problem = format!("the file defines {} kinds that fit", matching.len());
        return Err(Error::refused(problem, format!("choose one with --kind: {}", kinds.join(", "))));
    };
    let stored = || definition.storage().map(|version| version.name.clone()).unwrap_or_default();
    let version = if request.version.is_empty() { stored() } else { request.version.clone() };
    let module = definition.rust(&version, &Options::default()).map_err(wrong)?;
    let request = ApiRequest {
        group: definition.group.clone(),
        version,
        kind: definition.names.kind.clone(),
        plural: Some(definition.names.plural.clone()),
        namespaced: Some(matches!(definition.scope, Scope::Namespaced)),
        external: true,
        ..request.clone()
    };
    let mut types = format::rust(&module.source);
    if !module.lost.is_empty() {
        types.push_str(
            "\n// What the CRD says and these types do not; the API server knows it all the same.\n",
        );
    }
    for lost in &module.lost {
        let place = if lost.path.is_empty() { String::new() } else { format!("{}: ", lost.path) };
        types.extend(["// - ", &place, &lost.what.replace('\n', " "), "\n"]);
    }
    Ok(Foreign { request, types })
}
