//! Who asks: from a certificate, a token, or a wish to be somebody else.
//!
//! What a request says about that is understood or refused. Nothing of it is ever skipped: a request whose wish was
//! skipped would be answered as if it came from whoever sent it.

use futures::future::BoxFuture;
use http::{HeaderValue, header, request::Parts};
use percent_encoding::percent_decode_str;
use serde_json::Value;

use super::{ApiServer, Origin, guard::too_many};
use crate::{
    auth::{Identity, rbac::Action, token::ISSUER},
    error::{Error, Named, Reason, Result},
    registry::names::subdomain_error,
};

const AUTHENTICATION: &str = "authentication.k8s.io";
const UNAUTHENTICATED: &str = "system:unauthenticated";
const ASIDE_FROM_EXTRAS: [&str; 3] = ["impersonate-user", "impersonate-uid", "impersonate-group"];
const EXTRA: &str = "impersonate-extra-";

impl ApiServer {
    /// Who has sent a request. A token counts where nothing stronger was shown.
    pub(super) async fn authenticate(&self, parts: &Parts) -> Result<Identity> {
        let shown = parts.extensions.get::<Identity>().cloned().unwrap_or_else(Identity::anonymous);
        Ok(match bearer(parts)? {
            Some(token) if shown == Identity::anonymous() => {
                let identity = match self.tokens.get(token) {
                    Some(identity) => identity.clone(),
                    None if self.oidc.as_ref().is_some_and(|oidc| oidc.is_claimed_by(token)) => {
                        self.identify_elsewhere(token).await.map_err(unauthorized)?
                    }
                    None => self.registry.authenticate(token, &[ISSUER.to_owned()]).map_err(unauthorized)?.0,
                };
                if let Some(Origin(connection)) = parts.extensions.get::<Origin>() {
                    connection.shown(&identity).map_err(too_many)?;
                }
                identity
            }
            _ => shown,
        })
    }

    /// The user of a token that an issuer of somebody else's has signed.
    async fn identify_elsewhere(&self, token: &str) -> Result<Identity, String> {
        let Some(oidc) = &self.oidc else { return Err("there is no such issuer".into()) };
        let get = |url: String| -> BoxFuture<'_, Result<Value, String>> {
            Box::pin(self.registry.get_json(url, oidc.authorities()))
        };
        oidc.authenticate(token, self.registry.environment().now(), &get).await
    }

    /// Who a request is to be answered as, if that is somebody else than whoever sent it.
    pub(super) fn impersonate(&self, parts: &Parts, requester: &Identity) -> Result<Option<Identity>> {
        let Some(wanted) = impersonated(parts)? else { return Ok(None) };
        self.may_be(requester, &wanted)?;
        Ok(Some(completed(wanted)))
    }

    /// Refuses to let the requester be somebody that it may not be.
    fn may_be(&self, requester: &Identity, wanted: &Identity) -> Result<()> {
        let account = service_account(&wanted.name);
        match account {
            Some((namespace, name)) => {
                self.impersonates(requester, "", "serviceaccounts", namespace, name)?;
            }
            None => self.impersonates(requester, "", "users", "", &wanted.name)?,
        }
        if !wanted.uid.is_empty() {
            self.impersonates(requester, AUTHENTICATION, "uids", "", &wanted.uid)?;
        }
        for group in &wanted.groups {
            self.impersonates(requester, "", "groups", "", group)?;
        }
        for (key, values) in &wanted.extra {
            for value in values {
                self.impersonates(requester, AUTHENTICATION, &format!("userextras/{key}"), "", value)?;
            }
        }
        Ok(())
    }

    fn impersonates(
        &self,
        requester: &Identity,
        group: &str,
        resource: &str,
        namespace: &str,
        name: &str,
    ) -> Result<()> {
        let action = Action::Resource { verb: "impersonate", group, resource, namespace, name };
        if self.registry.allows(requester, action) {
            return Ok(());
        }
        let why = action.refusal(&requester.name);
        let resource = resource.split('/').next().unwrap_or_default();
        Err(Error::forbidden(Named { group, resource }, name, why))
    }
}

fn unauthorized(why: impl std::fmt::Display) -> Error {
    tracing::debug!(%why, "refused a bearer token");
    Error::new(Reason::Unauthorized, "Unauthorized")
}

