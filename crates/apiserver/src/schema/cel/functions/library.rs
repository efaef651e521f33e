//! What only functions can look into: quantities, addresses, versions, URLs, named formats, and who may do what.

use super::Type;

pub(in super::super) const QUANTITY: &str = "kubernetes.Quantity";
pub(in super::super) const SEMVER: &str = "kubernetes.Semver";
pub(in super::super) const IP: &str = "net.IP";
pub(in super::super) const CIDR: &str = "net.CIDR";
pub(in super::super) const URL: &str = "net.URL";
pub(in super::super) const FORMAT: &str = "kubernetes.NamedFormat";

/// What asks whether somebody may do something.
pub(in super::super) const AUTHORIZER: &str = "kubernetes.authorization.Authorizer";
pub(in super::super) const PATH: &str = "kubernetes.authorization.PathCheck";
pub(in super::super) const GROUP: &str = "kubernetes.authorization.GroupCheck";
pub(in super::super) const RESOURCE: &str = "kubernetes.authorization.ResourceCheck";
pub(in super::super) const DECISION: &str = "kubernetes.authorization.Decision";

/// The methods of what only functions can look into.
pub(super) const METHODS: &str = "\
    add allowed asApproximateFloat asInteger check compareTo containsCIDR containsIP error errored family fieldSelector \
    getEscapedPath getHost getHostname getPort getQuery getScheme group ip isGlobalUnicast isGreaterThan isInteger \
    isLessThan isLinkLocalMulticast isLinkLocalUnicast isLoopback isUnspecified labelSelector major masked minor name \
    namespace patch path prefixLength reason resource serviceAccount sign sub subresource validate";

pub(super) fn method<'a>(function: &str, target: &Type<'a>, arguments: &[Type<'a>]) -> Option<Type<'a>> {
    use Type::{Bool, Double, Int, Opaque, Text};
    let Opaque(name) = target else { return None };
    let takes = |wanted: &[&Type<'a>]| match arguments {
        [one] => wanted.iter().any(|wanted| one.fits(wanted)),
        _ => false,
    };
    let (gives, fits) = match (*name, function) {
        (QUANTITY, "sign" | "asInteger") => (Int, arguments.is_empty()),
        (QUANTITY, "isInteger") => (Bool, arguments.is_empty()),
        (QUANTITY, "asApproximateFloat") => (Double, arguments.is_empty()),
        (QUANTITY, "add" | "sub") => (target.clone(), takes(&[target, &Int])),
        (QUANTITY | SEMVER, "isGreaterThan" | "isLessThan") => (Bool, takes(&[target])),
        (QUANTITY | SEMVER, "compareTo") => (Int, takes(&[target])),
        (SEMVER, "major" | "minor" | "patch") | (IP, "family") | (CIDR, "prefixLength") => {
            (Int, arguments.is_empty())
        }
        (
            IP,
            "isGlobalUnicast"
            | "isLinkLocalMulticast"
            | "isLinkLocalUnicast"
            | "isLoopback"
            | "isUnspecified",
        ) => (Bool, arguments.is_empty()),
        (CIDR, "containsIP") => (Bool, takes(&[&Opaque(IP), &Text])),
        (CIDR, "containsCIDR") => (Bool, takes(&[target, &Text])),
        (CIDR, "ip") => (Opaque(IP), arguments.is_empty()),
        (CIDR, "masked") => (target.clone(), arguments.is_empty()),
        (URL, "getEscapedPath" | "getHost" | "getHostname" | "getPort" | "getScheme") => {
            (Text, arguments.is_empty())
        }
        (AUTHORIZER, "path") => (Opaque(PATH), takes(&[&Text])),
        (AUTHORIZER, "group") => (Opaque(GROUP), takes(&[&Text])),
        (AUTHORIZER, "serviceAccount") => (target.clone(), arguments.len() == 2),
        (GROUP, "resource") => (Opaque(RESOURCE), takes(&[&Text])),
        (RESOURCE, "subresource" | "namespace" | "name" | "fieldSelector" | "labelSelector") => {
            (target.clone(), takes(&[&Text]))
        }
        (PATH | RESOURCE, "check") => (Opaque(DECISION), takes(&[&Text])),
        (DECISION, "allowed" | "errored") => (Bool, arguments.is_empty()),
        (DECISION, "reason" | "error") => (Text, arguments.is_empty()),
        (FORMAT, "validate") => (Type::optional(Type::list(Text)), takes(&[&Text])),
        (URL, "getQuery") => (Type::Map(Box::new(Text), Box::new(Type::list(Text))), arguments.is_empty()),
        _ => return None,
    };
    fits.then_some(gives)
}
