//! Tokens of an issuer of OpenID Connect: JSON web tokens that somebody else signs.
//!
//! The keys come from the discovery document of the configured issuer and from nowhere else, whatever a token says of
//! itself, and over TLS alone. A token that cannot be checked, because the issuer does not answer or for any other reason, is
//! refused.

mod keys;

use std::{collections::BTreeMap, time::Duration};

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use futures::future::BoxFuture;
use jiff::Timestamp;
use serde_json::Value;
use tokio::{sync::Mutex, time::Instant};

pub use self::keys::Algorithm;
use self::keys::Key;
use super::Identity;

/// How far another clock may be ahead.
const LEEWAY: i64 = 300;

/// Keys are asked for again for a token whose key is not known, but not more often than this.
const AGAIN: Duration = Duration::from_secs(1);

/// What is wrong with the options.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error("{0}")]
pub struct OidcError(String);

/// Which tokens are taken, and whose they are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OidcOptions {
    issuer: String,
    audience: String,
    /// Who has signed the issuer's certificate, as PEM; whom the system trusts, if unset.
    pub authorities: Option<String>,
    /// The claim that is the user's name; `sub` unless set.
    pub username_claim: String,
    /// What stands before the name; the issuer and `#` unless set, and nothing for `-` or for the claim `email`.
    pub username_prefix: Option<String>,
    /// The claim that has the groups.
    pub groups_claim: Option<String>,
    /// What stands before the name of a group.
    pub groups_prefix: String,
    /// Claims that must have these values.
    pub required_claims: BTreeMap<String, String>,
    /// How tokens may be signed; RS256 unless set.
    pub algorithms: Vec<Algorithm>,
}

impl OidcOptions {
    /// Tokens of an issuer that are made for an audience.
    pub fn new(issuer: &str, audience: &str) -> Result<Self, OidcError> {
        let uri: Option<http::Uri> = issuer.parse().ok();
        let secure =
            uri.as_ref().is_some_and(|uri| uri.scheme_str() == Some("https") && uri.query().is_none());
        if !secure {
            return Err(OidcError(format!("the issuer {issuer:?} must be a URL that begins with https://")));
        }
        if audience.is_empty() {
            return Err(OidcError("tokens must be made for somebody: name the client".into()));
        }
        Ok(Self {
            issuer: issuer.to_owned(),
            audience: audience.to_owned(),
            authorities: None,
            username_claim: "sub".to_owned(),
            username_prefix: None,
            groups_claim: None,
            groups_prefix: String::new(),
            required_claims: BTreeMap::new(),
            algorithms: vec![Algorithm::Rs256],
        })
    }
}

/// Recognises the tokens of one issuer.
#[derive(Debug)]
pub(crate) struct Oidc {
    options: OidcOptions,
    known: Mutex<Known>,
}

#[derive(Debug, Default)]
struct Known {
    keys: Vec<Key>,
    asked: Option<Instant>,
}

/// Gets a document from a URL, over TLS.
pub(crate) type Get<'a> = dyn Fn(String) -> BoxFuture<'a, Result<Value, String>> + Send + Sync + 'a;

/// A token, taken apart and not believed yet.
struct Parsed<'a> {
    header: Value,
    claims: Value,
    signed: &'a str,
    signature: Vec<u8>,
}

impl<'a> Parsed<'a> {
    fn of(token: &'a str) -> Option<Self> {
        let (signed, signature) = token.rsplit_once('.')?;
        let (header, claims) = signed.split_once('.')?;
        let decoded = |part: &str| -> Option<Value> {
            serde_json::from_slice(&URL_SAFE_NO_PAD.decode(part).ok()?).ok()
        };
        let (header, claims) = (decoded(header)?, decoded(claims)?);
        Some(Self { header, claims, signed, signature: URL_SAFE_NO_PAD.decode(signature).ok()? })
    }
}

impl Oidc {
    pub(crate) fn new(options: OidcOptions) -> Self {
        Self { options, known: Mutex::default() }
    }

    /// Who has signed the issuer's certificate.
    pub(crate) fn authorities(&self) -> Option<&str> {
        self.options.authorities.as_deref()
    }

    /// Whether a token claims to be of this issuer.
    pub(crate) fn is_claimed_by(&self, token: &str) -> bool {
        Parsed::of(token).is_some_and(|token| token.claims["iss"] == self.options.issuer.as_str())
    }

