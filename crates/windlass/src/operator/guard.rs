//! Lets only those read the metrics whom the API server lets: a token is reviewed, then the access.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use axum::{
    extract::{Request, State},
    http::{HeaderMap, StatusCode, header::AUTHORIZATION},
    middleware::Next,
    response::{IntoResponse, Response},
};
use k8s_openapi::api::{
    authentication::v1::{SelfSubjectReview, TokenReview, TokenReviewSpec, UserInfo},
    authorization::v1::{NonResourceAttributes, SubjectAccessReview, SubjectAccessReviewSpec},
};
use kube::{Api, Client, api::PostParams};
use sha2::{Digest, Sha256};
use tokio::{sync::OnceCell, time::Instant};

use crate::error::chain;

/// How long an answer of the API server holds.
const REMEMBERED: Duration = Duration::from_mins(1);
/// How many answers are remembered; more means that someone is trying tokens.
const MOST: usize = 1000;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Answer {
    Allowed,
    Unknown,
    Forbidden,
}

/// The header of a token that came through the API server's proxy, which takes the usual one away.
const PROXIED: &str = "x-windlass-token";
/// What the operator's own account may read without being asked about: whoever has a token of it can do all that the
/// operator does, and so may see what it does.
const OWN: &str = "/debug/runs";

type Known = BTreeMap<Vec<u8>, (Instant, Answer)>;

/// Answers of the API server by the digest of a token and the path.
#[derive(Clone)]
pub(super) struct Guard {
    client: Client,
    known: Arc<Mutex<Known>>,
    /// The name of the operator's own account.
    own: Arc<OnceCell<Option<String>>>,
}

impl Guard {
    pub(super) fn new(client: Client) -> Self {
        Self { client, known: Arc::default(), own: Arc::default() }
    }

    async fn ask(&self, token: &str, path: &str) -> Result<Answer, kube::Error> {
        let key = Sha256::digest(format!("{path}\n{token}")).to_vec();
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner).get(&key).copied();
        if let Some((_, answer)) = known.filter(|(at, _)| at.elapsed() < REMEMBERED) {
            return Ok(answer);
        }
        let answer = match self.user(token).await? {
            None => Answer::Unknown,
            Some(user) => {
                let name = user.username.as_deref();
                let own = path == OWN && name.is_some() && name == self.own().await?;
                if own || self.allowed(user, path).await? { Answer::Allowed } else { Answer::Forbidden }
            }
        };
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if known.len() >= MOST {
            known.clear();
        }
        known.insert(key, (Instant::now(), answer));
        Ok(answer)
    }

    async fn user(&self, token: &str) -> Result<Option<UserInfo>, kube::Error> {
        let spec = TokenReviewSpec { token: token.to_owned(), ..TokenReviewSpec::default() };
        let review = TokenReview { spec, ..TokenReview::default() };
        let reviews = Api::<TokenReview>::all(self.client.clone());
        let status = reviews.create(&PostParams::default(), &review).await?.status.unwrap_or_default();
        Ok(status.user.filter(|_| status.authenticated == Some(true)))
    }

    async fn own(&self) -> Result<Option<&str>, kube::Error> {
        let ask = async || {
            let reviews = Api::<SelfSubjectReview>::all(self.client.clone());
            let review = reviews.create(&PostParams::default(), &SelfSubjectReview::default()).await?;
            Ok::<_, kube::Error>(review.status.and_then(|status| status.user_info?.username))
        };
        Ok(self.own.get_or_try_init(ask).await?.as_deref())
    }

    async fn allowed(&self, user: UserInfo, path: &str) -> Result<bool, kube::Error> {
        let spec = SubjectAccessReviewSpec {
            user: user.username,
            groups: user.groups,
            uid: user.uid,
            extra: user.extra,
            non_resource_attributes: Some(NonResourceAttributes {
                path: Some(path.to_owned()),
                verb: Some("get".to_owned()),
            }),
            ..SubjectAccessReviewSpec::default()
        };
        let review = SubjectAccessReview { spec, ..SubjectAccessReview::default() };
        let reviews = Api::<SubjectAccessReview>::all(self.client.clone());
        Ok(reviews.create(&PostParams::default(), &review).await?.status.is_some_and(|status| status.allowed))
    }
}

/// The token of a request: as everybody sends it, or as it comes through a proxy.
fn token(headers: &HeaderMap) -> Option<&str> {
    let usual = headers.get(AUTHORIZATION).and_then(|value| value.to_str().ok()?.strip_prefix("Bearer "));
    let proxied = || headers.get(PROXIED).and_then(|value| value.to_str().ok());
    usual.or_else(proxied).map(str::trim).filter(|token| !token.is_empty())
}

/// The middleware: the request goes on only if the API server says so.
pub(super) async fn check(State(guard): State<Guard>, request: Request, next: Next) -> Response {
    let Some(token) = token(request.headers()).map(ToOwned::to_owned) else {
        return (StatusCode::UNAUTHORIZED, "a bearer token is needed\n").into_response();
    };
    match guard.ask(&token, request.uri().path()).await {
        Ok(Answer::Allowed) => next.run(request).await,
        Ok(Answer::Unknown) => (StatusCode::UNAUTHORIZED, "the token is not known\n").into_response(),
        Ok(Answer::Forbidden) => (StatusCode::FORBIDDEN, "this user may not get this path\n").into_response(),
        Err(error) => {
            tracing::warn!(
                error = chain(&error),
                "failed to ask the API server about a reader of the metrics"
            );
            (StatusCode::INTERNAL_SERVER_ERROR, "the API server could not be asked\n").into_response()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_comes_as_usual_or_through_a_proxy() {
        type Headers<'a> = &'a [(&'a str, &'a str)];
        let table: [(Headers<'_>, Option<&str>); 6] = [
            (&[], None),
            (&[("authorization", "Bearer abc ")], Some("abc")),
            (&[("authorization", "Basic abc")], None),
            (&[(PROXIED, "def")], Some("def")),
            (&[("authorization", "Bearer abc"), (PROXIED, "def")], Some("abc")),
            (&[(PROXIED, " ")], None),
        ];
        for (pairs, expected) in table {
            let pairs = pairs.iter().map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap()));
            assert_eq!(token(&pairs.collect()), expected);
        }
    }
}
