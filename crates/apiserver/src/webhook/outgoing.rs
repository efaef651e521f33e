//! Where calls out of the server may go.
//!
//! Enters an address that is about to be dialled, after names were resolved: the very address that is checked is dialled,
//! so no name can mean one thing now and another a moment later. Leaves a refusal in words, or nothing.
//!
//! - What is simulated is never dialled: the address of a Pod or of a Service leads nowhere in this machine's network, or
//!   to a stranger.
//! - Addresses that nobody means are refused: unspecified, multicast, broadcast, link-local, and those under which clouds
//!   hand out credentials; also where they are wrapped into IPv6.
//! - Loopback is for whoever says it: a URL of 127.0.0.1, `[::1]` or `localhost`, as test environments write it, or an
//!   endpoint that somebody has written by hand. Another name that resolves to loopback is refused.
//! - A Service that was led to an address of this machine (`Routes`) is configuration, and not asked about here.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use crate::store::{Store, TableName};

/// Where clouds hand out credentials and secrets, besides the link-local addresses.
const METADATA: [IpAddr; 4] = [
    IpAddr::V4(Ipv4Addr::new(100, 100, 100, 200)),
    IpAddr::V4(Ipv4Addr::new(168, 63, 129, 16)),
    IpAddr::V4(Ipv4Addr::new(192, 0, 0, 192)),
    IpAddr::V6(Ipv6Addr::new(0xfd00, 0x0ec2, 0, 0, 0, 0, 0, 0x254)),
];

/// Refuses to dial an address, for a webhook whose host is `host`, or for an endpoint of a Service.
pub(super) fn check(store: &Store, host: Option<&str>, address: IpAddr) -> Result<(), String> {
    let inner = unwrapped(address);
    let refuse = |why: &str| Err(format!("refused to call {address}: {why}"));
    if let Some(why) = unmeant(inner) {
        return refuse(why);
    }
    if inner.is_loopback() {
        return match host {
            Some(host) if !names_loopback(host) => refuse(&format!(
                "{host} is a name for this machine; write 127.0.0.1 or localhost if that is meant"
            )),
            _ => Ok(()),
        };
    }
    match simulated(store, inner) {
        Some(what) => refuse(&format!(
            "it is the address of {what}, which is simulated: nothing runs there. Register the webhook server that \
             really runs by its URL (an operator's --webhook-url https://HOST:PORT)"
        )),
        None => Ok(()),
    }
}

/// The address inside of an address: IPv4 in IPv6, in all its forms.
fn unwrapped(address: IpAddr) -> IpAddr {
    let IpAddr::V6(v6) = address else { return address };
    let last = |octets: [u8; 16]| Ipv4Addr::new(octets[12], octets[13], octets[14], octets[15]);
    match v6.segments() {
        // Mapped, compatible (which is long deprecated), and by way of a translator.
        [0, 0, 0, 0, 0, 0xffff, ..] | [0x64, 0xff9b, 0, 0, 0, 0, ..] => last(v6.octets()).into(),
        [0, 0, 0, 0, 0, 0, high, low] if high != 0 || low > 1 => last(v6.octets()).into(),
        // 6to4 has the address in its second and third part.
        [0x2002, high, low, ..] => Ipv4Addr::from((u32::from(high) << 16) | u32::from(low)).into(),
        _ => address,
    }
}

/// Why nobody means an address, if nobody does.
fn unmeant(address: IpAddr) -> Option<&'static str> {
    let link_local = match address {
        IpAddr::V4(v4) => v4.is_link_local(),
        IpAddr::V6(v6) => v6.is_unicast_link_local(),
    };
    let broadcast = matches!(address, IpAddr::V4(v4) if v4.is_broadcast() || v4.octets()[0] == 0);
    if address.is_unspecified() || broadcast {
        Some("it is no address of a server")
    } else if address.is_multicast() {
        Some("it is a multicast address")
    } else if link_local {
        Some("it is a link-local address, where clouds keep credentials")
    } else if METADATA.contains(&address) {
        Some("it is an address where clouds keep credentials")
    } else {
        None
    }
}

fn names_loopback(host: &str) -> bool {
    let host = host.trim_end_matches('.').to_ascii_lowercase();
    let literal = host.trim_matches(['[', ']']).parse::<IpAddr>();
    literal.is_ok_and(|address| unwrapped(address).is_loopback())
        || host == "localhost"
        || host.ends_with(".localhost")
}

/// The Pod or Service that has an address, if one has.
fn simulated(store: &Store, address: IpAddr) -> Option<String> {
    let fields = [
        ("pods", "Pod", format!("\"podIP\":\"{address}\"")),
        ("services", "Service", format!("\"clusterIP\":\"{address}\"")),
    ];
    fields.into_iter().find_map(|(plural, kind, field)| {
        let table = TableName { group: "".into(), plural: plural.into() };
        let objects = store.snapshot(&table, None).objects;
        let has = |bytes: &[u8]| bytes.windows(field.len()).any(|part| part == field.as_bytes());
        let found = objects.iter().find(|object| has(&object.bytes))?;
        Some(format!("{kind} {}", found.key.name))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judge(host: Option<&str>, address: &str) -> Result<(), String> {
        check(&Store::default(), host, address.parse().unwrap())
    }

    #[test]
    fn addresses_that_nobody_means_are_refused_in_every_form() {
        for address in [
            "0.0.0.0",
            "0.1.2.3",
            "255.255.255.255",
            "224.0.0.1",
            "169.254.169.254",
            "169.254.0.1",
            "100.100.100.200",
            "168.63.129.16",
            "::",
            "ff02::1",
            "fe80::1",
            "febf::1",
            "fd00:ec2::254",
            "::ffff:169.254.169.254",
            "::169.254.169.254",
            "64:ff9b::169.254.169.254",
            "2002:a9fe:a9fe::1",
            "::ffff:0.0.0.0",
        ] {
            let refused = judge(Some("hook.example.com"), address).expect_err(address);
            assert!(refused.starts_with("refused to call "), "{refused}");
            assert!(judge(None, address).is_err(), "{address} as an endpoint");
        }
    }

    #[test]
    fn loopback_is_for_those_who_say_it() {
        for (host, address) in [
            ("127.0.0.1", "127.0.0.1"),
            ("localhost", "::1"),
            ("[::1]", "::1"),
            ("hook.localhost.", "127.0.0.1"),
        ] {
            judge(Some(host), address).expect(host);
        }
        for address in ["127.0.0.1", "::1", "::ffff:127.0.0.1"] {
            let refused = judge(Some("rebound.example.com"), address).expect_err(address);
            assert!(refused.contains("write 127.0.0.1 or localhost"), "{refused}");
        }
        judge(None, "127.0.0.1").expect("an endpoint that somebody wrote by hand");
    }

    #[test]
    fn other_addresses_are_called() {
        for address in ["192.168.1.7", "10.0.0.7", "203.0.113.9", "2001:db8::7", "fd12::7", "::ffff:10.0.0.7"]
        {
            judge(Some("hook.example.com"), address).expect(address);
        }
    }
}