    /// Whose token it is. `get` fetches a document from a URL, over TLS.
    pub(crate) async fn authenticate(
        &self,
        token: &str,
        now: Timestamp,
        get: &Get<'_>,
    ) -> Result<Identity, String> {
        let token = Parsed::of(token).ok_or("it is not a JSON web token")?;
        let algorithm = token.header["alg"].as_str().unwrap_or_default();
        let algorithm = self.options.algorithms.iter().copied().find(|known| known.name() == algorithm);
        let algorithm = algorithm.ok_or("it is signed in a way that is not allowed")?;
        let id = token.header["kid"].as_str();
        let mut known = self.known.lock().await;
        if !known.keys.iter().any(|key| key.may_sign(algorithm, id)) {
            if known.asked.is_some_and(|asked| asked.elapsed() < AGAIN) {
                return Err("its key is not one of the issuer's".into());
            }
            known.asked = Some(Instant::now());
            known.keys = self.fetch(get).await?;
        }
        let mut keys = known.keys.iter().filter(|key| key.may_sign(algorithm, id));
        if !keys.any(|key| key.verifies(algorithm, token.signed.as_bytes(), &token.signature)) {
            return Err("its signature is not by a key of the issuer".into());
        }
        drop(known);
        self.identity(&token.claims, now)
    }

    /// The issuer's keys, from where its discovery document says.
    async fn fetch(&self, get: &Get<'_>) -> Result<Vec<Key>, String> {
        let issuer = &self.options.issuer;
        let document =
            get(format!("{}/.well-known/openid-configuration", issuer.trim_end_matches('/'))).await?;
        if document["issuer"] != issuer.as_str() {
            return Err(format!("the document of {issuer} is about {}", document["issuer"]));
        }
        let place = document["jwks_uri"].as_str().unwrap_or_default();
        if !place.starts_with("https://") {
            return Err(format!("the keys of {issuer} are not at a URL that begins with https://"));
        }
        let set = get(place.to_owned()).await?;
        Ok(set["keys"].as_array().into_iter().flatten().filter_map(Key::read).collect())
    }

    /// The user of claims that are the issuer's.
    fn identity(&self, claims: &Value, now: Timestamp) -> Result<Identity, String> {
        let options = &self.options;
        if claims["iss"] != options.issuer.as_str() {
            return Err("it is of another issuer".into());
        }
        let made_for = |one: &Value| one == options.audience.as_str();
        let audiences = claims["aud"].as_array();
        if !audiences.map_or_else(|| made_for(&claims["aud"]), |all| all.iter().any(made_for)) {
            return Err("it is made for somebody else".into());
        }
        let seconds = now.as_second();
        // A time may have a fraction; what is no time has passed.
        let ends = claims["exp"].as_f64().ok_or("it has no end")?;
        if ends <= seconds as f64 {
            return Err("it has expired".into());
        }
        if claims["nbf"].as_f64().is_some_and(|begins| begins > (seconds + LEEWAY) as f64) {
            return Err("it is not valid yet".into());
        }
        for (claim, value) in &options.required_claims {
            if claims[claim] != value.as_str() {
                return Err(format!("its claim {claim} is not {value:?}"));
            }
        }
        let name = claims[&options.username_claim].as_str().filter(|name| !name.is_empty());
        let name = name.ok_or_else(|| format!("it has no claim {}", options.username_claim))?;
        let is_mail = options.username_claim == "email";
        if is_mail && claims.get("email_verified").is_some_and(|verified| verified != true) {
            return Err("its mail address is not verified".into());
        }
        let prefix = match options.username_prefix.as_deref() {
            Some("-") => String::new(),
            Some(prefix) => prefix.to_owned(),
            None if is_mail => String::new(),
            None => format!("{}#", options.issuer),
        };
        let groups = options.groups_claim.as_ref().map_or(&Value::Null, |claim| &claims[claim]);
        let groups = match groups {
            Value::Null => Vec::new(),
            Value::String(one) => vec![one.as_str()],
            Value::Array(several) => {
                let texts: Option<Vec<&str>> = several.iter().map(Value::as_str).collect();
                texts.ok_or("its groups are not texts")?
            }
            _ => return Err("its groups are not texts".into()),
        };
        let groups = groups.into_iter().map(|group| format!("{}{group}", options.groups_prefix));
        let mut identity = Identity::new(format!("{prefix}{name}"), groups.collect::<Vec<_>>());
        if let Some(id) = claims["jti"].as_str() {
            let credential = "authentication.kubernetes.io/credential-id".to_owned();
            identity.extra.insert(credential, vec![format!("JTI={id}")]);
        }
        Ok(identity)
    }
}

#[cfg(test)]
mod tests;
