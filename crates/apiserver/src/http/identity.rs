//! Who asks: from a certificate, a token, or a wish to be somebody else.

use http::{header, request::Parts};
use percent_encoding::percent_decode_str;

use super::ApiServer;
use crate::{
    auth::{Identity, rbac::Action, token::ISSUER},
    error::{Error, Named, Reason, Result},
};

const AUTHENTICATION: &str = "authentication.k8s.io";
const UNAUTHENTICATED: &str = "system:unauthenticated";
const EXTRA: &str = "impersonate-extra-";

impl ApiServer {
    /// The user of a request. A token counts where nothing stronger was shown.
    pub(super) fn identify(&self, parts: &Parts) -> Result<Identity> {
        let shown = parts.extensions.get::<Identity>().cloned().unwrap_or_else(Identity::anonymous);
        let asker = match bearer(parts) {
            Some(token) if shown == Identity::anonymous() => {
                let known = self.registry.authenticate(token, &[ISSUER.to_owned()]);
                let (identity, _) = known.map_err(|why| {
                    tracing::debug!(why, "refused a bearer token");
                    Error::new(Reason::Unauthorized, "Unauthorized")
                })?;
                identity
            }
            _ => shown,
        };
        match wished(parts)? {
            None => Ok(asker),
            Some(wanted) => {
                self.may_be(&asker, &wanted)?;
                Ok(completed(wanted))
            }
        }
    }

    /// Refuses to let the asker be somebody that it may not be.
    fn may_be(&self, asker: &Identity, wanted: &Identity) -> Result<()> {
        let account = service_account(&wanted.name);
        match account {
            Some((namespace, name)) => self.impersonates(asker, "", "serviceaccounts", namespace, name)?,
            None => self.impersonates(asker, "", "users", "", &wanted.name)?,
        }
        if !wanted.uid.is_empty() {
            self.impersonates(asker, AUTHENTICATION, "uids", "", &wanted.uid)?;
        }
        for group in &wanted.groups {
            self.impersonates(asker, "", "groups", "", group)?;
        }
        for (key, values) in &wanted.extra {
            for value in values {
                self.impersonates(asker, AUTHENTICATION, &format!("userextras/{key}"), "", value)?;
            }
        }
        Ok(())
    }

    fn impersonates(
        &self,
        asker: &Identity,
        group: &str,
        resource: &str,
        namespace: &str,
        name: &str,
    ) -> Result<()> {
        let action = Action::Resource { verb: "impersonate", group, resource, namespace, name };
        if self.registry.allows(asker, action) {
            return Ok(());
        }
        let scope = if namespace.is_empty() {
            "at the cluster scope".to_owned()
        } else {
            format!("in the namespace \"{namespace}\"")
        };
        let why = format!(
            "User \"{}\" cannot impersonate resource \"{resource}\" in API group \"{group}\" {scope}",
            asker.name
        );
        let resource = resource.split('/').next().unwrap_or_default();
        Err(Error::forbidden(Named { group, resource }, name, why))
    }
}

fn bearer(parts: &Parts) -> Option<&str> {
    let (scheme, token) = parts.headers.get(header::AUTHORIZATION)?.to_str().ok()?.trim().split_once(' ')?;
    let token = token.trim();
    (scheme.eq_ignore_ascii_case("bearer") && !token.is_empty()).then_some(token)
}

fn texts(parts: &Parts, name: &str) -> Vec<String> {
    let values = parts.headers.get_all(name).iter();
    values.filter_map(|value| value.to_str().ok()).map(str::to_owned).collect()
}

/// Who the request wants to be.
fn wished(parts: &Parts) -> Result<Option<Identity>> {
    let one = |name: &str| texts(parts, name).into_iter().next().unwrap_or_default();
    let mut wanted = Identity {
        name: one("impersonate-user"),
        uid: one("impersonate-uid"),
        groups: texts(parts, "impersonate-group"),
        ..Identity::default()
    };
    for name in parts.headers.keys() {
        let Some(key) = name.as_str().strip_prefix(EXTRA) else { continue };
        let key = percent_decode_str(key).decode_utf8_lossy().to_lowercase();
        wanted.extra.insert(key, texts(parts, name.as_str()));
    }
    if wanted == Identity::default() {
        return Ok(None);
    }
    if wanted.name.is_empty() {
        return Err(Error::bad_request(format!(
            "requested {} without impersonating a user name",
            shown(&wanted)
        )));
    }
    Ok(Some(wanted))
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

fn service_account(name: &str) -> Option<(&str, &str)> {
    name.strip_prefix("system:serviceaccount:")?.split_once(':')
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
