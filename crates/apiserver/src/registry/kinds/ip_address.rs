//! IPAddresses.

use serde_json::{Value, json};

use super::{Strategy, check::Causes, text};
use crate::error::Cause;

/// IPAddress.
pub(super) static IP_ADDRESS: Strategy = Strategy {
    validate: |new, _| {
        let mut causes = Vec::new();
        validate(&mut causes, new);
        causes
    },
    ..Strategy::PLAIN
};

/// An address is named by itself, written in the one way that there is, and belongs to somebody.
fn validate(causes: &mut Causes, address: &Value) {
    let name = text(address, "/metadata/name");
    let why = match name.parse::<std::net::IpAddr>() {
        Err(_) => Some("must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)".to_owned()),
        Ok(parsed) if parsed.to_string() != name => Some(format!("must be in canonical form (\"{parsed}\")")),
        Ok(_) => None,
    };
    if let Some(why) = why {
        causes.push(Cause::invalid("metadata.name", &json!(name), why));
    }
    let Some(parent) = address.pointer("/spec/parentRef") else {
        causes.push(Cause::required("spec.parentRef", ""));
        return;
    };
    for field in ["resource", "name"] {
        if parent.get(field).and_then(Value::as_str).unwrap_or_default().is_empty() {
            causes.push(Cause::required(format!("spec.parentRef.{field}"), ""));
        }
    }
}
