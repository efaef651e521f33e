//! Tokens of service accounts: given out by `serviceaccounts/token`, recognised by everybody.

use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use super::{
    Attributes, Operation, Registry,
    catalog::table_of,
    decode,
    resource::text,
    write::{Target, WriteOptions},
};
use crate::{
    auth::{
        Identity,
        token::{ISSUER, LEGACY_ISSUER, Unrecognised},
        verified::Basis,
    },
    error::{Cause, Error, Named, Result},
    store::Key,
};

const CREDENTIAL: &str = "authentication.kubernetes.io/credential-id";

/// What a token can be bound to: kind, plural, and the name of the claim.
const BOUND: [(&str, &str, &str); 3] =
    [("Pod", "pods", "pod"), ("Secret", "secrets", "secret"), ("Node", "nodes", "node")];

/// What a token is asked for by.
const TOKEN_REQUEST: Named<'static> = Named { group: "authentication.k8s.io", resource: "TokenRequest" };

impl Registry {
    fn core(&self, plural: &str, namespace: &str, name: &str) -> Option<Value> {
        let namespace = if plural == "nodes" { "" } else { namespace };
        let found = self.store().get(&table_of("", plural), &Key::new(namespace, name));
        found.map(|object| decode::stored(&object))
    }

    /// Gives out a token for a service account.
    pub async fn request_token(
        &self,
        target: Target<'_>,
        request: Value,
        options: &WriteOptions,
    ) -> Result<Value> {
        let Target { namespace, name, .. } = target;
        let what = Named { group: "", resource: "serviceaccounts" };
        let attributes = Attributes::of_write(Operation::Create, target, name, options);
        let mut request = self.enter_act(&attributes, request).await?;
        let asked = text(&request, "/metadata/name");
        if !asked.is_empty() && asked != name {
            let why = "must match the service account name if specified";
            let cause = Cause::invalid("metadata.name", &json!(asked), why);
            return Err(Error::invalid(TOKEN_REQUEST, name, vec![cause]));
        }
        let account =
            self.core("serviceaccounts", namespace, name).ok_or_else(|| Error::not_found(what, name))?;
        let (uid, asked) = (text(&account, "/metadata/uid"), text(&request, "/metadata/uid"));
        if !asked.is_empty() && asked != uid {
            let why = format!(
                "the UID in the token request ({asked}) does not match the UID of the service account ({uid})"
            );
            return Err(Error::conflict(TOKEN_REQUEST, name, why));
        }
        let seconds = lifetime(&request["spec"])?;
        if request["spec"]["audiences"].as_array().is_none_or(Vec::is_empty) {
            request["spec"]["audiences"] = json!([ISSUER]);
        }
        request["spec"]["expirationSeconds"] = json!(seconds);
        request["metadata"]["name"] = json!(name);
        request["metadata"]["uid"] = json!(uid);
        request["metadata"]["creationTimestamp"] = json!(self.environment().now_text());
        request["status"] = json!({"token": "", "expirationTimestamp": null});
        self.validate_by_admission(&attributes, Some(&request), None).await?;
        let (spec, audiences) = (&request["spec"], &request["spec"]["audiences"]);
        let now = self.environment().now();
        let end = now.saturating_add(SignedDuration::from_secs(seconds)).unwrap_or(Timestamp::MAX);
        let mut own = json!({"namespace": namespace, "serviceaccount": {"name": name, "uid": uid}});
        self.bind_token(namespace, name, &spec["boundObjectRef"], &mut own)?;
        let claims = json!({
            "aud": audiences, "exp": end.as_second(), "iat": now.as_second(), "iss": ISSUER,
            "jti": self.environment().uid(), "kubernetes.io": own, "nbf": now.as_second(),
            "sub": format!("system:serviceaccount:{namespace}:{name}"),
        });
        let token = self.signer.sign(&claims).ok_or_else(|| Error::internal("failed to sign a token"))?;
        Ok(json!({
            "kind": "TokenRequest", "apiVersion": "authentication.k8s.io/v1",
            "metadata": {"name": name, "namespace": namespace, "uid": uid,
                "creationTimestamp": self.environment().now_text()},
            "spec": {"audiences": audiences, "expirationSeconds": seconds,
                "boundObjectRef": spec.get("boundObjectRef").cloned().unwrap_or_default()},
            "status": {"token": token,
                "expirationTimestamp": end.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()},
        }))
    }

