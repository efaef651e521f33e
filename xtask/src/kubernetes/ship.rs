//! `ship`: the whole road of a new project into a real cluster, as its author would go it. It is scaffolded, packed into an
//! image without Docker, pushed to a real registry, pulled by containerd, deployed, upgraded while somebody changes
//! objects, undone, taken out and deployed again; no object is lost on the way.
//!
//! Enters a testbed with a node; leaves it as it was. The registry listens on the loopback inside the testbed's box.

use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use fs_err as fs;

use super::kubectl::Kubectl;
use super::layout::{self, Layout};
use super::process::Identity;
use super::{cargo, inside, state};

const PORT: u16 = 5000;
const REPOSITORY: &str = "127.0.0.1:5000/team/shop-operator";
const CREATE: &str =
    "create api --group web --version v1 --kind Site --image nginx:1.27 --port 80 --make=false";
const WEBHOOK: &str =
    "create webhook --group web --version v1 --kind Site --defaulting --programmatic-validation --make=false";

pub(super) fn run(name: &str) -> Result<()> {
    let (layout, inner) = state::require_node(name)?;
    let begin = Instant::now();
    let registry = Registry::start(&layout, inner)?;
    let road = Road::prepare(&layout, inner)?;
    let outcome = road.travel();
    // Best effort: whatever was reached is removed, and the failure itself is what is reported.
    let _ = road.windlass("undeploy --delete-objects=1");
    let _ = road.windlass("uninstall");
    drop(registry);
    outcome?;
    anstream::println!("shipped in {:.0} s", begin.elapsed().as_secs_f64());
    Ok(())
}

/// The registry, which ends with the value.
struct Registry(Child);

impl Drop for Registry {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Registry {
    fn start(layout: &Layout, inner: Identity) -> Result<Self> {
        let folder = layout.path("registry");
        fs::create_dir_all(&folder)?;
        let program = folder.join("registry");
        let module = Path::new(env!("CARGO_MANIFEST_DIR")).join("registry");
        let mut go = Command::new("go");
        go.current_dir(module).env("CGO_ENABLED", "0").args(["build", "-mod=readonly", "-o"]).arg(&program);
        go.arg("github.com/distribution/distribution/v3/cmd/registry");
        ensure!(go.status().context("failed to start `go`")?.success(), "failed to build the registry");
        let (config, place) = (folder.join("config.yaml"), folder.display());
        let storage = format!("storage: {{filesystem: {{rootdirectory: {place}/data}}}}");
        let address = (Ipv4Addr::LOCALHOST, PORT);
        fs::write(
            &config,
            format!("version: 0.1\n{storage}\nhttp: {{addr: {}:{}}}\n", address.0, address.1),
        )?;
        let log = fs::File::create(folder.join("log"))?.into_parts().0;
        let mut serve = inside::nsenter(inner, false, &program);
        serve.arg("serve").arg(&config).env("OTEL_TRACES_EXPORTER", "none");
        serve.stdin(Stdio::null()).stdout(log.try_clone()?).stderr(log);
        Ok(Self(serve.spawn().context("failed to start the registry")?))
    }
}

/// The project, and the cluster that it is for.
struct Road {
    windlass: PathBuf,
    project: PathBuf,
    kubeconfig: PathBuf,
    inner: Identity,
    kubectl: Kubectl,
}

impl Road {
    fn prepare(layout: &Layout, inner: Identity) -> Result<Self> {
        ensure!(
            cargo().args(["build", "--quiet", "--package", "windlass-cli"]).status()?.success(),
            "failed to build windlass"
        );
        let target =
            std::env::var_os("CARGO_TARGET_DIR").map_or(layout::checkout().join("target"), PathBuf::from);
        let outer = target.join("ship");
        if outer.exists() {
            fs::remove_dir_all(&outer)?;
        }
        fs::create_dir_all(&outer)?;
        let kubeconfig = layout.kubeconfig();
        let kubectl = Kubectl::new(&layout::binaries()?.join("kubectl"), &kubeconfig);
        let windlass = target.join("debug/windlass");
        let road = Self { windlass, project: outer.clone(), kubeconfig, inner, kubectl };
        let sdk = layout::checkout().display().to_string();
        road.windlass(&format!("init shop-operator --domain example.com --sdk {sdk}"))?;
        let road = Self { project: outer.join("shop-operator"), ..road };
        road.windlass(CREATE)?;
        road.windlass(WEBHOOK)?;
        step("a project with a kind and webhooks is scaffolded");
        Ok(road)
    }

