//! The way of somebody who starts: a project, kinds of every sort, a second version, webhooks, and what they scaffold
//! compiled, tested and linted as its author would. It takes minutes, so `just walk` runs it and a plain test run does not.

#![expect(clippy::unwrap_used, reason = "a test fails where it cannot go on")]

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Output},
};

struct Walk {
    folder: PathBuf,
}

/// What cargo tells a test about its package: a build script that watches it would run again in the project, with
/// everything that depends on it.
fn of_this_package() -> impl Iterator<Item = String> {
    let names = std::env::vars().map(|(name, _)| name);
    names.filter(|name| name.starts_with("CARGO_PKG_") || name.starts_with("CARGO_MANIFEST_"))
}

fn said(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

impl Walk {
    fn run(&self, program: &str, arguments: &[&str]) -> Output {
        let target = Path::new(env!("CARGO_TARGET_TMPDIR")).parent().unwrap();
        let mut command = Command::new(program);
        // What is built is shared with the workspace.
        command.args(arguments).current_dir(&self.folder).env("CARGO_TARGET_DIR", target);
        command.env("CARGO_NET_OFFLINE", "true").env_remove("RUST_LOG");
        for variable in of_this_package() {
            command.env_remove(variable);
        }
        command.output().unwrap()
    }

    /// Fails with all that was said.
    fn windlass(&self, line: &str) -> String {
        let arguments: Vec<&str> = line.split(' ').collect();
        let output = self.run(env!("CARGO_BIN_EXE_windlass"), &arguments);
        assert!(output.status.success(), "windlass {line}\n{}", said(&output));
        said(&output)
    }

    fn cargo(&self, line: &str) -> String {
        let arguments: Vec<&str> = line.split(' ').collect();
        let output = self.run(env!("CARGO"), &arguments);
        assert!(output.status.success(), "cargo {line}\n{}", said(&output));
        said(&output)
    }
}

#[test]
fn what_is_scaffolded_compiles_passes_its_tests_and_is_free_of_warnings() {
    let workspace = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap();
    let outer = Path::new(env!("CARGO_TARGET_TMPDIR")).join("walk");
    let _ = fs::remove_dir_all(&outer);
    fs::create_dir_all(&outer).unwrap();
    let begin = Walk { folder: outer.clone() };
    begin.windlass(&format!(
        "init shop-operator --domain example.com --license mit --sdk {}",
        workspace.display()
    ));
    let walk = Walk { folder: outer.join("shop-operator") };
    // The lock file fits. Not `cargo metadata`: it asks for the crates of every system, and nothing is downloaded here.
    walk.cargo("tree --locked --quiet");

    walk.windlass("create api --group cache --version v1alpha1 --kind Memcached --make=false");
    walk.windlass("create api --group web --version v1 --kind Site --image nginx:1.29 --port 80 --finalizer --make=false");
    walk.windlass("create api --group cache --version v1 --kind Memcached --hub --make=false");
    walk.windlass("create webhook --group cache --version v1 --kind Memcached --defaulting --programmatic-validation --make=false");
    walk.windlass("create webhook --group web --version v1 --kind Site --validation --make=false");
    walk.windlass("create api --group web --version v1 --kind Type --namespaced=false --make=false");
    walk.windlass("create api --group web --version v1 --kind Plan --controller=false --make=false");
    walk.windlass("create api --external --group apps --version v1 --kind Deployment --make=false");
    walk.windlass(
        "create api --external --group cert-manager.io --version v1 --kind Certificate --make=false",
    );

    walk.cargo("fmt --check");
    walk.cargo("test");
    walk.cargo("clippy --all-targets -- -D warnings");
    walk.cargo("run --quiet -- manifests --out config");
    walk.cargo("run --quiet -- manifests --out config --check");
    let rules = fs::read_to_string(walk.folder.join("config/rbac/role.yaml")).unwrap();
    assert!(rules.contains("memcacheds"), "{rules}");

    assert!(walk.windlass("upgrade").contains("up to date"));
    walk.windlass("delete webhook --group web --version v1 --kind Site --make=false");
    walk.windlass("delete api --group web --version v1 --kind Site");
    assert!(!walk.folder.join("src/site.rs").exists());
    assert!(!walk.folder.join("config/crd/bases/web.example.com_sites.yaml").exists(), "config/ follows");
    walk.cargo("clippy --all-targets -- -D warnings");
}

#[test]
fn what_comes_from_a_go_project_compiles_passes_its_tests_and_is_free_of_warnings() {
    let workspace = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap();
    let outer = Path::new(env!("CARGO_TARGET_TMPDIR")).join("walk-go");
    let _ = fs::remove_dir_all(&outer);
    fs::create_dir_all(&outer).unwrap();
    let go = workspace.join("crates/scaffold/tests/go");
    Walk { folder: outer.clone() }.windlass(&format!(
        "init --from-kubebuilder {} --sdk {} --make=false",
        go.display(),
        workspace.display()
    ));
    let walk = Walk { folder: outer.join("cronjob-tutorial") };
    walk.cargo("fmt --check");
    walk.cargo("test");
    walk.cargo("clippy --all-targets -- -D warnings");
    walk.cargo("run --quiet -- manifests --out config");
    let crds = go.join("config/crd/bases/batch.tutorial.kubebuilder.io_cronjobs.yaml");
    let new = "config/crd/bases/batch.tutorial.kubebuilder.io_cronjobs.yaml";
    walk.windlass(&format!("crd diff {} {new}", crds.display()));

    assert!(walk.windlass("upgrade").contains("up to date"));
    walk.windlass("create api --group batch --version v2 --kind CronJob --make=false");
    walk.windlass("delete api --group batch --version v1beta1 --kind Calendar --make=false");
    walk.cargo("clippy --all-targets -- -D warnings");
    walk.windlass("delete api --group batch --version v1 --kind Calendar --make=false");
    assert!(!walk.folder.join("src/calendar/api.rs").exists());
}
