//! The values of settings, read alike from a flag and from a file.

use std::{
    net::{IpAddr, Ipv4Addr, SocketAddr},
    str::FromStr,
    time::Duration,
};

use serde::Deserialize;
use serde_json::Value;
use windlass_apimachinery::names;

/// `host:port`, `:port` for all interfaces, or `0` for none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "Value")]
pub(in crate::operator) struct BindAddress(pub(in crate::operator) Option<SocketAddr>);

impl FromStr for BindAddress {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text == "0" {
            return Ok(Self(None));
        }
        let hint = || format!("{text:?} is no address; write host:port, :port, or 0 for none");
        let address = match text.strip_prefix(':') {
            Some(port) => {
                SocketAddr::new(IpAddr::V4(Ipv4Addr::UNSPECIFIED), port.parse().map_err(|_| hint())?)
            }
            None => text.replacen("localhost", "127.0.0.1", 1).parse().map_err(|_| hint())?,
        };
        Ok(Self(Some(address)))
    }
}

impl TryFrom<Value> for BindAddress {
    type Error = String;

    fn try_from(value: Value) -> Result<Self, String> {
        plain(&value).parse()
    }
}

/// A time such as `30s` or `1m30s`; a bare number is seconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "Value")]
pub(in crate::operator) struct Time(pub(in crate::operator) Duration);

impl FromStr for Time {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let hint = || format!("{text:?} is no time; write 30s, 1m30s or a number of seconds");
        if let Ok(seconds) = text.parse() {
            return Ok(Self(Duration::from_secs(seconds)));
        }
        let time: jiff::SignedDuration = text.parse().map_err(|_| hint())?;
        Duration::try_from(time).map(Self).map_err(|_| hint())
    }
}

impl TryFrom<Value> for Time {
    type Error = String;

    fn try_from(value: Value) -> Result<Self, String> {
        plain(&value).parse()
    }
}

/// A level in zap's words, and in ours.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "Value")]
pub(in crate::operator) struct ZapLevel(pub(super) String);

impl FromStr for ZapLevel {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let level = match text {
            "debug" | "1" => "debug",
            "info" | "0" => "info",
            "warn" => "warn",
            "error" | "panic" => "error",
            number if number.parse::<u8>().is_ok() => "trace",
            _ => return Err(format!("{text:?} is no level; write debug, info, error or a number")),
        };
        Ok(Self(level.to_owned()))
    }
}

impl TryFrom<Value> for ZapLevel {
    type Error = String;

    fn try_from(value: Value) -> Result<Self, String> {
        plain(&value).parse()
    }
}

/// A level in klog's numbers, and in our words.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "Value")]
pub(in crate::operator) struct Verbosity(pub(super) String);

impl FromStr for Verbosity {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let level = match text.parse::<u8>() {
            Ok(0..=3) => "info",
            Ok(4..=5) => "debug",
            Ok(_) => "trace",
            Err(_) => return Err(format!("{text:?} is no verbosity; write a number from 0 to 10")),
        };
        Ok(Self(level.to_owned()))
    }
}

impl TryFrom<Value> for Verbosity {
    type Error = String;

    fn try_from(value: Value) -> Result<Self, String> {
        plain(&value).parse()
    }
}

/// Names of namespaces: `a,b`, or a YAML list of them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(try_from = "Value")]
pub(in crate::operator) struct Namespaces(pub(in crate::operator) Vec<String>);

impl FromStr for Namespaces {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let names = text.split(',').map(str::trim).filter(|name| !name.is_empty());
        names.map(namespace).collect::<Result<_, _>>().map(Self)
    }
}

/// Names of CRDs: `carts.shop.com,orders.shop.com`, or a YAML list of them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(from = "Value")]
pub(in crate::operator) struct Kinds(pub(in crate::operator) Vec<String>);

impl FromStr for Kinds {
    type Err = std::convert::Infallible;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let names = text.split(',').map(str::trim).filter(|name| !name.is_empty());
        Ok(Self(names.map(ToOwned::to_owned).collect()))
    }
}

impl From<Value> for Kinds {
    fn from(value: Value) -> Self {
        match value {
            Value::Null => Self::default(),
            Value::Array(names) => Self(names.iter().map(plain).collect()),
            other => {
                let Ok(kinds) = plain(&other).parse();
                kinds
            }
        }
    }
}

impl TryFrom<Value> for Namespaces {
    type Error = String;

    fn try_from(value: Value) -> Result<Self, String> {
        match value {
            Value::Null => Ok(Self::default()),
            Value::Array(names) => {
                names.iter().map(|name| namespace(&plain(name))).collect::<Result<_, _>>().map(Self)
            }
            other => plain(&other).parse(),
        }
    }
}

/// A name that a namespace can have: a watch of any other would fail for ever.
fn namespace(name: &str) -> Result<String, String> {
    if names::is_dns1123_label(name) {
        return Ok(name.to_owned());
    }
    Err(format!(
        "{name:?} is no namespace; write names of lower-case letters, digits and -, separated by commas"
    ))
}

/// A YAML scalar as a flag would have it.
fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), ToOwned::to_owned)
}
