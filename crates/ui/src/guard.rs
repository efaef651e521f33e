//! Who may see the page: a request enters, a refusal or nothing leaves.
//!
//! The page listens on this machine alone, but so does every other program here, and a browser carries requests of any
//! site to it. So each request must name this machine as its host (a name that was rebound to it does not help), come
//! from the page itself where it says where it comes from, and bear the token: in the link that the terminal printed, or
//! in the cookie that the link leaves behind, which no script can read and no other site can send.

use std::{fmt, net::SocketAddr};

use axum::http::{
    HeaderMap, Method, StatusCode, Uri,
    header::{COOKIE, HOST, ORIGIN},
};

/// The header without which nothing is changed: a form of another site cannot send it.
pub(crate) const CHANGES: &str = "x-windlass-page";

/// What lets people in.
#[derive(Clone)]
pub(crate) struct Guard {
    token: String,
    hosts: [String; 3],
    port: u16,
}

impl fmt::Debug for Guard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Guard").field("port", &self.port).finish_non_exhaustive()
    }
}

impl Guard {
    pub(crate) fn new(address: SocketAddr) -> Result<Self, getrandom::Error> {
        use std::fmt::Write;
        let mut bytes = [0; 24];
        getrandom::fill(&mut bytes)?;
        let token = bytes.iter().fold(String::new(), |mut text, byte| {
            let _ = write!(text, "{byte:02x}");
            text
        });
        let port = address.port();
        let hosts = ["127.0.0.1", "localhost", "[::1]"].map(|host| format!("{host}:{port}"));
        Ok(Self { token, hosts, port })
    }

    /// The link for the terminal.
    pub(crate) fn url(&self) -> String {
        format!("http://127.0.0.1:{}/?token={}", self.port, self.token)
    }

    /// The cookie for whoever came by the link. Cookies know no ports: its name does, so that two pages get along.
    pub(crate) fn cookie(&self) -> String {
        format!("{}={}; HttpOnly; SameSite=Strict; Path=/", self.cookie_name(), self.token)
    }

    fn cookie_name(&self) -> String {
        format!("windlass-page-{}", self.port)
    }

    /// Why a request is refused; nothing, if it is not.
    pub(crate) fn refuse(
        &self,
        method: &Method,
        uri: &Uri,
        headers: &HeaderMap,
    ) -> Option<(StatusCode, &'static str)> {
        let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
        let host = text(HOST.as_str()).unwrap_or_default();
        if headers.get_all(HOST).iter().count() != 1
            || !self.hosts.iter().any(|known| known.eq_ignore_ascii_case(host))
        {
            return Some((
                StatusCode::MISDIRECTED_REQUEST,
                "the page is at the address that the terminal shows",
            ));
        }
        if let Some(origin) = headers.get(ORIGIN) {
            let own = origin.to_str().ok().and_then(|origin| origin.strip_prefix("http://"));
            if !own.is_some_and(|own| own.eq_ignore_ascii_case(host)) {
                return Some((StatusCode::FORBIDDEN, "requests of other origins are refused"));
            }
        }
        // A link on another site may lead here; nothing else of it may.
        let navigates =
            method == Method::GET && text("sec-fetch-mode") == Some("navigate") && uri.path() == "/";
        if matches!(text("sec-fetch-site"), Some("cross-site" | "same-site")) && !navigates {
            return Some((StatusCode::FORBIDDEN, "requests of other sites are refused"));
        }
        if !self.knows(uri, headers) {
            return Some((StatusCode::UNAUTHORIZED, "open the link with the token that the terminal shows"));
        }
        if method != Method::GET && text(CHANGES).is_none() {
            return Some((StatusCode::FORBIDDEN, "only the page itself makes changes"));
        }
        None
    }

    /// Whether a request bears the token: in the query of the front page, or in the cookie.
    fn knows(&self, uri: &Uri, headers: &HeaderMap) -> bool {
        let query = form_urlencoded::parse(uri.query().unwrap_or_default().as_bytes());
        let given = query.filter(|_| uri.path() == "/").find(|(name, _)| name == "token");
        if given.is_some_and(|(_, token)| same(&token, &self.token)) {
            return true;
        }
        let name = self.cookie_name();
        let cookies = headers.get_all(COOKIE).iter().filter_map(|cookie| cookie.to_str().ok());
        cookies.flat_map(|cookie| cookie.split(';')).any(|pair| {
            pair.trim().split_once('=').is_some_and(|(key, value)| key == name && same(value, &self.token))
        })
    }
}

