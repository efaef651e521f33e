//! What is pushed: everything, once, by whoever may.

use std::{
    fs,
    io::Write,
    os::unix::fs::PermissionsExt,
    process::{Output, Stdio},
    sync::Arc,
};

use windlass_image::{
    Layout, Reference,
    registry::{Access, Options, PushOptions, Repository, pull, push},
};

use crate::{
    author::Author,
    build::skopeo,
    registry::{Kind, PASSWORD, Registry, USER},
};

fn insecure() -> Options {
    Options { insecure: true, ..Options::default() }
}

/// Every blob of an image, and what refers to it, must come back.
async fn comes_back(layout: &Layout, image: &str) {
    let reference: Reference = image.parse().unwrap();
    let repository = Repository::open(&reference, Access::Pull, &insecure()).await.unwrap();
    let pulled = pull(&repository).await.unwrap();
    let top = layout.image(None).unwrap();
    assert_eq!(pulled.image(None).unwrap().digest, top.digest);
    let manifests = layout.manifests(top).unwrap();
    let referrers = layout.referrers(&manifests).unwrap();
    assert_eq!((manifests.len(), referrers.len()), (2, 2));
    assert_eq!(pulled.referrers(&manifests).unwrap().len(), 2);
    for manifest in manifests.iter().chain(referrers.iter().map(|(descriptor, _)| descriptor)) {
        let content = layout.manifest(&manifest.digest).unwrap();
        for blob in content.layers.iter().chain([&content.config, manifest]) {
            assert_eq!(pulled.blob(&blob.digest).unwrap(), layout.blob(&blob.digest).unwrap());
        }
    }
}

#[tokio::test]
async fn a_push_arrives_whole_and_a_second_uploads_nothing() {
    let (author, registry) = (Author::with_image(), Registry::plain());
    let image = format!("{}/team/hello:1", registry.address);
    let would = author.pushes(&format!("{image} --insecure --dry-run"));
    let first = author.pushes(&format!("{image} --insecure"));
    for field in ["uploadedBlobs", "uploadedBytes", "uploadedManifests", "digest"] {
        assert_eq!(would[field], first[field], "{field}");
    }
    // Two programs, two configurations, one layer of users; two SBOMs and the empty configuration that they share.
    assert_eq!((&first["uploadedBlobs"], &first["presentBlobs"]), (&8.into(), &0.into()));
    let second = author.pushes(&format!("{image} --insecure"));
    assert_eq!((&second["uploadedBlobs"], &second["uploadedManifests"]), (&0.into(), &0.into()));
    assert_eq!(second["presentBlobs"], 8);
    comes_back(&Layout::open(&author.image()).unwrap(), &image).await;
    let raw = skopeo(&["inspect", "--raw", "--tls-verify=false", &format!("docker://{image}")]);
    assert_eq!(windlass_image::Digest::of(raw.as_bytes()).to_string(), first["digest"].as_str().unwrap());
}

#[tokio::test]
async fn parts_and_blobs_of_another_repository_arrive_too() {
    let (author, registry) = (Author::with_image(), Registry::plain());
    let layout = Layout::open(&author.image()).unwrap();
    let image = format!("{}/team/hello:1", registry.address);
    let repository = Repository::open(&image.parse().unwrap(), Access::Push, &insecure()).await.unwrap();
    let parts = PushOptions { chunk: Some(50_000), ..PushOptions::default() };
    push(&layout, None, &repository, parts, Arc::new(|_| {})).await.unwrap();
    comes_back(&layout, &image).await;

    let other = format!("{}/other/hello:1", registry.address);
    let mounted = author.pushes(&format!("{other} --insecure --mount-from team/hello"));
    assert_eq!((&mounted["mountedBlobs"], &mounted["uploadedBlobs"]), (&8.into(), &0.into()));
    comes_back(&layout, &other).await;
}

fn with_password(author: &Author, line: &str, password: &str) -> Output {
    let mut command = author.command(line);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut running = command.spawn().unwrap();
    running.stdin.take().unwrap().write_all(format!("{password}\n").as_bytes()).unwrap();
    running.wait_with_output().unwrap()
}

