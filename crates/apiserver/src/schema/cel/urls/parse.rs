//! A URL taken apart by the rules of Go's `net/url`, which the real server follows.
//!
//! Enters a text; leaves scheme, host, path and query, or why it is none, in Go's words. An absolute path is a URL too.

use std::{
    fmt::Write,
    net::{Ipv4Addr, Ipv6Addr},
};

/// The parts that expressions can ask for; two URLs are equal if all of their parts are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Url {
    pub(super) scheme: String,
    /// With its port and an address' brackets, decoded.
    pub(super) host: String,
    /// Encoded.
    pub(super) path: String,
    query: String,
    /// What no function gives: user, password, a path without a root, fragment.
    rest: [String; 3],
}

/// Where a text stands decides which bytes it may have.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Part {
    User,
    Host,
    Zone,
    Path,
    Query,
    Fragment,
}

impl Url {
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        if text.bytes().any(|byte| byte < b' ' || byte == 0x7f) {
            return Err("net/url: invalid control character in URL".to_owned());
        }
        if text.is_empty() {
            return Err("empty url".to_owned());
        }
        // Without its fragment, which has its own encoding; but what is wrong is wrong in both.
        Self::whole(text, true)?;
        let (text, fragment) = text.split_once('#').unwrap_or((text, ""));
        let mut url = Self::whole(text, false)?;
        url.rest[2] = decode(fragment, Part::Fragment)?;
        Ok(url)
    }

    /// Whether a path without a root and a host without a scheme will do is where Go's two readings differ.
    fn whole(text: &str, absolute: bool) -> Result<Self, String> {
        let (scheme, rest) = scheme(text)?;
        let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
        let mut url = Self {
            scheme: scheme.to_ascii_lowercase(),
            host: String::new(),
            path: String::new(),
            query: query.to_owned(),
            rest: <[String; 3]>::default(),
        };
        if text == "*" {
            "*".clone_into(&mut url.path);
            return Ok(url);
        }
        if !rest.starts_with('/') {
            if !scheme.is_empty() {
                rest.clone_into(&mut url.rest[1]);
                return Ok(url);
            }
            if absolute {
                return Err("invalid URI for request".to_owned());
            }
            if rest.split('/').next().is_some_and(|segment| segment.contains(':')) {
                return Err("first path segment in URL cannot contain colon".to_owned());
            }
        }
        let mut path = rest;
        let hosted = !scheme.is_empty() || !absolute && !rest.starts_with("///");
        if let Some(rest) = rest.strip_prefix("//").filter(|_| hosted) {
            let (authority, below) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
            path = below;
            (url.rest[0], url.host) = authority_of(&url.scheme, authority)?;
        }
        url.path = encoded(path)?;
        Ok(url)
    }

    pub(super) fn hostname(&self) -> &str {
        let host = self.host.strip_suffix(self.port()).unwrap_or(&self.host);
        let host = if self.has_port() { host.strip_suffix(':').unwrap_or(host) } else { host };
        host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host)
    }

    pub(super) fn port(&self) -> &str {
        self.host.rsplit_once(':').filter(|_| self.has_port()).map_or("", |(_, port)| port)
    }

    fn has_port(&self) -> bool {
        self.host.rsplit_once(':').is_some_and(|(_, port)| port.bytes().all(|byte| byte.is_ascii_digit()))
    }

    pub(super) fn query_pairs(&self) -> impl Iterator<Item = (String, String)> {
        let settings = self.query.split('&').filter(|setting| !setting.is_empty() && !setting.contains(';'));
        settings.filter_map(|setting| {
            let (key, value) = setting.split_once('=').unwrap_or((setting, ""));
            Some((decode(key, Part::Query).ok()?, decode(value, Part::Query).ok()?))
        })
    }
}

/// The scheme, or none, and what is behind it.
fn scheme(text: &str) -> Result<(&str, &str), String> {
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' => {}
            b'0'..=b'9' | b'+' | b'-' | b'.' if at > 0 => {}
            b':' if at == 0 => return Err("missing protocol scheme".to_owned()),
            b':' => return Ok((&text[..at], &text[at + 1..])),
            _ => break,
        }
    }
    Ok(("", text))
}