/// Compares without telling by the time how much is right.
fn same(given: &str, token: &str) -> bool {
    let (given, token) = (given.as_bytes(), token.as_bytes());
    given.len() == token.len() && given.iter().zip(token).fold(0, |differ, (a, b)| differ | (a ^ b)) == 0
}

/// The headers of every answer: no script, style, image or connection but our own, in no frame, kept nowhere.
pub(crate) const HEADERS: [(&str, &str); 7] = [
    (
        "content-security-policy",
        "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'; form-action 'none'; frame-ancestors 'none'; base-uri 'none'",
    ),
    ("x-content-type-options", "nosniff"),
    ("x-frame-options", "DENY"),
    ("referrer-policy", "no-referrer"),
    ("cross-origin-resource-policy", "same-origin"),
    ("cross-origin-opener-policy", "same-origin"),
    ("cache-control", "no-store"),
];

#[cfg(test)]
mod tests {
    use super::*;

    fn guard() -> Guard {
        Guard::new("127.0.0.1:4321".parse().unwrap()).unwrap()
    }

    fn answer(guard: &Guard, method: &str, uri: &str, headers: &[(&str, &str)]) -> u16 {
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            map.append(http::HeaderName::try_from(*name).unwrap(), value.parse().unwrap());
        }
        let method = Method::try_from(method).unwrap();
        guard.refuse(&method, &uri.parse().unwrap(), &map).map_or(200, |(status, _)| status.as_u16())
    }

    #[test]
    fn only_the_token_lets_in_and_only_here() {
        let guard = guard();
        let link = format!("/?token={}", guard.token);
        let cookie = format!("a=b; windlass-page-4321={}", guard.token);
        let (host, cookie) = (("host", "127.0.0.1:4321"), ("cookie", cookie.as_str()));
        let other = format!("windlass-page-4322={}", guard.token);
        let elsewhere = format!("/events?token={}", guard.token);
        type Case<'a> = (&'a str, &'a str, &'a [(&'a str, &'a str)], u16);
        let table: [Case<'_>; 22] = [
            ("GET", &link, &[host], 200),
            ("GET", "/", &[host, cookie], 200),
            ("GET", "/", &[host], 401),
            ("GET", "/?token=", &[host], 401),
            ("GET", "/?token=0", &[host], 401),
            // The token of a link opens the front page only: it must not end up in other addresses.
            ("GET", &elsewhere, &[host], 401),
            ("GET", "/", &[host, ("cookie", &other)], 401),
            ("GET", &link, &[("host", "LOCALHOST:4321")], 200),
            ("GET", &link, &[("host", "[::1]:4321")], 200),
            // DNS rebinding: the name of another site leads to this address.
            ("GET", &link, &[("host", "evil.example:4321")], 421),
            ("GET", &link, &[("host", "127.0.0.1")], 421),
            ("GET", &link, &[("host", "127.0.0.1:4321.evil.example")], 421),
            ("GET", &link, &[], 421),
            ("GET", &link, &[host, ("host", "evil.example")], 421),
            ("GET", "/events", &[host, cookie, ("origin", "http://127.0.0.1:4321")], 200),
            ("GET", "/events", &[host, cookie, ("origin", "http://evil.example")], 403),
            ("GET", "/events", &[host, cookie, ("origin", "null")], 403),
            ("GET", "/events", &[host, cookie, ("sec-fetch-site", "cross-site")], 403),
            ("GET", &link, &[host, ("sec-fetch-site", "cross-site"), ("sec-fetch-mode", "navigate")], 200),
            ("POST", "/apply", &[host, cookie], 403),
            ("POST", "/apply", &[host, cookie, (CHANGES, "1")], 200),
            ("POST", "/apply", &[host, cookie, (CHANGES, "1"), ("origin", "https://127.0.0.1:4321")], 403),
        ];
        for (method, uri, headers, status) in table {
            assert_eq!(answer(&guard, method, uri, headers), status, "{method} {uri} {headers:?}");
        }
    }

    #[test]
    fn no_two_pages_share_a_token() {
        assert_ne!(guard().token, guard().token);
        assert_eq!(guard().token.len(), 48);
    }
}
