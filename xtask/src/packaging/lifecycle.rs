//! The Operator Lifecycle Manager itself: it installs an operator from a catalogue that opm serves, and upgrades it when
//! the catalogue has the next version.
//!
//! Its two operators and opm are processes, not Pods, in a network namespace of their own with the embedded cluster, or
//! in that of a testbed: they listen on every interface of it. The bundles are in the catalogue with all that they hold,
//! so OLM has no image to unpack; what it installs runs in Pods. On a testbed that is an operator with webhooks, which must
//! answer after the installation and after the upgrade; the embedded cluster runs no containers, so nobody would answer there.

mod webhooks;

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use fs_err as fs;

use super::tools;
use crate::kubernetes::{self, Kubectl};

/// What is installed.
struct Package {
    /// Its name among the seven.
    only: &'static str,
    crd: &'static str,
    webhooks: bool,
}

const PLAIN: Package = Package { only: "memcached", crd: "memcacheds.cache.example.com", webhooks: false };
const HOOKED: Package = Package { only: "database", crd: "databases.database.example.com", webhooks: true };

impl Package {
    fn operator(&self) -> String {
        format!("{}-operator", self.only)
    }

    fn namespace(&self) -> String {
        format!("{}-system", self.operator())
    }

    fn crd_uid(&self, kubectl: &Kubectl) -> Result<String> {
        kubectl.output(&["get", "crd", self.crd, "--output=jsonpath={.metadata.uid}"])
    }
}

const ADDRESS: &str = "127.0.0.1:50051";
/// OLM polls, and waits longer each time.
const TIMEOUT: Duration = Duration::from_mins(5);

/// Builds everything, then does the rest in a network that nobody else is in.
pub(super) fn run(name: Option<&str>) -> Result<()> {
    let tools = tools::ensure(&tools::LIFECYCLE)?;
    let kubectl = kubernetes::kubectl()?;
    let built = kubernetes::cargo().args(["build", "--package", "windlass-cli"]).status();
    ensure!(built.context("failed to start `cargo build`")?.success(), "failed to build windlass");
    let own = std::env::current_exe().context("failed to find this program")?;
    let mut arguments: Vec<OsString> = Vec::new();
    let mut inside = match name {
        Some(name) => {
            arguments.extend(["kubernetes", "exec", "--name", name, "--"].map(Into::into));
            arguments.push(own.clone().into());
            Command::new(&own)
        }
        None => {
            arguments.extend(["--net", "--map-root-user", "--"].map(Into::into));
            arguments.push(own.into());
            Command::new("unshare")
        }
    };
    arguments.extend(["packaging", "__olm"].map(Into::into));
    arguments.extend([tools.into_os_string(), kubectl.into_os_string(), windlass().into_os_string()]);
    // A testbed's kubeconfig is set by `exec`; the embedded cluster has none yet.
    let status = inside.args(arguments).env_remove("KUBECONFIG").stdin(Stdio::null()).status();
    let status = status.context("failed to start a process in a network namespace")?;
    ensure!(status.success(), "OLM did not install and upgrade the operator");
    Ok(())
}

fn windlass() -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("xtask must lie in the workspace");
    std::env::var_os("CARGO_TARGET_DIR")
        .map_or_else(|| root.join("target"), PathBuf::from)
        .join("debug/windlass")
}

/// A process that ends with its handle, and its log.
struct Process {
    child: Child,
    log: PathBuf,
}

impl Process {
    fn start(folder: &Path, name: &str, command: &mut Command) -> Result<Self> {
        let log = folder.join(format!("{name}.log"));
        let file = fs::File::create(&log)?.into_parts().0;
        command.stdin(Stdio::null()).stdout(file.try_clone()?).stderr(file);
        let child = command.spawn().with_context(|| format!("failed to start {name}"))?;
        Ok(Self { child, log })
    }

    /// How it ended, if it has.
    fn ended(&mut self) -> Result<Option<ExitStatus>> {
        Ok(self.child.try_wait()?)
    }