    /// Adds what the token is bound to: it ends with that object.
    fn bind_token(&self, namespace: &str, account: &str, reference: &Value, own: &mut Value) -> Result<()> {
        if reference.is_null() {
            return Ok(());
        }
        let (kind, version) = (text(reference, "/kind"), text(reference, "/apiVersion"));
        let (name, uid) = (text(reference, "/name"), text(reference, "/uid"));
        let known = BOUND.iter().find(|(known, ..)| *known == kind && version == "v1");
        let Some((_, plural, claim)) = known else {
            let shown = if version.contains('/') { version.to_owned() } else { format!("/{version}") };
            let why = format!("cannot bind token to object of type {shown}, Kind={kind}");
            return Err(Error::bad_request(why));
        };
        let missing = || Error::not_found(Named { group: "", resource: plural }, name);
        let object = self.core(plural, namespace, name).ok_or_else(missing)?;
        if *claim == "pod" && text(&object, "/spec/serviceAccountName") != account {
            return Err(Error::bad_request(format!(
                "cannot bind token for serviceaccount \"{account}\" to pod running with different serviceaccount name."
            )));
        }
        let actual = text(&object, "/metadata/uid");
        if !uid.is_empty() && uid != actual {
            let why = format!(
                "the UID in the bound object reference ({uid}) does not match the UID in record. The object might have \
                 been deleted and then recreated"
            );
            return Err(Error::conflict(Named { group: "", resource: kind }, name, why));
        }
        own[*claim] = json!({"name": name, "uid": actual});
        let node = text(&object, "/spec/nodeName");
        if *claim == "pod" && !node.is_empty() {
            own["node"] = json!({"name": node});
            if let Some(found) = self.core("nodes", "", node) {
                own["node"]["uid"] = found["metadata"]["uid"].clone();
            }
        }
        Ok(())
    }

    /// How often a token was known already, and how often its signature had to be checked.
    pub(crate) fn tokens_seen(&self) -> (u64, u64) {
        self.verified.seen()
    }

    /// Whose token this is, and for which of the audiences it was made. Fails with what a review says.
    pub fn authenticate(
        &self,
        token: &str,
        audiences: &[String],
    ) -> std::result::Result<(Identity, Vec<String>), String> {
        let now = self.environment().now();
        if let Some(known) = self.verified.get(token, now) {
            let shared = shared_audiences(&known.claims, audiences, now)?;
            if known.stands(self.store()) {
                return Ok((known.identity.clone(), shared));
            }
            let mut basis = Vec::new();
            return match self.identity_of(token, &known.claims, &mut basis) {
                Some(identity) => {
                    self.verified.renew(token, &known, identity.clone(), basis);
                    Ok((identity, shared))
                }
                None => {
                    self.verified.forget(token);
                    Err(refused(INVALIDATED))
                }
            };
        }
        let claims = self.signer.verify(token).map_err(|why| match why {
            Unrecognised::Foreign => "invalid bearer token".to_owned(),
            Unrecognised::Forged => refused("go-jose/go-jose: error in cryptographic primitive"),
        })?;
        let shared = shared_audiences(&claims, audiences, now)?;
        let mut basis = Vec::new();
        let identity = self.identity_of(token, &claims, &mut basis).ok_or_else(|| refused(INVALIDATED))?;
        self.verified.put(token, claims, identity.clone(), basis, now);
        Ok((identity, shared))
    }

    /// The user of a token, and everything that says so.
    fn identity_of(&self, token: &str, claims: &Value, basis: &mut Vec<Basis>) -> Option<Identity> {
        match text(claims, "/iss") {
            LEGACY_ISSUER => self.legacy_identity(token, claims, basis),
            _ => self.bound_identity(claims, basis),
        }
    }

    /// An object that a token rests on.
    fn basis(&self, plural: &str, namespace: &str, name: &str, basis: &mut Vec<Basis>) -> Option<Value> {
        let namespace = if plural == "nodes" { "" } else { namespace };
        let (table, key) = (table_of("", plural), Key::new(namespace, name));
        let object = self.store().get(&table, &key)?;
        basis.push((table, key, object.revision));
        Some(decode::stored(&object))
    }

    /// The user of a token, as long as everything that it is bound to exists.
    fn bound_identity(&self, claims: &Value, basis: &mut Vec<Basis>) -> Option<Identity> {
        let own = &claims["kubernetes.io"];
        let namespace = text(own, "/namespace");
        let (name, uid) = (text(own, "/serviceaccount/name"), text(own, "/serviceaccount/uid"));
        let account = self.basis("serviceaccounts", namespace, name, basis)?;
        if text(&account, "/metadata/uid") != uid {
            return None;
        }
        let mut identity = Identity { uid: uid.to_owned(), ..Identity::service_account(namespace, name) };
        let mut extra = |key: &str, value: &str| {
            identity.extra.insert(format!("authentication.kubernetes.io/{key}"), vec![value.to_owned()]);
        };
        for (_, plural, claim) in BOUND {
            let Some(bound) = own.get(claim) else { continue };
            let (name, uid) = (text(bound, "/name"), text(bound, "/uid"));
            // The node of a Pod is told, but a Pod may outlive it.
            if claim != "node" || own.get("pod").is_none() {
                let found = self.basis(plural, namespace, name, basis)?;
                if text(&found, "/metadata/uid") != uid {
                    return None;
                }
            }
            if claim != "secret" {
                extra(&format!("{claim}-name"), name);
                extra(&format!("{claim}-uid"), uid);
            }
        }
        let id = format!("JTI={}", text(claims, "/jti"));
        identity.extra.insert(CREDENTIAL.into(), vec![id]);
        Some(identity)
    }

