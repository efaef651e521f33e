//! The box's link to the host: one veth pair with a /30 of its own, chosen so that nothing on the host collides.
//!
//! Enters the host's routes and addresses; leaves a subnet and, through `ip`, the interfaces. Pod and service
//! ranges are the same in every box, because each box has a network of its own.

use std::net::Ipv4Addr;

use anyhow::{Context, Result, bail};
use serde::Deserialize;

use super::tools;

/// The ranges that the boxes' links are cut from; the later ones for hosts whose routes cover the first.
const LINKS: [Range; 3] = [
    Range { base: Ipv4Addr::new(10, 99, 0, 0), prefix: 20 },
    Range { base: Ipv4Addr::new(172, 30, 0, 0), prefix: 20 },
    Range { base: Ipv4Addr::new(192, 168, 224, 0), prefix: 20 },
];
/// The pods of every box.
pub(super) const PODS: Range = Range { base: Ipv4Addr::new(10, 88, 0, 0), prefix: 16 };
/// The services of every box.
pub(super) const SERVICES: Range = Range { base: Ipv4Addr::new(10, 96, 0, 0), prefix: 16 };
/// The bridge that the pods of a box are plugged into.
pub(super) const BRIDGE: &str = "cni0";
/// The box's end of the link.
const UPLINK: &str = "eth0";

/// An IPv4 range in CIDR notation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Range {
    base: Ipv4Addr,
    prefix: u8,
}

impl Range {
    pub(super) fn parse(text: &str) -> Option<Self> {
        let (base, prefix) = text.split_once('/').unwrap_or((text, "32"));
        Some(Self { base: base.parse().ok()?, prefix: prefix.parse().ok().filter(|prefix| *prefix <= 32)? })
    }

    /// The `index`-th address of the range.
    pub(super) fn address(self, index: u32) -> Ipv4Addr {
        Ipv4Addr::from_bits(self.base.to_bits() + index)
    }

    fn overlaps(self, other: Self) -> bool {
        let shortest = self.prefix.min(other.prefix);
        let mask = u32::MAX.checked_shl(32 - u32::from(shortest)).unwrap_or(0);
        self.base.to_bits() & mask == other.base.to_bits() & mask
    }
}

impl std::fmt::Display for Range {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}/{}", self.base, self.prefix)
    }
}

/// One box's link: the host has the first address, the box the second.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Link {
    pub(super) host: Ipv4Addr,
    pub(super) inside: Ipv4Addr,
    /// The host's interface.
    pub(super) interface: String,
}

/// The first /30 that overlaps nothing the host already routes.
fn choose(taken: &[Range]) -> Option<Link> {
    let candidates =
        LINKS.iter().flat_map(|links| (0..1 << (30 - links.prefix)).map(|index| links.address(index * 4)));
    candidates.enumerate().find_map(|(index, base)| {
        let range = Range { base, prefix: 30 };
        let free = taken.iter().all(|other| !range.overlaps(*other));
        free.then(|| Link {
            host: range.address(1),
            inside: range.address(2),
            interface: format!("windlass{index}"),
        })
    })
}

/// Chooses a link that is free on this host. Hold the network lock until it is [`connect`]ed.
pub(super) fn free_link() -> Result<Link> {
    let [first, second, third] = LINKS;
    choose(&routes()?).with_context(|| {
        format!("failed to find a free /30: this host's routes cover all of {first}, {second} and {third}")
    })
}

/// Every range that the host routes, the default route aside.
fn routes() -> Result<Vec<Range>> {
    #[derive(Deserialize)]
    struct Route {
        dst: String,
    }
    let output = tools::run("ip", &["-json", "-4", "route", "show", "table", "all"])?;
    let routes: Vec<Route> = serde_json::from_slice(&output).context("failed to understand `ip route`")?;
    // A default route leads everywhere and so collides with nothing in particular.
    Ok(routes.iter().filter_map(|route| Range::parse(&route.dst)).filter(|range| range.prefix > 0).collect())
}

