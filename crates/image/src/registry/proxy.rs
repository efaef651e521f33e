//! The proxy between us and a registry: which one, if any, as HTTPS_PROXY, HTTP_PROXY and NO_PROXY say.
//!
//! The rules are those of Go's programs, which docker and kubectl are: small letters win over capitals, whoever is on this
//! machine is never asked through a proxy, and NO_PROXY holds names, addresses and networks.

use std::{fmt, net::IpAddr};

use base64::{Engine, engine::general_purpose::STANDARD};
use http::{HeaderValue, Uri};

use super::Error;

/// The proxies of an environment.
#[derive(Clone, Debug, Default)]
pub struct Proxies {
    https: Option<Proxy>,
    http: Option<Proxy>,
    except: Vec<Exception>,
}

/// A proxy that is spoken to over plain HTTP.
#[derive(Clone)]
pub(super) struct Proxy {
    pub(super) uri: Uri,
    pub(super) authorization: Option<HeaderValue>,
}

impl fmt::Debug for Proxy {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The password must never reach a log.
        formatter.debug_struct("Proxy").field("uri", &self.uri).finish_non_exhaustive()
    }
}

/// Whom no proxy is used for, and at which port; at any without one.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Exception {
    who: Who,
    port: Option<u16>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Who {
    Everybody,
    /// A domain and what is below it; with a leading dot only what is below it.
    Domain(String),
    /// An address, and how many of its bits count.
    Network(IpAddr, u32),
}

impl Proxies {
    /// What the environment says.
    ///
    /// # Errors
    ///
    /// When a proxy is named that cannot be used: to go past it would be worse than to say so.
    pub fn from_environment(variable: impl Fn(&str) -> Option<String>) -> Result<Self, Error> {
        let value = |small: &str| {
            let capital = small.to_uppercase();
            let given = |name: &str| variable(name).filter(|value| !value.trim().is_empty());
            given(small)
                .map(|value| (small.to_owned(), value))
                .or_else(|| Some((capital.clone(), given(&capital)?)))
        };
        let proxy = |small: &str| value(small).map(|(name, value)| parse(&name, value.trim())).transpose();
        let except = value("no_proxy").map(|(_, value)| value).unwrap_or_default();
        Ok(Self {
            https: proxy("https_proxy")?,
            http: proxy("http_proxy")?,
            except: except.split(',').filter_map(exception).collect(),
        })
    }

    /// The proxy on the way to somebody.
    pub(super) fn of(&self, uri: &Uri) -> Option<&Proxy> {
        let secure = uri.scheme_str() == Some("https");
        let proxy = if secure { self.https.as_ref() } else { self.http.as_ref() }?;
        let host = uri.host()?.trim_matches(['[', ']']).to_lowercase();
        let host = host.trim_end_matches('.');
        let address: Option<IpAddr> = host.parse().ok();
        if host == "localhost" || address.is_some_and(|address| address.is_loopback()) {
            return None;
        }
        let port = uri.port_u16().unwrap_or(if secure { 443 } else { 80 });
        let excepted = self.except.iter().any(|exception| {
            exception.port.is_none_or(|only| only == port) && exception.who.is(host, address)
        });
        (!excepted).then_some(proxy)
    }
}

impl Who {
    fn is(&self, host: &str, address: Option<IpAddr>) -> bool {
        match self {
            Self::Everybody => true,
            Self::Network(network, bits) => address.is_some_and(|address| shares(*network, address, *bits)),
            Self::Domain(domain) => {
                let below = if domain.starts_with('.') { domain.clone() } else { format!(".{domain}") };
                address.is_none() && (host == domain || host.ends_with(&below))
            }
        }
    }
}

/// Whether two addresses begin with the same bits.
fn shares(one: IpAddr, other: IpAddr, bits: u32) -> bool {
    let number = |address: IpAddr| match address.to_canonical() {
        IpAddr::V4(address) => (u128::from(address.to_bits()) << 96, 32),
        IpAddr::V6(address) => (address.to_bits(), 128),
    };
    let ((one, width), (other, same)) = (number(one), number(other));
    width == same && (one ^ other).checked_shr(128 - bits.min(width)).unwrap_or(0) == 0
}

fn exception(text: &str) -> Option<Exception> {
    let text = text.trim().to_lowercase();
    if text.is_empty() {
        return None;
    }
    if text == "*" {
        return Some(Exception { who: Who::Everybody, port: None });
    }
    let network = |text: &str| -> Option<Who> {
        let (address, bits) = text.split_once('/')?;
        Some(Who::Network(address.parse().ok()?, bits.parse().ok()?))
    };
    let single = |text: &str| -> Option<Who> {
        let address: IpAddr = text.trim_matches(['[', ']']).parse().ok()?;
        Some(Who::Network(address, 128))
    };
    if let Some(who) = network(&text).or_else(|| single(&text)) {
        return Some(Exception { who, port: None });
    }
    let (host, port) = match text.rsplit_once(':') {
        Some((host, port)) => (host.to_owned(), Some(port.parse().ok()?)),
        None => (text, None),
    };
    let host = host.strip_prefix('*').unwrap_or(&host);
    let who = single(host).unwrap_or_else(|| Who::Domain(host.trim_end_matches('.').to_owned()));
    Some(Exception { who, port })
}

