//! From a challenge to the header that answers it: a password, or a token that is fetched for it.

use base64::{Engine, engine::general_purpose::STANDARD};
use http::{
    HeaderValue, Method, Request, StatusCode, Uri,
    header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE},
};
use serde::Deserialize;

use super::{
    Error, Login,
    challenge::Challenge,
    http::{Answer, Repository},
    retry::Failure,
};

/// How large a token's answer may be.
const LONGEST: usize = 1 << 20;

#[derive(Deserialize)]
struct Token {
    token: Option<String>,
    access_token: Option<String>,
}

impl Repository {
    /// The header that answers an answer of 401.
    pub(super) async fn authorize(&self, refused: &Answer) -> Result<HeaderValue, Failure> {
        let challenges = refused.headers.get_all(http::header::WWW_AUTHENTICATE);
        let challenge = Challenge::best(challenges.iter().filter_map(|value| value.to_str().ok()));
        let denied = |why: &str| Failure::Final(self.denied(why.to_owned()));
        match challenge {
            None => Err(denied("it wants to know who asks in a way that is not known here")),
            Some(Challenge::Basic) => match &self.login {
                Some(Login::Password { username, password }) => Ok(basic(username, password)?),
                Some(Login::IdentityToken(_)) => {
                    Err(denied("it takes a password, and a token is all there is"))
                }
                None => Err(denied(&refused.said())),
            },
            Some(Challenge::Bearer { realm, service, scope }) => {
                let wanted = self.scope();
                let token = self.token(&realm, service.as_deref(), &wanted, scope.as_deref()).await?;
                secret(format!("Bearer {token}"))
            }
        }
    }

    /// Fetches a token from whoever the registry trusts.
    async fn token(
        &self,
        realm: &str,
        service: Option<&str>,
        scopes: &[String],
        asked: Option<&str>,
    ) -> Result<String, Failure> {
        let odd = |why: &str| Failure::Final(self.protocol("a request without a token", why));
        let uri: Uri = realm.parse().map_err(|_| odd("the place of its tokens is no URL"))?;
        let host = uri.host().ok_or_else(|| odd("the place of its tokens is no URL"))?.to_owned();
        // A password is not sent in the open because somebody in between says so.
        let open = uri.scheme_str() != Some("https");
        if open && !self.insecure && self.login.is_some() {
            return Err(odd("its tokens come over plain HTTP, and a password would be read by anybody"));
        }
        let mut query = form_urlencoded::Serializer::new(String::new());
        if let Some(service) = service {
            query.append_pair("service", service);
        }
        if let Some(Login::IdentityToken(token)) = &self.login {
            query.append_pair("grant_type", "refresh_token").append_pair("refresh_token", token);
            query.append_pair("client_id", "windlass").append_pair("scope", &scopes.join(" "));
        } else {
            // What was asked for beyond our own wishes, as registries with other resources do.
            let more = asked
                .into_iter()
                .flat_map(|asked| asked.split(' '))
                .filter(|one| !one.starts_with("repository:"));
            for scope in scopes.iter().map(String::as_str).chain(more) {
                query.append_pair("scope", scope);
            }
        }
        let query = query.finish();
        let request = match &self.login {
            Some(Login::IdentityToken(_)) => Request::builder()
                .method(Method::POST)
                .uri(uri)
                .header(CONTENT_TYPE, "application/x-www-form-urlencoded")
                .body(query.into()),
            login => {
                let separator = if uri.query().is_some() { '&' } else { '?' };
                let mut request =
                    Request::builder().method(Method::GET).uri(format!("{uri}{separator}{query}"));
                if let Some(Login::Password { username, password }) = login {
                    request = request.header(AUTHORIZATION, basic(username, password)?);
                }
                request.header(ACCEPT, "application/json").body(bytes::Bytes::new())
            }
        };
        let request = request.map_err(|_| odd("the place of its tokens is no URL"))?;
        let answer = self.exchange(request, &host, None, LONGEST).await?;
        match answer.status {
            StatusCode::OK => {}
            StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN | StatusCode::BAD_REQUEST => {
                return Err(Failure::Final(self.denied(answer.said())));
            }
            _ => return Err(self.unexpected("a request for a token", &answer)),
        }
        let token: Token = serde_json::from_slice(&answer.body).map_err(|_| odd("its token is no JSON"))?;
        let token = token.token.or(token.access_token).filter(|token| !token.is_empty());
        token.ok_or_else(|| odd("there is no token in the answer"))
    }

    pub(super) fn denied(&self, why: String) -> Error {
        Error::Denied {
            host: self.host.clone(),
            repository: self.reference.repository().to_owned(),
            why,
            logged_in: self.login.is_some(),
        }
    }
}

fn basic(username: &str, password: &str) -> Result<HeaderValue, Failure> {
    secret(format!("Basic {}", STANDARD.encode(format!("{username}:{password}"))))
}

fn secret(text: String) -> Result<HeaderValue, Failure> {
    let mut value = HeaderValue::try_from(text).map_err(|_| {
        Failure::Final(Error::Protocol {
            host: String::new(),
            what: "a request for a token".into(),
            why: "the token has characters that no header has".into(),
        })
    })?;
    value.set_sensitive(true);
    Ok(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_password_is_encoded_and_not_printed() {
        let value = basic("me", "hunter2").ok().unwrap();
        assert_eq!(value.to_str().unwrap(), "Basic bWU6aHVudGVyMg==");
        assert_eq!(format!("{value:?}"), "Sensitive");
    }
}
