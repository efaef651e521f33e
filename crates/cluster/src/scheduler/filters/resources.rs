//! Whether a node has what a Pod asks for. Pure.

use super::{
    super::{host::Host, requests::Demand},
    Refusal,
};

/// Every resource of which there is too little is told.
pub(super) fn check(demand: &Demand, host: &Host) -> Result<(), Refusal> {
    let mut refusal = Refusal { reasons: Vec::new(), could_make_room: true };
    if (host.used.pods + 1) * 1000 > host.offer("pods") {
        refusal.reasons.push("Too many pods".to_owned());
    }
    for (name, wanted) in demand.amounts.iter().filter(|(_, wanted)| **wanted > 0) {
        let taken = host.used.amounts.get(name).copied().unwrap_or(0);
        if taken + wanted > host.offer(name) {
            refusal.reasons.push(format!("Insufficient {name}"));
            refusal.could_make_room &= *wanted <= host.offer(name);
        }
    }
    if refusal.reasons.is_empty() { Ok(()) } else { Err(refusal) }
}
