//! What functions give, as far as the check of an expression knows them.
//!
//! A function that is missing here is known by name alone, if the engine has it: nothing is said
//! about its arguments.

mod library;

pub(super) use self::library::{AUTHORIZER, DECISION, GROUP, PATH, RESOURCE};
use self::library::{CIDR, FORMAT, IP, QUANTITY, SEMVER, URL};
use super::types::Type;

/// What stands before the dot in a function's name, and is no variable.
const SPACES: &[&str] =
    &["cidr", "format", "ip", "jsonpatch", "lists", "optional", "regex", "sets", "strings"];

/// Names of types, which are values too.
const TYPES: &[&str] =
    &["bool", "bytes", "double", "dyn", "int", "list", "map", "null_type", "string", "type", "uint"];

/// Functions that have no signature below.
const NAMES: &str = "distinct first flatten format last slice sort unwrapOpt";

fn listed(names: &str, name: &str) -> bool {
    names.split(' ').any(|one| one == name)
}

pub(super) fn is_space(name: &str) -> bool {
    SPACES.contains(&name)
}

pub(super) fn is_type(name: &str) -> bool {
    TYPES.contains(&name)
}

/// What a call gives.
pub(super) enum Given<'a> {
    Type(Type<'a>),
    /// There are functions of that name, but none for these arguments.
    NoOverload,
    Unknown,
}

impl<'a> From<Option<Type<'a>>> for Given<'a> {
    fn from(given: Option<Type<'a>>) -> Self {
        given.map_or(Self::NoOverload, Self::Type)
    }
}

/// What `function(arguments)` or `target.function(arguments)` gives.
pub(super) fn call<'a>(function: &str, target: Option<&Type<'a>>, arguments: &[Type<'a>]) -> Given<'a> {
    let given = match target {
        Some(target) => method(function, target, arguments),
        None => global(function, arguments),
    };
    match given {
        Given::Unknown if listed(NAMES, function) => Given::Type(Type::Unknown),
        given => given,
    }
}

fn global<'a>(function: &str, arguments: &[Type<'a>]) -> Given<'a> {
    use Type::{Bool, Bytes, Double, Duration, Dyn, Int, Opaque, Text, Timestamp, Uint};
    let one = arguments.first().filter(|_| arguments.len() == 1);
    let from = |wanted: &[Type<'a>], gives: Type<'a>| {
        one.filter(|one| wanted.iter().any(|wanted| one.fits(wanted))).map(|_| gives)
    };
    Given::from(match function {
        "size" => one.filter(|one| has_size(one)).map(|_| Int),
        "int" => from(&[Int, Uint, Double, Text, Timestamp], Int),
        "uint" => from(&[Int, Uint, Double, Text], Uint),
        "double" => from(&[Int, Uint, Double, Text], Double),
        "string" => one.map(|_| Text),
        "bytes" => from(&[Text, Bytes], Bytes),
        "bool" => from(&[Text, Bool], Bool),
        "timestamp" => from(&[Text, Timestamp, Int], Timestamp),
        "duration" => from(&[Text, Duration], Duration),
        "dyn" => one.map(|_| Dyn),
        "type" => one.map(|_| Type::Unknown),
        "url" => from(&[Text], Opaque(URL)),
        "ip" => from(&[Text], Opaque(IP)),
        "cidr" => from(&[Text], Opaque(CIDR)),
        "isURL" | "isQuantity" | "isSemver" | "isIP" | "isCIDR" => Some(Bool),
        "quantity" => from(&[Text], Opaque(QUANTITY)),
        "semver" => Some(Opaque(SEMVER)),
        "matches" => (arguments.len() == 2 && arguments.iter().all(|one| one.fits(&Text))).then_some(Bool),
        _ => return Given::Unknown,
    })
}

fn has_size(of: &Type<'_>) -> bool {
    matches!(of, Type::Dyn | Type::Unknown | Type::Text | Type::Bytes | Type::List(_) | Type::Map(..))
}