/// The token of a request; another scheme, or none, is no token.
fn bearer(parts: &Parts) -> Result<Option<&str>> {
    let Some(value) = parts.headers.get(header::AUTHORIZATION) else { return Ok(None) };
    let mut words = value.as_bytes().trim_ascii().split(|byte| *byte == b' ');
    let (scheme, token) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    if !scheme.eq_ignore_ascii_case(b"bearer") || token.is_empty() {
        return Ok(None);
    }
    std::str::from_utf8(token).map(Some).map_err(unauthorized)
}

/// The values of a header. They are UTF-8 or refused.
fn texts(parts: &Parts, name: &str) -> Result<Vec<String>> {
    let values = parts.headers.get_all(name).iter();
    let text = |value: &HeaderValue| {
        std::str::from_utf8(value.as_bytes()).map(str::to_owned).map_err(|_| unreadable(name))
    };
    values.map(text).collect()
}

fn unreadable(name: &str) -> Error {
    Error::bad_request(format!(
        "the header {name} says who to impersonate in bytes that are not UTF-8: send it as UTF-8"
    ))
}

/// Who the request wants to be.
fn impersonated(parts: &Parts) -> Result<Option<Identity>> {
    let one = |name: &str| texts(parts, name).map(|texts| texts.into_iter().next().unwrap_or_default());
    let mut wanted = Identity {
        name: one("impersonate-user")?,
        uid: one("impersonate-uid")?,
        groups: texts(parts, "impersonate-group")?,
        ..Identity::default()
    };
    for name in parts.headers.keys() {
        let Some(key) = name.as_str().strip_prefix(EXTRA) else { continue };
        wanted.extra.entry(extra_key(key)?).or_default().extend(texts(parts, name.as_str())?);
    }
    let wish = |name: &str| ASIDE_FROM_EXTRAS.contains(&name) || name.starts_with(EXTRA);
    if !parts.headers.keys().any(|name| wish(name.as_str())) {
        return Ok(None);
    }
    // The real server skips names and uids that are empty and nothing else; here nobody's wish is skipped.
    if wanted.name.is_empty() {
        return Err(Error::bad_request(format!(
            "requested {} without impersonating a user name",
            shown(&wanted)
        )));
    }
    Ok(Some(wanted))
}

/// The key that the end of a header's name stands for. One that is not percent-encoded as a whole is meant as it is.
fn extra_key(encoded: &str) -> Result<String> {
    let hexadecimal =
        |text: &str| text.len() >= 2 && text.bytes().take(2).all(|byte| byte.is_ascii_hexdigit());
    if !encoded.split('%').skip(1).all(hexadecimal) {
        return Ok(encoded.to_owned());
    }
    let decoded = percent_decode_str(encoded).decode_utf8();
    decoded.map(std::borrow::Cow::into_owned).map_err(|_| unreadable(&format!("{EXTRA}{encoded}")))
}

/// The groups that a user has without being asked.
fn completed(mut wanted: Identity) -> Identity {
    if wanted.groups.is_empty()
        && let Some((namespace, name)) = service_account(&wanted.name)
    {
        wanted.groups = Identity::service_account(namespace, name).groups;
        return wanted;
    }
    let anonymous = wanted.name == Identity::anonymous().name;
    let group = if anonymous { UNAUTHENTICATED } else { "system:authenticated" };
    let settled = ["system:authenticated", UNAUTHENTICATED];
    if !wanted.groups.iter().any(|own| settled.contains(&own.as_str())) {
        wanted.groups.push(group.to_owned());
    }
    wanted
}

/// Namespace and name of a service account; what only begins like the name of one is the name of a user.
fn service_account(user: &str) -> Option<(&str, &str)> {
    let (namespace, name) = user.strip_prefix("system:serviceaccount:")?.split_once(':')?;
    let label = subdomain_error(namespace).is_none() && namespace.len() <= 63 && !namespace.contains('.');
    (label && subdomain_error(name).is_none()).then_some((namespace, name))
}

/// A user as Go prints it.
fn shown(user: &Identity) -> String {
    let list = |items: &[String]| {
        let items: Vec<String> = items.iter().map(|one| format!("{one:?}")).collect();
        format!("[]string{{{}}}", items.join(", "))
    };
    let groups = if user.groups.is_empty() { "[]string(nil)".to_owned() } else { list(&user.groups) };
    let extra = if user.extra.is_empty() {
        "map[string][]string(nil)".to_owned()
    } else {
        let items: Vec<String> =
            user.extra.iter().map(|(key, values)| format!("{key:?}:{}", list(values))).collect();
        format!("map[string][]string{{{}}}", items.join(", "))
    };
    format!("&user.DefaultInfo{{Name:{:?}, UID:{:?}, Groups:{groups}, Extra:{extra}}}", user.name, user.uid)
}
