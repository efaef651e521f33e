//! Paths: what a URL asks for.

use percent_encoding::percent_decode_str;

/// What a path leads to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Route {
    /// `/healthz`, `/livez`, `/readyz`, and their checks.
    Health(String, Option<String>),
    /// `/version`.
    Version,
    /// `/metrics`.
    Metrics,
    /// `/.well-known/openid-configuration`.
    Issuer,
    /// `/openid/v1/jwks`.
    Keys,
    /// `/api`, `/apis` and what is below them as far as no resource is named.
    Discovery(Discovery),
    /// `/openapi/v3`, or the document of one group version.
    OpenApi(Option<String>),
    /// `/openapi/v2`.
    OpenApiV2,
    /// A resource.
    Resource(RequestInfo),
    /// Nothing.
    Unknown,
}

/// Which part of discovery.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Discovery {
    /// `/api`.
    Core,
    /// `/apis`.
    Groups,
    /// `/apis/GROUP`.
    Group(String),
    /// `/api/v1` or `/apis/GROUP/VERSION`.
    Resources {
        /// The group.
        group: String,
        /// The version.
        version: String,
    },
}

/// A resource, or an object of it, or a subresource of that.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct RequestInfo {
    pub(super) group: String,
    pub(super) version: String,
    pub(super) namespace: Option<String>,
    pub(super) resource: String,
    pub(super) name: Option<String>,
    pub(super) subresource: Option<String>,
    /// The path goes on below the subresource. Whoever may have the subresource may ask for it.
    pub(super) below: bool,
    /// Below `/watch`, where watches lived before they were a parameter.
    pub(super) watch: bool,
}

impl Route {
    pub(super) fn parse(path: &str) -> Self {
        let decode = |segment: &str| percent_decode_str(segment).decode_utf8().map(|text| text.into_owned());
        let Ok(segments) =
            path.split('/').filter(|segment| !segment.is_empty()).map(decode).collect::<Result<Vec<_>, _>>()
        else {
            return Self::Unknown;
        };
        let segments: Vec<&str> = segments.iter().map(String::as_str).collect();
        match segments.as_slice() {
            [endpoint @ ("healthz" | "livez" | "readyz"), check @ ..] if check.len() <= 1 => {
                Self::Health((*endpoint).to_owned(), check.first().map(|check| (*check).to_owned()))
            }
            ["version"] => Self::Version,
            ["metrics"] => Self::Metrics,
            [".well-known", "openid-configuration"] => Self::Issuer,
            ["openid", "v1", "jwks"] => Self::Keys,
            ["openapi", "v2"] => Self::OpenApiV2,
            ["openapi", "v3"] => Self::OpenApi(None),
            ["openapi", "v3", rest @ ..] => Self::OpenApi(Some(rest.join("/"))),
            ["api"] => Self::Discovery(Discovery::Core),
            ["apis"] => Self::Discovery(Discovery::Groups),
            ["apis", group] => Self::Discovery(Discovery::Group((*group).to_owned())),
            ["api", version] => Self::resources("", version),
            ["apis", group, version] => Self::resources(group, version),
            ["api", version, rest @ ..] => Self::place("", version, rest),
            ["apis", group, version, rest @ ..] => Self::place(group, version, rest),
            _ => Self::Unknown,
        }
    }

    fn resources(group: &str, version: &str) -> Self {
        Self::Discovery(Discovery::Resources { group: group.to_owned(), version: version.to_owned() })
    }

    fn place(group: &str, version: &str, rest: &[&str]) -> Self {
        let (watch, rest) = match rest {
            ["watch", rest @ ..] if !rest.is_empty() => (true, rest),
            _ => (false, rest),
        };
        let (namespace, rest) = match rest {
            // A namespace's own subresources look like resources inside of it.
            ["namespaces", _, "status" | "finalize"] => (None, rest),
            ["namespaces", namespace, inside @ ..] if !inside.is_empty() => {
                (Some((*namespace).to_owned()), inside)
            }
            _ => (None, rest),
        };
        let (resource, name, subresource) = match rest {
            [resource] => (*resource, None, None),
            [resource, name] => (*resource, Some(*name), None),
            [resource, name, subresource, ..] => (*resource, Some(*name), Some(*subresource)),
            [] => return Self::Unknown,
        };
        Self::Resource(RequestInfo {
            below: rest.len() > 3,
            group: group.to_owned(),
            version: version.to_owned(),
            namespace,
            resource: resource.to_owned(),
            name: name.map(str::to_owned),
            subresource: subresource.map(str::to_owned),
            watch,
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn place(path: &str) -> RequestInfo {
        match Route::parse(path) {
            Route::Resource(place) => place,
            other => panic!("{path} is {other:?}"),
        }
    }

    #[test]
    fn paths_lead_where_kubernetes_says() {
        let pods = place("/api/v1/namespaces/a/pods/b/status");
        assert_eq!(pods.namespace.as_deref(), Some("a"));
        assert_eq!((pods.resource.as_str(), pods.name.as_deref()), ("pods", Some("b")));
        assert_eq!(pods.subresource.as_deref(), Some("status"));
        let namespace = place("/api/v1/namespaces/a");
        assert_eq!((namespace.resource.as_str(), namespace.name.as_deref()), ("namespaces", Some("a")));
        let finalize = place("/api/v1/namespaces/a/finalize");
        assert_eq!(finalize.resource, "namespaces");
        let custom = place("/apis/t.example.com/v1/webs");
        assert_eq!((custom.group.as_str(), custom.namespace), ("t.example.com", None));
        assert_eq!(place("/api/v1/namespaces/a/configmaps/b%20c").name.as_deref(), Some("b c"));
    }

    proptest! {
        #[test]
        fn no_path_makes_the_parser_panic(path in ".{0,60}") {
            let _ = Route::parse(&path);
        }
    }
}
