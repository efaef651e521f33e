//! A new project: scaffolded, packed, pushed, deployed, upgraded while somebody changes objects, undone, taken out and
//! deployed again.

use anyhow::{Result, ensure};

use super::registry::Registry;
use super::{Road, empty, step};
use crate::kubernetes::layout::{self, Layout};

const REPOSITORY: &str = "127.0.0.1:5000/team/shop-operator";
const CREATE: &str =
    "create api --group web --version v1 --kind Site --image nginx:1.27 --port 80 --make=false";
const WEBHOOK: &str =
    "create webhook --group web --version v1 --kind Site --defaulting --programmatic-validation --make=false";

pub(super) fn ship(layout: &Layout, road: Road) -> Result<()> {
    let registry = Registry::open(layout, road.inner)?;
    ensure!(REPOSITORY.starts_with(&registry.address), "the registry is at {}", registry.address);
    let project = Project::scaffold(road)?;
    let outcome = project.travel();
    // Best effort: whatever was reached is removed, and the failure itself is what is reported.
    let _ = project.road.windlass("undeploy --delete-objects=1");
    let _ = project.road.windlass("uninstall");
    outcome
}

struct Project {
    road: Road,
}

impl Project {
    fn scaffold(road: Road) -> Result<Self> {
        let outer = empty("ship")?;
        let road = Road { folder: outer.clone(), ..road };
        let sdk = layout::checkout().display().to_string();
        road.windlass(&format!("init shop-operator --domain example.com --sdk {sdk}"))?;
        let road = Road { folder: outer.join("shop-operator"), ..road };
        road.windlass(CREATE)?;
        road.windlass(WEBHOOK)?;
        step("a project with a kind and webhooks is scaffolded");
        Ok(Self { road })
    }

    fn travel(&self) -> Result<()> {
        self.road.windlass(&format!("image build --image {REPOSITORY}:v1"))?;
        for tag in ["v1", "v2"] {
            let push = format!("image push {REPOSITORY}:{tag} --insecure");
            let sent = self.road.windlass_inside(&push)?;
            ensure!(tag == "v2" || sent.contains("blobs sent"), "{sent}");
        }
        let again = self.road.windlass_inside(&format!("image push {REPOSITORY}:v1 --insecure"))?;
        ensure!(again.contains("nothing to send"), "{again}");
        step("its image is built without Docker and pushed; a second push sends nothing");

        let said = self.road.windlass(&format!("deploy --image {REPOSITORY}:v1"))?;
        ensure!(said.contains("the API server reaches the webhooks"), "{said}");
        let sample = self.road.folder.join("config/samples/web_v1_site.yaml").display().to_string();
        self.road.kubectl.output(&["apply", "--filename", &sample])?;
        self.ready()?;
        let uid = self.uid()?;
        step("containerd pulls it, the operator runs, its sample becomes Ready");

        let changes = self.road.while_changing("site/site-sample", || {
            self.road.windlass(&format!("deploy --image {REPOSITORY}:v2"))
        })?;
        step(&format!("it is upgraded during {changes} changes, none of which failed"));
        self.road.windlass("deploy --undo")?;
        let image = self.road.kubectl.output(&[
            "--namespace=shop-operator-system",
            "get",
            "deployment/shop-operator",
            "--output=jsonpath={.spec.template.spec.containers[0].image}",
        ])?;
        ensure!(image == format!("{REPOSITORY}:v1"), "after --undo it runs {image}");
        step("the upgrade is undone");

        let told = self.road.fails(&format!("deploy --image {REPOSITORY}:nope"))?;
        ensure!(told.contains("not found") && told.contains("hint: "), "{told}");
        self.road.windlass("deploy --undo")?;
        step("an image that is not there is told in containerd's words, and undone");

        let kept = self.road.windlass("undeploy")?;
        ensure!(
            kept.contains("kept CustomResourceDefinition sites.web.example.com and its 1 objects"),
            "{kept}"
        );
        self.road.kubectl.output(&[
            "wait",
            "--for=delete",
            "namespace/shop-operator-system",
            "--timeout=90s",
        ])?;
        ensure!(self.uid()? == uid, "the object is another one");
        let refused = self.road.fails("uninstall")?;
        ensure!(refused.contains("--delete-objects=1"), "{refused}");
        step("it is taken out; its objects stay, and nothing deletes them unasked");

        self.road.windlass(&format!("deploy --image {REPOSITORY}:v2"))?;
        self.road.kubectl.output(&["scale", "site/site-sample", "--replicas=1"])?;
        self.ready()?;
        ensure!(self.uid()? == uid, "the object is another one");
        step("deployed again, it goes on with the same objects");
        Ok(())
    }

    fn uid(&self) -> Result<String> {
        self.road.kubectl.output(&["get", "site/site-sample", "--output=jsonpath={.metadata.uid}"])
    }

    fn ready(&self) -> Result<()> {
        self.road
            .kubectl
            .output(&["wait", "--for=condition=Ready", "site/site-sample", "--timeout=120s"])
            .map(drop)
    }
}