    /// The user of a token in a Secret, as long as the Secret holds it.
    fn legacy_identity(&self, token: &str, claims: &Value, basis: &mut Vec<Basis>) -> Option<Identity> {
        let claim = |name: &str| claims[format!("kubernetes.io/serviceaccount/{name}")].as_str();
        let namespace = claim("namespace")?;
        let secret = self.basis("secrets", namespace, claim("secret.name")?, basis)?;
        let held = text(&secret, "/data/token");
        let encoded = base64::Engine::encode(&base64::engine::general_purpose::STANDARD, token);
        let account = self.basis("serviceaccounts", namespace, claim("service-account.name")?, basis)?;
        let uid = claim("service-account.uid")?;
        let valid = held == encoded && text(&account, "/metadata/uid") == uid;
        let identity = Identity::service_account(namespace, claim("service-account.name")?);
        valid.then(|| Identity { uid: uid.to_owned(), ..identity })
    }

    /// Fills a Secret of type `kubernetes.io/service-account-token` with a token that does not expire.
    pub(crate) fn legacy_token(
        &self,
        namespace: &str,
        secret: &str,
        account: &str,
    ) -> Option<(String, String)> {
        let found = self.core("serviceaccounts", namespace, account)?;
        let uid = text(&found, "/metadata/uid").to_owned();
        let claims = json!({
            "iss": LEGACY_ISSUER, "kubernetes.io/serviceaccount/namespace": namespace,
            "kubernetes.io/serviceaccount/secret.name": secret,
            "kubernetes.io/serviceaccount/service-account.name": account,
            "kubernetes.io/serviceaccount/service-account.uid": uid,
            "sub": format!("system:serviceaccount:{namespace}:{account}"),
        });
        self.signer.sign(&claims).map(|token| (token, uid))
    }

    /// Answers a `TokenReview`.
    pub(super) fn review_token(&self, review: &Value) -> Result<Value> {
        let token = text(review, "/spec/token");
        if token.is_empty() {
            return Err(Error::bad_request("token is required for TokenReview in authentication"));
        }
        let asked: Vec<String> =
            serde_json::from_value(review["spec"]["audiences"].clone()).unwrap_or_default();
        let audiences = if asked.is_empty() { vec![ISSUER.to_owned()] } else { asked };
        Ok(match self.authenticate(token, &audiences) {
            Ok((user, shared)) => json!({"authenticated": true, "user": user.to_json(), "audiences": shared}),
            Err(why) => json!({"user": {}, "error": why}),
        })
    }

    /// The public keys of the tokens.
    pub fn key_set(&self) -> Value {
        self.signer.key_set()
    }
}

const INVALIDATED: &str = "service account token has been invalidated";

fn refused(why: &str) -> String {
    format!("[invalid bearer token, {why}]")
}

/// For which of the audiences a token was made, if it is valid now. One in a Secret is for all of them and has no end.
fn shared_audiences(
    claims: &Value,
    audiences: &[String],
    now: Timestamp,
) -> std::result::Result<Vec<String>, String> {
    if text(claims, "/iss") == LEGACY_ISSUER {
        return Ok(audiences.to_vec());
    }
    let own: Vec<&str> = claims["aud"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    let shared: Vec<String> = audiences.iter().filter(|one| own.contains(&one.as_str())).cloned().collect();
    if shared.is_empty() {
        let why = format!(
            "token audiences {} is invalid for the target audiences {}",
            quoted(&own),
            quoted(audiences)
        );
        return Err(refused(&why));
    }
    let now = now.as_second();
    if claims["exp"].as_i64().is_none_or(|end| now > end) {
        return Err(refused("service account token has expired"));
    }
    if claims["nbf"].as_i64().is_some_and(|start| now < start) {
        return Err(refused("service account token is not valid yet"));
    }
    Ok(shared)
}

fn lifetime(spec: &Value) -> Result<i64> {
    let seconds = spec["expirationSeconds"].as_i64().unwrap_or(3600);
    let why = if seconds < 600 {
        "may not specify a duration less than 10 minutes"
    } else if seconds > 1 << 32 {
        "may not specify a duration larger than 2^32 seconds"
    } else {
        return Ok(seconds);
    };
    let cause = Cause::invalid("spec.expirationSeconds", &json!(seconds), why);
    let what = Named { group: "authentication.k8s.io", resource: "TokenRequest" };
    Err(Error::invalid(what, "", vec![cause]))
}

/// A list as Go prints it with `%q`.
fn quoted(list: &[impl std::fmt::Debug]) -> String {
    let items: Vec<String> = list.iter().map(|one| format!("{one:?}")).collect();
    format!("[{}]", items.join(" "))
}
