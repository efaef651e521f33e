//! A scaffolded project in every format: what is packed is what it is, and its author's changes stay.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Output},
};

use crate::tools::{Place, assert_same, judge, kustomized, rendered, run, said};

struct Project(PathBuf);

impl Project {
    /// Two kinds, one of them in two versions with a conversion and webhooks.
    fn new(outer: &Path) -> Self {
        let begin = Self(outer.to_owned());
        let workspace = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap();
        begin.windlass(&format!(
            "init shop-operator --domain example.com --license mit --sdk {}",
            workspace.display()
        ));
        let project = Self(outer.join("shop-operator"));
        for line in [
            "create api --group cache --version v1alpha1 --kind Memcached --make=false",
            "create api --group cache --version v1 --kind Memcached --hub --make=false",
            "create webhook --group cache --version v1 --kind Memcached --defaulting --programmatic-validation --make=false",
            "create api --group web --version v1 --kind Site --image nginx:1.29 --port 80 --make=false",
        ] {
            project.windlass(line);
        }
        project
    }

    fn output(&self, line: &str) -> Output {
        let target = Path::new(env!("CARGO_TARGET_TMPDIR")).parent().unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_windlass"));
        command.args(line.split(' ')).current_dir(&self.0);
        // What is built is shared with the workspace.
        command.env("CARGO_TARGET_DIR", target).env("CARGO_NET_OFFLINE", "true").env_remove("RUST_LOG");
        command.output().unwrap()
    }

    fn windlass(&self, line: &str) -> String {
        let output = self.output(line);
        assert!(output.status.success(), "windlass {line}\n{}", said(&output));
        said(&output)
    }
}

#[test]
fn a_project_is_packed_in_every_format() {
    let place = Place::new();
    fs::create_dir_all(place.path("")).unwrap();
    let project = Project::new(&place.path(""));
    let root = &project.0;
    let image = "example.com/shop-operator:v0.0.1";
    project.windlass(&format!("manifests -- --image {image}"));

    // Helm, with the image that config/ names.
    project.windlass("manifests --format helm");
    run(judge("helm").args(["lint", "--strict"]).arg(root.join("chart")));
    let mut built = kustomized(&root.join("config"));
    let whole = rendered(&root.join("chart"), "shop-operator-system", &["--set", "namespace.create=true"]);
    assert_same(&whole, &built, "the project");
    built.retain(|(kind, ..), _| kind != "Namespace");
    assert_same(&rendered(&root.join("chart"), "shop-operator-system", &[]), &built, "the project");
    project.windlass("manifests --format helm --check");

    // What its author changes stays, and is told.
    let values = root.join("chart/values.yaml");
    fs::write(&values, fs::read_to_string(&values).unwrap().replace("replicas: 1", "replicas: 5")).unwrap();
    let told = project.windlass("manifests --format helm --version 0.5.0");
    assert!(told.contains("values.yaml (changed by hand") && told.contains("Chart.yaml"), "{told}");
    assert!(fs::read_to_string(&values).unwrap().contains("replicas: 5"));
    let told = project.windlass("manifests --format helm --version 0.5.0 --force --dry-run");
    assert!(
        told.contains("would write") && fs::read_to_string(&values).unwrap().contains("replicas: 5"),
        "{told}"
    );
    project.windlass("manifests --format helm --version 0.5.0 --force");
    assert!(fs::read_to_string(&values).unwrap().contains("replicas: 1"));
    let stale = project.output("manifests --format helm --version 0.6.0 --check");
    assert_eq!(stale.status.code(), Some(1), "{}", said(&stale));

    // One stream of YAML.
    let stream = project.output("manifests --format yaml");
    let mut plain = crate::tools::objects(&String::from_utf8(stream.stdout).unwrap());
    plain.retain(|(kind, ..), _| kind != "Namespace");
    assert_eq!(plain.keys().collect::<Vec<_>>(), built.keys().collect::<Vec<_>>());

    // As the Makefile does it.
    project.windlass(&format!("bundle --version 0.0.1 --image {image}"));
    let told = run(judge("verify").arg(root.join("bundle")).arg("1.37.1"));
    assert!(told.trim_end().ends_with("10 validators, 0 errors, 0 warnings"), "{told}");
    assert!(root.join("bundle.Dockerfile").is_file());
    project.windlass("catalog add");
    project.windlass(&format!("bundle --version 0.0.2 --image {image}"));
    project.windlass("catalog add");
    run(judge("opm").arg("validate").arg(root.join("catalog")));
    let told = project.windlass("catalog validate");
    assert!(told.contains("with 2 versions"), "{told}");

    // A kind alone.
    let stream = project.output("manifests --format yaml --only site");
    let text = String::from_utf8(stream.stdout).unwrap();
    let named: Vec<String> = crate::tools::objects(&text)
        .into_iter()
        .filter(|(_, object)| object.to_string().contains("memcacheds"))
        .map(|((kind, ..), _)| kind)
        .collect();
    assert_eq!(named, ["Deployment"], "which says --disable-kinds");
    let unknown = project.output("manifests --format yaml --only nothing");
    assert!(said(&unknown).contains("hint: there are memcached, site"), "{}", said(&unknown));
}