#[test]
fn a_registry_with_a_password_lets_in_who_knows_it() {
    let (author, registry) = (Author::with_image(), Registry::start(Kind { password: true, tls: false }));
    let push = format!("image push {}/team/hello:1 --insecure", registry.address);
    let error = author.fails(&push);
    let expected = format!("error: the registry {} denies access to team/hello: ", registry.address);
    assert!(error.starts_with(&expected) && error.contains("hint: log in with `docker login"), "{error}");
    assert_eq!(error.lines().count(), 2, "{error}");

    let line = format!("{push} --username {USER} --password-stdin");
    let wrong = with_password(&author, &line, "wrong horse");
    let error = String::from_utf8(wrong.stderr).unwrap();
    assert!(wrong.status.code() == Some(1) && error.starts_with(&expected), "{error}");
    assert!(!error.contains("wrong horse"), "{error}");
    assert!(with_password(&author, &line, PASSWORD).status.success());

    // As `docker login` keeps it: author:correct horse.
    author.write(
        ".docker/config.json",
        &format!(r#"{{"auths":{{"{}":{{"auth":"YXV0aG9yOmNvcnJlY3QgaG9yc2U="}}}}}}"#, registry.address),
    );
    author.succeeds(&push);
}

#[test]
fn a_credential_helper_is_asked() {
    let (author, registry) = (Author::with_image(), Registry::start(Kind { password: true, tls: false }));
    let config = format!(r#"{{"credHelpers":{{"{}":"for-a-test"}}}}"#, registry.address);
    author.write(".docker/config.json", &config);
    let helper = format!(
        "#!/bin/sh\n[ \"$1\" = get ] && [ \"$(cat)\" = {} ] && echo '{{\"Username\":\"{USER}\",\"Secret\":\"{PASSWORD}\"}}'\n",
        registry.address
    );
    author.write("bin/docker-credential-for-a-test", &helper);
    let program = author.path("bin/docker-credential-for-a-test");
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    let line = format!("image push {}/team/hello:1 --insecure", registry.address);
    let error = author.fails(&line);
    assert!(error.contains("failed to ask the credential helper docker-credential-for-a-test"), "{error}");
    let mut command = author.command(&line);
    let path = format!("{}:{}", author.path("bin").display(), std::env::var("PATH").unwrap());
    crate::author::succeeds({
        command.env("PATH", path);
        command
    });
}

#[test]
fn a_private_authority_is_trusted_when_it_is_named() {
    let (author, registry) = (Author::with_image(), Registry::start(Kind { password: false, tls: true }));
    let image = format!("{}/team/hello:1", registry.address);
    let error = author.fails(&format!("image push {image}"));
    assert!(
        error.starts_with(&format!("error: failed to trust the registry {}", registry.address)),
        "{error}"
    );
    assert!(error.contains("hint: ") && error.contains("--ca-file"), "{error}");
    let first = author.pushes(&format!("{image} --ca-file {}", registry.authority().display()));
    assert_eq!(first["uploadedBlobs"], 8);
    let second = author.pushes(&format!("{image} --insecure"));
    assert_eq!(second["uploadedBlobs"], 0);
}

#[test]
fn a_tag_that_is_there_is_kept_if_that_is_asked_for() {
    let (author, registry) = (Author::with_image(), Registry::plain());
    let image = format!("{}/team/hello:1", registry.address);
    let first = author.pushes(&format!("{image} --insecure --no-clobber"));
    author.pushes(&format!("{image} --insecure --no-clobber"));
    author.succeeds("image build --label org.opencontainers.image.revision=2");
    let error = author.fails(&format!("image push {image} --insecure --no-clobber"));
    let expected = format!(
        "error: {image} is there already, with other content ({})",
        first["digest"].as_str().unwrap()
    );
    assert!(error.starts_with(&expected), "{error}");
    let replaced = author.pushes(&format!("{image} --insecure"));
    assert_ne!(replaced["digest"], first["digest"]);
}

#[test]
fn what_cannot_be_pushed_is_said_in_one_line() {
    let author = Author::with_image();
    let nobody = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let error = author.fails(&format!("image push {nobody}/hello:1"));
    assert!(error.starts_with(&format!("error: failed to reach the registry {nobody}: ")), "{error}");
    assert!(error.contains("hint: is it up"), "{error}");
    let output = author.command("image push example.com/Hello:1").output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("lower case"));
    let error = Author::new().fails(&format!("image push {nobody}/hello:1"));
    assert!(error.contains("hint: build it with `windlass image build`"), "{error}");
}
