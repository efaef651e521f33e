//! ServiceCIDRs.

use serde_json::{Value, json};

use super::{
    Strategy,
    check::{self, Causes, list},
};
use crate::error::Cause;

/// ServiceCIDR.
pub(super) static SERVICE_CIDR: Strategy = Strategy {
    validate: |new, old| {
        let mut causes = Vec::new();
        match old {
            None => ranges(&mut causes, &new["spec"]),
            Some(old) => changed(&mut causes, &new["spec"], &old["spec"]),
        }
        causes
    },
    ..Strategy::PLAIN
};

fn ranges(causes: &mut Causes, spec: &Value) {
    let path = "spec.cidrs";
    let ranges = list(spec, "cidrs");
    match ranges.len() {
        0 => return causes.push(Cause::required(path, "at least one CIDR required")),
        1 | 2 => {}
        _ => return causes.push(Cause::invalid(path, spec, "may only hold up to 2 values")),
    }
    for (index, range) in ranges.iter().enumerate() {
        check::cidr(causes, range.as_str().unwrap_or_default(), format!("{path}[{index}]"));
    }
    let is_v6 = |range: &Value| range.as_str().is_some_and(|text| text.contains(':'));
    let mut wrong = Vec::new();
    for range in ranges {
        check::cidr(&mut wrong, range.as_str().unwrap_or_default(), "");
    }
    if let [first, second] = ranges
        && wrong.is_empty()
        && is_v6(first) == is_v6(second)
    {
        let why = "may specify no more than one IP for each IP family, i.e 192.168.0.0/24 and 2001:db8::/64";
        causes.push(Cause::invalid(path, &json!(ranges), why));
    }
}

/// A second family may be added; nothing else changes.
fn changed(causes: &mut Causes, new: &Value, old: &Value) {
    let why = "field is immutable";
    match (list(new, "cidrs"), list(old, "cidrs")) {
        (now, before) if now.len() == before.len() => {
            for (index, (now, _)) in
                now.iter().zip(before).enumerate().filter(|(_, (now, before))| now != before)
            {
                causes.push(Cause::invalid(format!("spec.cidrs[{index}]"), now, why));
            }
        }
        ([now, _], [before]) => {
            if now != before {
                causes.push(Cause::invalid("spec.cidrs[0]", now, why));
            }
            ranges(causes, new);
        }
        (now, _) => causes.push(Cause::invalid("spec.cidrs", &json!(now), why)),
    }
}