    fn last_lines(&self) -> String {
        let text = fs::read_to_string(&self.log).unwrap_or_default();
        let lines: Vec<&str> = text.lines().collect();
        lines[lines.len().saturating_sub(10)..].join("\n")
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Everything below runs in the network namespace.
pub(super) fn inside(tools: &Path, kubectl: &Path, windlass: &Path) -> Result<()> {
    let folder = tempfile::Builder::new().prefix("windlass-olm-").tempdir()?;
    let at = |name: &str| folder.path().join(name);
    let given = std::env::var_os("KUBECONFIG").map(PathBuf::from);
    let mut processes = Vec::new();
    let package = if given.is_some() { HOOKED } else { PLAIN };
    let (operator, namespace) = (package.operator(), package.namespace());
    let kubeconfig = match given {
        Some(given) => given,
        None => {
            let up = Command::new("ip").args(["link", "set", "lo", "up"]).status();
            ensure!(up.context("failed to start `ip`")?.success(), "failed to use the loopback interface");
            let mut command = Command::new(windlass);
            command.args(["cluster", "up", "--kubeconfig"]).arg(at("kubeconfig"));
            processes.push(Process::start(folder.path(), "cluster", &mut command)?);
            until("the cluster is up", &mut processes, || Ok(at("kubeconfig").exists()))?;
            at("kubeconfig")
        }
    };
    let kubectl = Kubectl::new(kubectl, &kubeconfig);
    for crd in crds()? {
        let path = crd.to_string_lossy().into_owned();
        kubectl.output(&["apply", "--server-side", "--force-conflicts", "-f", &path])?;
    }
    for (version, add) in [("0.1.0", true), ("0.2.0", false)] {
        bundle(windlass, &package, version, &at(version))?;
        if add {
            catalog(windlass, &at(version), &at("catalog"))?;
        }
    }
    let mut served = serve(tools, folder.path(), &at("catalog"))?;
    for (name, arguments) in [("catalog", &["--namespace", "olm"][..]), ("olm", &[])] {
        let mut command = Command::new(tools.join(name));
        command.args(arguments).env("KUBECONFIG", &kubeconfig).current_dir(folder.path());
        processes.push(Process::start(folder.path(), name, &mut command)?);
    }
    kubectl.with_input(&["apply", "-f", "-"], &subscription(&package))?;
    let begin = Instant::now();
    until("0.1.0 is installed", &mut processes, || succeeded(&kubectl, &package, "0.1.0"))?;
    anstream::println!("OLM installed {operator} 0.1.0 in {} s", begin.elapsed().as_secs());
    let uid = package.crd_uid(&kubectl)?;
    if package.webhooks {
        webhooks::prepare(&kubectl)?;
        answered(&kubectl, &mut processes)?;
    }

    catalog(windlass, &at("0.2.0"), &at("catalog"))?;
    drop(served);
    served = serve(tools, folder.path(), &at("catalog"))?;
    let begin = Instant::now();
    let mut upgrade =
        || until("0.2.0 is installed", &mut processes, || succeeded(&kubectl, &package, "0.2.0"));
    if package.webhooks {
        let asked = webhooks::while_asking(&kubectl, upgrade)?;
        // Between two versions OLM itself has another certificate issued: how long nobody is answered is its affair.
        anstream::println!("{} of {} conversions had no answer meanwhile", asked.unanswered, asked.all);
    } else {
        upgrade()?;
    }
    anstream::println!("OLM upgraded it to 0.2.0 in {} s", begin.elapsed().as_secs());
    until("0.1.0 is gone", &mut processes, || {
        Ok(!kubectl.output(&["get", "csv", "-n", &namespace, "-o", "name"])?.contains("0.1.0"))
    })?;
    ensure!(uid == package.crd_uid(&kubectl)?, "the CRD was made anew");
    if package.webhooks {
        answered(&kubectl, &mut processes)?;
        webhooks::clean(&kubectl)?;
    }
    anstream::print!("{}", kubectl.output(&["get", "csv,sub,installplan,deploy", "-n", &namespace])?);
    drop(served);
    // A testbed is as it was before; with the embedded cluster everything is gone anyway.
    kubectl.output(&["delete", "namespace", &namespace, "olm", "--wait=false"])?;
    Ok(())
}

/// Waits until the webhooks do what they are for.
fn answered(kubectl: &Kubectl, processes: &mut [Process]) -> Result<()> {
    until("a webhook refuses what it must", processes, || Ok(webhooks::refuses(kubectl)))?;
    until("an object is converted", processes, || Ok(webhooks::converts(kubectl)))?;
    anstream::println!("its webhooks refuse and convert");
    Ok(())
}

/// The kinds of OLM's own, of the version that OLM was built with.
fn crds() -> Result<Vec<PathBuf>> {
    let mut go = Command::new("go");
    go.current_dir(tools::modules().join("lifecycle"));
    go.args(["list", "-mod=readonly", "-m", "-f", "{{.Dir}}", "github.com/operator-framework/api"]);
    let output = go.output().context("failed to start `go`")?;
    let folder = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    ensure!(output.status.success() && !folder.is_empty(), "failed to find the kinds of OLM");
    let mut found = Vec::new();
    for entry in fs::read_dir(Path::new(&folder).join("crds"))? {
        let path = entry?.path();
        if path.extension().is_some_and(|end| end == "yaml") {
            found.push(path);
        }
    }
    found.sort();
    Ok(found)
}

fn bundle(windlass: &Path, package: &Package, version: &str, out: &Path) -> Result<()> {
    let mut command = Command::new(windlass);
    // One image for both versions: what is shown is the way from the one to the other.
    command
        .args(["--quiet", "operators", "bundle", "--only", package.only, "--version", version, "--out"])
        .arg(out);
    ensure!(command.status()?.success(), "failed to make a bundle");
    Ok(())
}

fn catalog(windlass: &Path, bundle: &Path, catalog: &Path) -> Result<()> {
    let mut command = Command::new(windlass);
    command.args(["--quiet", "catalog", "add"]).arg(bundle.join("bundle")).arg("--out").arg(catalog);
    ensure!(command.status()?.success(), "failed to add to the catalogue");
    Ok(())
}

fn serve(tools: &Path, folder: &Path, catalog: &Path) -> Result<Process> {
    let mut command = Command::new(tools.join("opm"));
    let port = ADDRESS.rsplit(':').next().unwrap_or_default();
    command.arg("serve").arg(catalog).args(["--pprof-addr=", "--port", port, "--termination-log"]);
    Process::start(folder, "opm", command.arg(folder.join("termination")))
}

fn subscription(package: &Package) -> String {
    let (name, operator, namespace) = (package.only, package.operator(), package.namespace());
    format!(
        "\
apiVersion: v1
kind: Namespace
metadata: {{name: olm}}
---
apiVersion: v1
kind: Namespace
metadata: {{name: {namespace}, labels: {{pod-security.kubernetes.io/enforce: restricted}}}}
---
apiVersion: operators.coreos.com/v1alpha1
kind: CatalogSource
metadata: {{name: windlass, namespace: olm}}
spec: {{sourceType: grpc, address: \"{ADDRESS}\", displayName: Windlass}}
---
apiVersion: operators.coreos.com/v1
kind: OperatorGroup
metadata: {{name: everywhere, namespace: {namespace}}}
spec: {{}}
---
apiVersion: operators.coreos.com/v1alpha1
kind: Subscription
metadata: {{name: {name}, namespace: {namespace}}}
spec: {{source: windlass, sourceNamespace: olm, name: {operator}, installPlanApproval: Automatic}}
"
    )
}

/// Whether a version is installed, and what it runs is available.
fn succeeded(kubectl: &Kubectl, package: &Package, version: &str) -> Result<bool> {
    let name = format!("{}.v{version}", package.operator());
    let phase = kubectl.output(&[
        "get",
        "csv",
        &name,
        "-n",
        &package.namespace(),
        "--ignore-not-found",
        "-o",
        "jsonpath={.status.phase}",
    ])?;
    Ok(phase == "Succeeded")
}

/// Waits for something, as long as everything else still runs.
fn until(what: &str, processes: &mut [Process], mut done: impl FnMut() -> Result<bool>) -> Result<()> {
    let begin = Instant::now();
    while !done()? {
        for process in processes.iter_mut() {
            if let Some(status) = process.ended()? {
                bail!("{} ended ({status}):\n{}", process.log.display(), process.last_lines());
            }
        }
        if begin.elapsed() > TIMEOUT {
            let logs: Vec<String> =
                processes.iter().map(|one| format!("{}:\n{}", one.log.display(), one.last_lines())).collect();
            bail!("not within {} s: {what}\n{}", TIMEOUT.as_secs(), logs.join("\n"));
        }
        std::thread::sleep(Duration::from_millis(500));
    }
    Ok(())
}
