use std::fs;

use super::*;

fn password(username: &str, password: &str) -> Login {
    Login::Password { username: username.into(), password: password.into() }
}

/// Docker's configuration, as the only one.
struct Home(tempfile::TempDir);

impl Home {
    fn new(config: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join(".docker")).unwrap();
        fs::write(folder.path().join(".docker/config.json"), config).unwrap();
        Self(folder)
    }

    async fn find(&self, image: &str) -> Result<Option<Login>, CredentialsError> {
        let keyring = Keyring::from_environment(|_| None, Some(self.0.path()))?;
        keyring.find(&image.parse().unwrap()).await
    }
}

#[tokio::test]
async fn logins_are_found_under_every_name_that_docker_and_podman_write() {
    // a:b, c:d:e, f:g
    let home = Home::new(
        r#"{"auths":{"example.com":{"auth":"YTpi"},"https://old.example.com/v1/":{"auth":"YzpkOmU="},
        "https://index.docker.io/v1/":{"auth":"Zjpn"},"example.com/team":{"username":"u","password":"p"},
        "token.example.com":{"auth":"","identitytoken":"t"},"empty.example.com":{}}}"#,
    );
    assert_eq!(home.find("example.com/shop:1").await.unwrap(), Some(password("a", "b")));
    assert_eq!(home.find("example.com/team/shop:1").await.unwrap(), Some(password("u", "p")));
    assert_eq!(home.find("old.example.com/shop").await.unwrap(), Some(password("c", "d:e")));
    assert_eq!(home.find("shop").await.unwrap(), Some(password("f", "g")));
    assert_eq!(home.find("token.example.com/x").await.unwrap(), Some(Login::IdentityToken("t".into())));
    assert_eq!(home.find("empty.example.com/x").await.unwrap(), None);
    assert_eq!(home.find("other.example.com/x").await.unwrap(), None);
    // A name that only begins alike is another one.
    assert_eq!(home.find("example.com:5000/shop").await.unwrap(), None);
}

#[tokio::test]
async fn a_broken_file_is_an_error_without_its_secrets() {
    for config in
        [r#"{"auths":{"example.com":{"auth":"c2VjcmV0"#, r#"{"auths":{"example.com":{"auth":"c2VjcmV0"}}}"#]
    {
        let error = Home::new(config).find("example.com/x").await.unwrap_err();
        assert!(!error.to_string().contains("c2Vj") && !error.to_string().contains("secret"), "{error}");
        assert!(error.hint().contains("docker login"));
    }
}

#[test]
fn the_environment_decides_where_to_look() {
    let variables = BTreeMap::from([
        ("DOCKER_CONFIG", "/d"),
        ("REGISTRY_AUTH_FILE", "/r.json"),
        ("XDG_RUNTIME_DIR", "/run/1"),
    ]);
    let found = places(|name| variables.get(name).map(OsString::from), Some(Path::new("/home")));
    let expected =
        ["/r.json", "/d/config.json", "/run/1/containers/auth.json", "/home/.config/containers/auth.json"];
    assert_eq!(found, expected.map(PathBuf::from));
    assert_eq!(places(|_| None, None), Vec::<PathBuf>::new());
}

#[test]
fn secrets_are_not_printed() {
    let shown = format!("{:?} {:?}", password("me", "hunter2"), Login::IdentityToken("hunter2".into()));
    assert!(shown.contains("me") && !shown.contains("hunter2"), "{shown}");
}

#[tokio::test]
async fn a_helper_that_is_not_there_is_named() {
    let home = Home::new(
        r#"{"credHelpers":{"example.com":"windlass-nothing"},"auths":{"example.com":{"auth":"YTpi"}}}"#,
    );
    let error = home.find("example.com/x").await.unwrap_err();
    assert!(error.to_string().contains("docker-credential-windlass-nothing for example.com"), "{error}");
    assert_eq!(
        home.find("other.example.com/x").await.unwrap(),
        None,
        "it is asked for its own registry alone"
    );
}
