//! Pod addresses: one for each Pod, handed out in turn from 10.244.0.0/16.

use std::{
    collections::{BTreeMap, BTreeSet},
    net::Ipv4Addr,
};

use windlass::ObjectKey;

const FIRST: u32 = u32::from_be_bytes([10, 244, 0, 2]);
const LAST: u32 = u32::from_be_bytes([10, 244, 255, 254]);

/// The addresses in use.
#[derive(Debug, Default)]
pub(super) struct Addresses {
    by_pod: BTreeMap<ObjectKey, u32>,
    taken: BTreeSet<u32>,
    last: Option<u32>,
}

impl Addresses {
    /// Notes an address that a Pod already has.
    pub(super) fn note(&mut self, pod: &ObjectKey, address: &str) {
        if let Ok(address) = address.parse::<Ipv4Addr>() {
            self.by_pod.insert(pod.clone(), address.into());
            self.taken.insert(address.into());
        }
    }

    /// The address of a Pod; the next free one if it has none. `None` when all are taken.
    pub(super) fn assign(&mut self, pod: &ObjectKey) -> Option<Ipv4Addr> {
        if let Some(address) = self.by_pod.get(pod) {
            return Some((*address).into());
        }
        // Not the lowest free one: an address that was just given up is not used again at once.
        let start = self.last.map_or(FIRST, |last| if last >= LAST { FIRST } else { last + 1 });
        let free = (start..=LAST).chain(FIRST..start).find(|address| !self.taken.contains(address))?;
        self.last = Some(free);
        self.taken.insert(free);
        self.by_pod.insert(pod.clone(), free);
        Some(free.into())
    }

    /// Takes back the address of a Pod that is gone.
    pub(super) fn release(&mut self, pod: &ObjectKey) {
        if let Some(address) = self.by_pod.remove(pod) {
            self.taken.remove(&address);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_kept_and_not_used_again_at_once() {
        let key = |name: &str| ObjectKey::namespaced("shop", name);
        let mut addresses = Addresses::default();
        addresses.note(&key("old"), "10.244.0.3");
        let first = addresses.assign(&key("a")).unwrap();
        assert_eq!(first, Ipv4Addr::new(10, 244, 0, 2));
        assert_eq!(addresses.assign(&key("a")), Some(first));
        assert_eq!(addresses.assign(&key("b")), Some(Ipv4Addr::new(10, 244, 0, 4)));
        addresses.release(&key("a"));
        assert_eq!(addresses.assign(&key("c")), Some(Ipv4Addr::new(10, 244, 0, 5)));
    }
}
