//! How much a node has left, and how evenly of each resource. Pure.

use super::{
    super::{host::Host, requests::Demand},
    MOST,
};

const COMPARED: [&str; 2] = ["cpu", "memory"];

/// More points for a node that has more left.
pub(super) fn least(demand: &Demand, host: &Host) -> i64 {
    let mut points = Vec::new();
    for (index, name) in COMPARED.into_iter().enumerate() {
        let offer = host.offer(name);
        if offer > 0 {
            let asked = host.used.compared[index] + demand.compared[index];
            points.push((offer - asked).max(0) * i128::from(MOST) / offer);
        }
    }
    let sum: i128 = points.iter().sum();
    i64::try_from(sum).unwrap_or(MOST) / i64::try_from(points.len().max(1)).unwrap_or(1)
}

/// More points for a node of whose resources the same share is asked for. A Pod that asks for nothing changes nothing.
pub(super) fn balanced(demand: &Demand, host: &Host) -> i64 {
    if demand.amounts.is_empty() {
        return 0;
    }
    let share = |name: &str| {
        let asked = [&host.used.amounts, &demand.amounts].map(|all| all.get(name).copied().unwrap_or(0));
        let offer = host.offer(name);
        if offer > 0 { ((asked[0] + asked[1]) as f64 / offer as f64).min(1.0) } else { 1.0 }
    };
    let deviation = (share("cpu") - share("memory")).abs() / 2.0;
    ((1.0 - deviation) * MOST as f64) as i64
}