/// The user as it stands, and the host, decoded.
fn authority_of(scheme: &str, authority: &str) -> Result<(String, String), String> {
    let Some((user, host)) = authority.rsplit_once('@') else {
        return Ok((String::new(), host_of(scheme, authority)?));
    };
    let host = host_of(scheme, host)?;
    if !user.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-._:~!$&'()*+,;=%@".contains(&byte)) {
        return Err("net/url: invalid userinfo".to_owned());
    }
    decode(user, Part::User)?;
    Ok((user.to_owned(), host))
}

fn host_of(scheme: &str, host: &str) -> Result<String, String> {
    match host.rfind('[') {
        Some(0) => return address(host),
        Some(_) => return Err("invalid IP-literal".to_owned()),
        None => {}
    }
    // Databases are given several hosts, each with a port; the web never.
    let colon = if matches!(scheme, "http" | "https") { host.find(':') } else { host.rfind(':') };
    if let Some(colon) = colon {
        check_port(&host[colon..])?;
    }
    decode(host, Part::Host)
}

/// An IPv6 address in brackets, with a zone and a port perhaps.
fn address(host: &str) -> Result<String, String> {
    let close = host.rfind(']').ok_or("missing ']' in host")?;
    let (name, port) = (&host[1..close], &host[close + 1..]);
    check_port(port)?;
    let (address, zone) = name.split_at(name.find("%25").unwrap_or(name.len()));
    let (address, zone) = (decode(address, Part::Host)?, decode(zone, Part::Zone)?);
    if address.parse::<Ipv4Addr>().is_ok() {
        return Err("invalid IP-literal".to_owned());
    }
    if address.parse::<Ipv6Addr>().is_err() || zone == "%" {
        return Err(format!("invalid host: ParseAddr({:?}): unable to parse IP", address + &zone));
    }
    Ok(format!("[{address}{zone}]{port}"))
}

fn check_port(port: &str) -> Result<(), String> {
    let digits = port.strip_prefix(':').unwrap_or(port);
    let valid =
        port.is_empty() || port.len() > digits.len() && digits.bytes().all(|byte| byte.is_ascii_digit());
    if valid { Ok(()) } else { Err(format!("invalid port {port:?} after host")) }
}

/// A path as it stands if every byte may stand there, or with those encoded that may not.
fn encoded(path: &str) -> Result<String, String> {
    let decoded = decode_bytes(path, Part::Path)?;
    if path.bytes().all(|byte| in_path(byte) || b"!'()*[]%".contains(&byte)) {
        return Ok(path.to_owned());
    }
    let mut encoded = String::new();
    for byte in decoded {
        if in_path(byte) {
            encoded.push(char::from(byte));
        } else {
            let _ = write!(encoded, "%{byte:02X}");
        }
    }
    Ok(encoded)
}

fn in_path(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"-_.~$&+,/:;=@".contains(&byte)
}

fn decode(text: &str, part: Part) -> Result<String, String> {
    Ok(String::from_utf8_lossy(&decode_bytes(text, part)?).into_owned())
}

fn decode_bytes(text: &str, part: Part) -> Result<Vec<u8>, String> {
    let bytes = text.as_bytes();
    let mut decoded = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        let byte = bytes[at];
        at += 1;
        if byte == b'+' && part == Part::Query {
            decoded.push(b' ');
        } else if byte != b'%' {
            if matches!(part, Part::Host | Part::Zone) && byte.is_ascii() && !in_host(byte) {
                let shown = char::from(byte).to_string();
                return Err(format!("invalid character {shown:?} in host name"));
            }
            decoded.push(byte);
        } else {
            let escape = &bytes[at - 1..bytes.len().min(at + 2)];
            let wrong = || format!("invalid URL escape {:?}", String::from_utf8_lossy(escape));
            let digit = |digit: u8| char::from(digit).to_digit(16);
            let [_, high, low] = escape else { return Err(wrong()) };
            let (Some(high), Some(low)) = (digit(*high), digit(*low)) else { return Err(wrong()) };
            let byte = (high << 4 | low) as u8;
            // A host encodes what is not ASCII, and nothing else; the zone of an address a little more.
            let allowed = match part {
                Part::Host => !byte.is_ascii() || byte == b'%',
                Part::Zone => byte == b'%' || byte == b' ' || in_host(byte),
                _ => true,
            };
            if !allowed {
                return Err(wrong());
            }
            decoded.push(byte);
            at += 2;
        }
    }
    Ok(decoded)
}

fn in_host(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"-_.~!$&'()*+,;=:[]<>\"".contains(&byte)
}

#[cfg(test)]
mod tests;
