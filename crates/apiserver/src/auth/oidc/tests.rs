use serde_json::json;

use super::*;
use crate::auth::token::{ISSUER, Signer};

const NOW: i64 = 1_000_000;

/// An issuer whose keys are those of a signer of ours.
fn claims(change: Value) -> Value {
    let mut claims =
        json!({"iss": ISSUER, "aud": "shop", "sub": "ann", "exp": NOW + 60, "groups": ["a", "b"]});
    for (claim, value) in change.as_object().unwrap() {
        claims[claim] = value.clone();
    }
    claims
}

fn oidc(change: impl FnOnce(&mut OidcOptions)) -> Oidc {
    let mut options = OidcOptions::new(ISSUER, "shop").unwrap();
    options.algorithms = vec![Algorithm::Es256];
    options.groups_claim = Some("groups".into());
    change(&mut options);
    Oidc::new(options)
}

async fn ask(oidc: &Oidc, signer: &Signer, token: &str) -> Result<Identity, String> {
    let get = |url: String| -> BoxFuture<'_, Result<Value, String>> {
        let answer = match url.strip_prefix(ISSUER) {
            Some("/.well-known/openid-configuration") => {
                Ok(json!({"issuer": ISSUER, "jwks_uri": format!("{ISSUER}/keys")}))
            }
            Some("/keys") => Ok(signer.key_set()),
            _ => Err(format!("nobody is to be asked at {url}")),
        };
        Box::pin(std::future::ready(answer))
    };
    oidc.authenticate(token, Timestamp::from_second(NOW).unwrap(), &get).await
}

#[tokio::test]
async fn a_user_has_the_name_and_the_groups_of_the_claims() {
    let signer = Signer::generate().unwrap();
    let token = signer.sign(&claims(json!({"jti": "7"}))).unwrap();
    let user = ask(&oidc(|_| {}), &signer, &token).await.unwrap();
    assert_eq!(user.name, format!("{ISSUER}#ann"));
    assert_eq!(user.groups, ["a", "b", "system:authenticated"]);
    assert_eq!(user.extra["authentication.kubernetes.io/credential-id"], ["JTI=7"]);
    let other = oidc(|options| {
        options.username_prefix = Some("-".into());
        options.groups_prefix = "oidc:".into();
    });
    let user = ask(&other, &signer, &token).await.unwrap();
    assert_eq!((user.name.as_str(), user.groups[0].as_str()), ("ann", "oidc:a"));
    assert!(other.is_claimed_by(&token) && !other.is_claimed_by("abc") && !other.is_claimed_by("a.b.c"));
}

#[tokio::test]
async fn whatever_does_not_check_is_refused() {
    let (signer, other) = (Signer::generate().unwrap(), Signer::generate().unwrap());
    let refused = async |change: Value, why: &str| {
        let oidc = oidc(|options| {
            options.required_claims.insert("hd".into(), "x".into());
        });
        let mut all = claims(json!({"hd": "x"}));
        for (claim, value) in change.as_object().unwrap() {
            all[claim] = value.clone();
        }
        let told = ask(&oidc, &signer, &signer.sign(&all).unwrap()).await;
        match told {
            Ok(user) => assert_eq!(why, "", "{user:?}"),
            Err(error) => assert!(!why.is_empty() && error.contains(why), "{error}"),
        }
    };
    refused(json!({}), "").await;
    refused(json!({"aud": ["else", "shop"]}), "").await;
    refused(json!({"nbf": NOW + 200}), "").await;
    refused(json!({"aud": "else"}), "somebody else").await;
    refused(json!({"aud": []}), "somebody else").await;
    refused(json!({"aud": null}), "somebody else").await;
    refused(json!({"exp": NOW}), "expired").await;
    refused(json!({"exp": null}), "no end").await;
    refused(json!({"exp": "never"}), "no end").await;
    refused(json!({"nbf": NOW + 400}), "not valid yet").await;
    refused(json!({"iss": "https://else"}), "another issuer").await;
    refused(json!({"hd": "y"}), "claim hd").await;
    refused(json!({"hd": null}), "claim hd").await;
    refused(json!({"sub": ""}), "no claim sub").await;
    refused(json!({"groups": [1]}), "groups are not texts").await;
    let oidc = oidc(|_| {});
    // Another key of the same kind: its name is not among those of the issuer.
    let token = other.sign(&claims(json!({}))).unwrap();
    assert!(ask(&oidc, &signer, &token).await.unwrap_err().contains("key of the issuer"));
    // And one that claims to be a key of the issuer.
    let genuine = signer.sign(&claims(json!({}))).unwrap();
    let (header, _) = genuine.split_once('.').unwrap();
    let (_, rest) = token.split_once('.').unwrap();
    let forged = format!("{header}.{rest}");
    assert!(ask(&oidc, &signer, &forged).await.unwrap_err().contains("key of the issuer"));
    let (_, rest) = token.split_once('.').unwrap();
    for header in [json!({"alg": "none"}), json!({"alg": "HS256"}), json!({})] {
        let forged = format!("{}.{rest}", URL_SAFE_NO_PAD.encode(header.to_string()));
        assert!(ask(&oidc, &signer, &forged).await.unwrap_err().contains("not allowed"), "{header}");
    }
    for token in ["", "a", "a.b", "a.b.c", "..", "e30.e30.e30"] {
        assert!(ask(&oidc, &signer, token).await.is_err(), "{token}");
    }
}

#[tokio::test]
async fn an_issuer_that_does_not_answer_lets_nobody_in() {
    let signer = Signer::generate().unwrap();
    let token = signer.sign(&claims(json!({}))).unwrap();
    let now = Timestamp::from_second(NOW).unwrap();
    let silent = |_: String| -> BoxFuture<'_, Result<Value, String>> {
        Box::pin(std::future::ready(Err("connection refused".to_owned())))
    };
    assert_eq!(oidc(|_| {}).authenticate(&token, now, &silent).await, Err("connection refused".into()));
    // A document of somebody else's, or one that leads away from TLS.
    for document in [
        json!({"issuer": "https://else", "jwks_uri": "https://else/keys"}),
        json!({"issuer": ISSUER, "jwks_uri": "http://else/keys"}),
        json!({}),
    ] {
        let get = |url: String| -> BoxFuture<'_, Result<Value, String>> {
            assert!(url.ends_with("openid-configuration"), "keys must not be fetched from {url}");
            Box::pin(std::future::ready(Ok(document.clone())))
        };
        assert!(oidc(|_| {}).authenticate(&token, now, &get).await.is_err(), "{document}");
    }
}

#[test]
fn an_issuer_must_be_reached_over_tls() {
    for issuer in ["http://a", "a", "", "https://a?b"] {
        assert!(OidcOptions::new(issuer, "shop").is_err(), "{issuer}");
    }
    assert!(OidcOptions::new("https://a", "").is_err());
    assert_eq!(Algorithm::named("ES384"), Some(Algorithm::Es384));
    assert_eq!(Algorithm::named("HS256"), None);
}