/// `http://NAME:PASSWORD@HOST:PORT`, of which the host alone is enough.
fn parse(variable: &str, text: &str) -> Result<Proxy, Error> {
    let wrong = |why: &str| Error::Proxy { variable: variable.to_owned(), why: why.to_owned() };
    let rest = match text.split_once("://") {
        Some(("http", rest)) => rest,
        Some((scheme, _)) => {
            return Err(wrong(&format!("{scheme}:// is not spoken to proxies here, only http://")));
        }
        None => text,
    };
    let rest = rest.split('/').next().unwrap_or_default();
    let (login, place) = match rest.rsplit_once('@') {
        Some((login, place)) => (Some(login), place),
        None => (None, rest),
    };
    if place.is_empty() || place.starts_with(':') {
        return Err(wrong("it names no host"));
    }
    let uri: Uri = format!("http://{place}").parse().map_err(|_| wrong("it is no URL"))?;
    let authorization = login.map(|login| {
        let (name, password) = login.split_once(':').unwrap_or((login, ""));
        let text = STANDARD.encode(format!("{}:{}", decoded(name), decoded(password)));
        HeaderValue::from_str(&format!("Basic {text}")).map_err(|_| wrong("its login cannot be sent"))
    });
    Ok(Proxy { uri, authorization: authorization.transpose()? })
}

/// Without the `%40` that stand for what a URL cannot hold.
fn decoded(text: &str) -> String {
    let bytes = text.as_bytes();
    let (mut out, mut at) = (Vec::new(), 0);
    while at < bytes.len() {
        let code = bytes.get(at + 1..at + 3).and_then(|code| std::str::from_utf8(code).ok());
        match code.and_then(|code| u8::from_str_radix(code, 16).ok()).filter(|_| bytes[at] == b'%') {
            Some(byte) => {
                out.push(byte);
                at += 3;
            }
            None => {
                out.push(bytes[at]);
                at += 1;
            }
        }
    }
    String::from_utf8_lossy(&out).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn proxies(pairs: &[(&str, &str)]) -> Result<Proxies, Error> {
        Proxies::from_environment(|name| {
            pairs.iter().find(|(key, _)| *key == name).map(|(_, value)| (*value).to_owned())
        })
    }

    fn way(proxies: &Proxies, uri: &str) -> Option<String> {
        proxies.of(&uri.parse().unwrap()).map(|proxy| proxy.uri.to_string())
    }

    #[test]
    fn the_proxy_of_a_scheme_is_the_one_that_is_named_for_it() {
        let found =
            proxies(&[("HTTPS_PROXY", "http://a:3128"), ("https_proxy", "b:3128"), ("HTTP_PROXY", "c")])
                .unwrap();
        assert_eq!(way(&found, "https://example.com/v2/").as_deref(), Some("http://b:3128/"));
        assert_eq!(way(&found, "http://example.com:5000/v2/").as_deref(), Some("http://c/"));
        assert_eq!(way(&proxies(&[("HTTPS_PROXY", " ")]).unwrap(), "https://example.com/"), None);
    }

    #[test]
    fn this_machine_and_whom_no_proxy_names_are_asked_directly() {
        let list =
            "example.com, .only.below, 10.0.0.0/8,[fd00::1],192.168.1.7,*.star.dev,port.dev:5000,fd01::/16";
        let found = proxies(&[("HTTPS_PROXY", "p:1"), ("NO_PROXY", list)]).unwrap();
        for direct in [
            "localhost",
            "127.0.0.2",
            "[::1]",
            "example.com",
            "EXAMPLE.com:5000",
            "a.b.example.com",
            "x.only.below",
            "10.255.0.1:5000",
            "[fd00::1]",
            "192.168.1.7",
            "a.star.dev",
            "port.dev:5000",
            "[fd01:2::3]",
        ] {
            assert_eq!(way(&found, &format!("https://{direct}/")), None, "{direct}");
        }
        for through in [
            "notexample.com",
            "only.below",
            "11.0.0.1",
            "[fd00::2]",
            "192.168.1.8",
            "port.dev",
            "10.example.org",
        ] {
            assert!(way(&found, &format!("https://{through}/")).is_some(), "{through}");
        }
        let none = proxies(&[("HTTPS_PROXY", "p:1"), ("NO_PROXY", "*")]).unwrap();
        assert_eq!(way(&none, "https://example.com/"), None);
    }

    #[test]
    fn a_login_is_decoded_and_never_shown() {
        let found = proxies(&[("HTTPS_PROXY", "http://me:p%40ss%2Fw@proxy:3128/")]).unwrap();
        let proxy = found.of(&"https://example.com/".parse().unwrap()).unwrap();
        let header = proxy.authorization.clone().unwrap();
        assert_eq!(header.to_str().unwrap(), format!("Basic {}", STANDARD.encode("me:p@ss/w")));
        let shown = format!("{found:?}");
        assert!(
            shown.contains("proxy:3128") && !shown.contains("p@ss") && !shown.contains("Basic"),
            "{shown}"
        );
    }

    #[test]
    fn a_proxy_that_cannot_be_used_is_told_and_not_gone_past() {
        for (value, word) in
            [("socks5://p:1", "socks5://"), ("https://p:1", "https://"), ("http://", "no host")]
        {
            let error = proxies(&[("HTTPS_PROXY", value)]).unwrap_err().to_string();
            assert!(error.contains("HTTPS_PROXY") && error.contains(word), "{error}");
        }
    }
}