/// Plugs the link into the host and into the network namespace of process `inner`.
pub(super) fn connect(link: &Link, inner: i32) -> Result<()> {
    let interface = link.interface.as_str();
    ip(&["link", "add", interface, "type", "veth", "peer", "name", UPLINK, "netns", &inner.to_string()])?;
    ip(&["addr", "add", &format!("{}/30", link.host), "dev", interface])?;
    ip(&["link", "set", interface, "up"])
}

/// Pulls the host's end out, which destroys both. Its absence is what was wanted.
pub(super) fn disconnect(interface: &str) {
    let _ = ip(&["link", "del", interface]);
}

pub(super) fn exists(interface: &str) -> bool {
    ip(&["link", "show", interface]).is_ok()
}

/// Sets up the network from inside the box, once the host has plugged the link in.
pub(super) fn configure_inside(address: Ipv4Addr) -> Result<()> {
    ip(&["link", "set", "lo", "up"])?;
    let deadline = std::time::Instant::now() + std::time::Duration::from_secs(20);
    while !exists(UPLINK) {
        if std::time::Instant::now() > deadline {
            bail!("the host plugged no {UPLINK} into the box within 20 s");
        }
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    ip(&["addr", "add", &format!("{address}/30"), "dev", UPLINK])?;
    ip(&["link", "set", UPLINK, "up"])?;
    // The bridge is made before the first pod, because the service range needs a route: without a default
    // route the kernel refuses a packet before iptables can translate its address.
    ip(&["link", "add", BRIDGE, "type", "bridge"])?;
    ip(&["addr", "add", &format!("{}/{}", PODS.address(1), PODS.prefix), "dev", BRIDGE])?;
    ip(&["link", "set", BRIDGE, "up"])?;
    ip(&["route", "add", &SERVICES.to_string(), "dev", BRIDGE])?;
    fs_err::write("/proc/sys/net/ipv4/ip_forward", "1")?;
    Ok(())
}

fn ip(args: &[&str]) -> Result<()> {
    tools::run("ip", args).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn taken(ranges: &[&str]) -> Vec<Range> {
        ranges.iter().map(|range| Range::parse(range).unwrap()).collect()
    }

    #[test]
    fn the_first_box_gets_the_first_subnet() {
        let link = choose(&taken(&["192.168.1.0/24", "127.0.0.1"])).unwrap();
        assert_eq!((link.host, link.inside), ("10.99.0.1".parse().unwrap(), "10.99.0.2".parse().unwrap()));
        assert_eq!(link.interface, "windlass0");
    }

    #[test]
    fn a_taken_subnet_is_stepped_over() {
        let link = choose(&taken(&["10.99.0.0/30", "10.99.0.5", "10.99.0.8/29"])).unwrap();
        assert_eq!(link.inside, "10.99.0.18".parse::<Ipv4Addr>().unwrap());
        assert_eq!(link.interface, "windlass4");
    }

    #[test]
    fn a_host_that_routes_one_range_gets_a_link_from_the_next() {
        let link = choose(&taken(&["10.0.0.0/8"])).unwrap();
        assert_eq!(link.inside, "172.30.0.2".parse::<Ipv4Addr>().unwrap());
        assert_eq!(choose(&taken(&["10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16"])), None);
    }

    #[test]
    fn the_longest_interface_name_fits_the_kernel() {
        let last: usize = LINKS.iter().map(|links| 1 << (30 - links.prefix)).sum();
        assert!(format!("windlass{}", last - 1).len() <= 15);
    }

    #[test]
    fn a_range_is_read_and_written_alike() {
        for text in ["10.96.0.0/16", "0.0.0.0/0"] {
            assert_eq!(Range::parse(text).unwrap().to_string(), text);
        }
        assert_eq!(Range::parse("default"), None);
        assert_eq!(Range::parse("10.0.0.0/33"), None);
    }
}