fn method<'a>(function: &str, target: &Type<'a>, arguments: &[Type<'a>]) -> Given<'a> {
    use Type::{Bool, Dyn, Int, List, Text, Timestamp};
    // Whatever it is called on has the method, or it fails when it is called.
    if matches!(target, Dyn | Type::Unknown) {
        return of_anything(function);
    }
    if let Type::Optional(of) = target {
        return Given::from(match function {
            "hasValue" => Some(Bool),
            "value" => Some((**of).clone()),
            "orValue" => arguments.first().filter(|one| one.fits(of)).map(|_| (**of).clone()),
            "or" => Some(target.clone()),
            _ => return Given::Unknown,
        });
    }
    let texts = |wanted: &[Type<'a>], least: usize, gives: Type<'a>| {
        let fit = *target == Text
            && (least..=wanted.len()).contains(&arguments.len())
            && arguments.iter().zip(wanted).all(|(one, wanted)| one.fits(wanted));
        fit.then_some(gives)
    };
    Given::from(match function {
        "size" => (arguments.is_empty() && has_size(target)).then_some(Int),
        "startsWith" | "endsWith" | "matches" | "contains" => texts(&[Text], 1, Bool),
        "lowerAscii" | "upperAscii" | "trim" => texts(&[], 0, Text),
        "charAt" => texts(&[Int], 1, Text),
        "replace" => texts(&[Text, Text, Int], 2, Text),
        "substring" => texts(&[Int, Int], 1, Text),
        "split" => texts(&[Text, Int], 1, Type::list(Text)),
        "find" => texts(&[Text], 1, Text),
        "findAll" => texts(&[Text, Int], 1, Type::list(Text)),
        "format" if *target == Text => (arguments.len() == 1).then_some(Text),
        "indexOf" | "lastIndexOf" if *target == Text => texts(&[Text, Int], 1, Int),
        "indexOf" | "lastIndexOf" => matches!(target, List(_)).then_some(Int),
        "hasValue" | "value" | "orValue" | "or" => None,
        "reverse" | "distinct" | "sort" | "slice" => matches!(target, List(_)).then(|| target.clone()),
        "first" | "last" => match target {
            List(of) => Some(Type::optional((**of).clone())),
            _ => None,
        },
        "isSorted" => of_ordered(target, arguments, |_| Bool),
        "min" | "max" => of_ordered(target, arguments, Clone::clone),
        "sum" => match target {
            List(of) if arguments.is_empty() => {
                let summed = of.is_number() || matches!(**of, Dyn | Type::Unknown | Type::Duration);
                summed.then(|| (**of).clone())
            }
            _ => None,
        },
        "getFullYear" | "getMonth" | "getDate" | "getDayOfMonth" | "getDayOfWeek" | "getDayOfYear" => {
            (*target == Timestamp).then_some(Int)
        }
        "getHours" | "getMinutes" | "getSeconds" | "getMilliseconds" => {
            matches!(target, Timestamp | Type::Duration).then_some(Int)
        }
        "join" => {
            let texts = matches!(target, List(of) if of.fits(&Text));
            let between = arguments.len() < 2 && arguments.iter().all(|one| one.fits(&Text));
            (texts && between).then_some(Text)
        }
        _ if listed(library::METHODS, function) => library::method(function, target, arguments),
        _ => return Given::Unknown,
    })
}

/// A function of lists whose elements have an order.
fn of_ordered<'a>(
    target: &Type<'a>,
    arguments: &[Type<'a>],
    gives: impl FnOnce(&Type<'a>) -> Type<'a>,
) -> Option<Type<'a>> {
    let Type::List(of) = target else { return None };
    let ordered = of.is_number()
        || matches!(
            **of,
            Type::Dyn
                | Type::Unknown
                | Type::Text
                | Type::Bytes
                | Type::Bool
                | Type::Timestamp
                | Type::Duration
        );
    (ordered && arguments.is_empty()).then(|| gives(of))
}

/// What a method gives that is called on something of which nothing is known.
fn of_anything<'a>(function: &str) -> Given<'a> {
    use Type::{Bool, Double, Dyn, Int, List, Opaque, Text, Unknown};
    Given::Type(match function {
        "startsWith"
        | "endsWith"
        | "matches"
        | "contains"
        | "isSorted"
        | "hasValue"
        | "isInteger"
        | "isGreaterThan"
        | "isLessThan"
        | "containsIP"
        | "containsCIDR"
        | "isGlobalUnicast"
        | "isLinkLocalMulticast"
        | "isLinkLocalUnicast"
        | "isLoopback"
        | "isUnspecified"
        | "allowed"
        | "errored" => Bool,
        "size" | "indexOf" | "lastIndexOf" | "getFullYear" | "getMonth" | "getDate" | "getDayOfMonth"
        | "getDayOfWeek" | "getDayOfYear" | "getHours" | "getMinutes" | "getSeconds" | "getMilliseconds"
        | "sign" | "asInteger" | "compareTo" | "family" | "major" | "minor" | "patch" | "prefixLength" => Int,
        "lowerAscii" | "upperAscii" | "trim" | "charAt" | "replace" | "substring" | "find" | "format"
        | "join" | "getEscapedPath" | "getHost" | "getHostname" | "getPort" | "getScheme" | "error"
        | "reason" => Text,
        "split" | "findAll" => List(Box::new(Text)),
        "reverse" => List(Box::new(Dyn)),
        "asApproximateFloat" => Double,
        "ip" => Opaque(IP),
        "masked" => Opaque(CIDR),
        "min" | "max" | "sum" => Dyn,
        "value" | "orValue" | "or" => Unknown,
        _ if listed(library::METHODS, function) => Unknown,
        _ => return Given::Unknown,
    })
}

/// What `space.function(…)` gives.
pub(super) fn of_space<'a>(space: &str, function: &str, arguments: &[Type<'a>]) -> Type<'a> {
    match (space, function) {
        ("sets", _) | ("ip", "isCanonical") => Type::Bool,
        ("jsonpatch", "escapeKey") | ("strings", "quote") => Type::Text,
        ("format", "named") => Type::optional(Type::Opaque(FORMAT)),
        ("format", _) => Type::Opaque(FORMAT),
        ("lists", "range") => Type::list(Type::Int),
        ("optional", "of" | "ofNonZeroValue") => {
            arguments.first().map_or(Type::Unknown, |of| Type::optional(of.clone()))
        }
        ("optional", "none") => Type::optional(Type::Unknown),
        _ => Type::Unknown,
    }
}