    fn travel(&self) -> Result<()> {
        self.windlass(&format!("image build --image {REPOSITORY}:v1"))?;
        for tag in ["v1", "v2"] {
            let push = format!("image push {REPOSITORY}:{tag} --insecure");
            let sent = self.windlass_inside(&push)?;
            ensure!(tag == "v2" || sent.contains("blobs sent"), "{sent}");
        }
        let again = self.windlass_inside(&format!("image push {REPOSITORY}:v1 --insecure"))?;
        ensure!(again.contains("nothing to send"), "{again}");
        step("its image is built without Docker and pushed; a second push sends nothing");

        let said = self.windlass(&format!("deploy --image {REPOSITORY}:v1"))?;
        ensure!(said.contains("the API server reaches the webhooks"), "{said}");
        let sample = self.project.join("config/samples/web_v1_site.yaml").display().to_string();
        self.kubectl.output(&["apply", "--filename", &sample])?;
        self.ready()?;
        let uid = self.uid()?;
        step("containerd pulls it, the operator runs, its sample becomes Ready");

        let changes = self.while_changing(|| self.windlass(&format!("deploy --image {REPOSITORY}:v2")))?;
        step(&format!("it is upgraded during {changes} changes, none of which failed"));
        self.windlass("deploy --undo")?;
        let image = self.kubectl.output(&[
            "--namespace=shop-operator-system",
            "get",
            "deployment/shop-operator",
            "--output=jsonpath={.spec.template.spec.containers[0].image}",
        ])?;
        ensure!(image == format!("{REPOSITORY}:v1"), "after --undo it runs {image}");
        step("the upgrade is undone");

        let told = self.fails(&format!("deploy --image {REPOSITORY}:nope"))?;
        ensure!(told.contains("not found") && told.contains("hint: "), "{told}");
        self.windlass("deploy --undo")?;
        step("an image that is not there is told in containerd's words, and undone");

        let kept = self.windlass("undeploy")?;
        ensure!(
            kept.contains("kept CustomResourceDefinition sites.web.example.com and its 1 objects"),
            "{kept}"
        );
        self.kubectl.output(&["wait", "--for=delete", "namespace/shop-operator-system", "--timeout=90s"])?;
        ensure!(self.uid()? == uid, "the object is another one");
        let refused = self.fails("uninstall")?;
        ensure!(refused.contains("--delete-objects=1"), "{refused}");
        step("it is taken out; its objects stay, and nothing deletes them unasked");

        self.windlass(&format!("deploy --image {REPOSITORY}:v2"))?;
        self.kubectl.output(&["scale", "site/site-sample", "--replicas=1"])?;
        self.ready()?;
        ensure!(self.uid()? == uid, "the object is another one");
        step("deployed again, it goes on with the same objects");
        Ok(())
    }

    /// Runs `windlass` in the project, and returns what it said.
    fn windlass(&self, line: &str) -> Result<String> {
        finished(line, self.arguments(Command::new(&self.windlass), line))
    }

    /// The same in the network of the box, whose loopback the registry is on.
    fn windlass_inside(&self, line: &str) -> Result<String> {
        finished(line, self.arguments(inside::nsenter(self.inner, false, &self.windlass), line))
    }

    /// What it said when it failed, as it should.
    fn fails(&self, line: &str) -> Result<String> {
        let output = self.arguments(Command::new(&self.windlass), line).output()?;
        ensure!(output.status.code() == Some(1), "`windlass {line}` ended with {}", output.status);
        Ok(String::from_utf8_lossy(&output.stderr).into_owned())
    }

    fn arguments(&self, mut command: Command, line: &str) -> Command {
        command.args(line.split(' ')).current_dir(&self.project).env("KUBECONFIG", &self.kubeconfig);
        command.stdin(Stdio::null());
        command
    }

    fn uid(&self) -> Result<String> {
        self.kubectl.output(&["get", "site/site-sample", "--output=jsonpath={.metadata.uid}"])
    }

    fn ready(&self) -> Result<()> {
        self.kubectl
            .output(&["wait", "--for=condition=Ready", "site/site-sample", "--timeout=120s"])
            .map(drop)
    }

    /// Does something while an object is changed again and again; returns how often that was. Each change goes through
    /// the operator's webhooks.
    fn while_changing(&self, work: impl FnOnce() -> Result<String>) -> Result<usize> {
        let over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let changing = scope.spawn(|| -> Result<usize> {
                for count in 1.. {
                    let note = format!("count={count}");
                    self.kubectl.output(&["annotate", "site/site-sample", "--overwrite", &note])?;
                    if over.load(Ordering::Relaxed) {
                        return Ok(count);
                    }
                    std::thread::sleep(Duration::from_millis(200));
                }
                bail!("the numbers came to an end")
            });
            let worked = work();
            over.store(true, Ordering::Relaxed);
            let changes =
                changing.join().map_err(|_| anyhow::anyhow!("whoever changed the object panicked"))?;
            worked?;
            changes.context("a change during the upgrade failed")
        })
    }
}

fn finished(line: &str, mut command: Command) -> Result<String> {
    let output = command.output().context("failed to start windlass")?;
    let said =
        format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    ensure!(output.status.success(), "`windlass {line}` ended with {}:\n{said}", output.status);
    Ok(said)
}

fn step(what: &str) {
    anstream::println!("  ok  {what}");
}
