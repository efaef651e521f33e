//! The testbed's storage system: volumes are directories of the node, made on demand, grown and removed.
//!
//! Enter claims and volumes, as kubectl's watches tell of them; leave PersistentVolumes, and directories below the run
//! directory. It does what an external provisioner and resizer do beside a real cluster, and leaves binding and
//! protection to Kubernetes' own controllers.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result};
use fs_err as fs;
use serde_json::{Value, json};

use super::kubectl::Kubectl;
use super::layout::{self, Layout};

/// The class, which is the cluster's default, and who provides for it.
const CLASS: &str = "host-path";
const PROVISIONER: &str = "windlass.dev/host-path";
const PROVISIONED_BY: &str = "pv.kubernetes.io/provisioned-by";
/// Between the end of a watch and the next one.
const RETRY: Duration = Duration::from_millis(500);

/// Provides storage until the process is killed.
pub(super) fn run(run: &Path) -> Result<()> {
    let layout = Layout::at(run)?;
    let system = Storage {
        kubectl: Kubectl::new(&layout::kubectl()?, &layout.kubeconfig()),
        root: layout.path("volumes"),
    };
    fs::create_dir_all(&system.root)?;
    system.kubectl.with_input(&["apply", "--server-side", "--filename=-"], &class().to_string())?;
    let claims = system.clone();
    thread::spawn(move || claims.follow("persistentvolumeclaims", Storage::claim));
    system.follow("persistentvolumes", Storage::volume);
    Ok(())
}

fn class() -> Value {
    json!({
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {
            "name": CLASS,
            "annotations": {"storageclass.kubernetes.io/is-default-class": "true"},
        },
        "provisioner": PROVISIONER,
        "reclaimPolicy": "Delete",
        "volumeBindingMode": "Immediate",
        "allowVolumeExpansion": true,
    })
}

#[derive(Clone)]
struct Storage {
    kubectl: Kubectl,
    root: PathBuf,
}

impl Storage {
    /// Hands every object of a kind, and every change of one, to `handle`. What fails is told, and tried again when
    /// the object changes or the watch starts anew.
    fn follow(&self, resource: &str, handle: fn(&Self, &Value) -> Result<()>) {
        loop {
            if let Err(error) = self.watch(resource, handle) {
                anstream::eprintln!("{error:#}");
            }
            thread::sleep(RETRY);
        }
    }

    fn watch(&self, resource: &str, handle: fn(&Self, &Value) -> Result<()>) -> Result<()> {
        let args = ["get", resource, "--all-namespaces", "--watch", "--output=json"];
        let mut child = self.kubectl.command(&args).stdout(Stdio::piped()).spawn()?;
        let output = child.stdout.take().context("kubectl must have an output")?;
        for object in serde_json::Deserializer::from_reader(output).into_iter::<Value>() {
            let object = object.with_context(|| format!("failed to watch {resource}"))?;
            if let Err(error) = handle(self, &object) {
                anstream::eprintln!("{error:#}");
            }
        }
        child.wait().with_context(|| format!("failed to watch {resource}"))?;
        Ok(())
    }

    /// A claim that has no volume gets one; a claim that asks for more gets more.
    fn claim(&self, claim: &Value) -> Result<()> {
        let going = !claim["metadata"]["deletionTimestamp"].is_null();
        if going || claim["spec"]["storageClassName"] != CLASS {
            return Ok(());
        }
        let name = volume_name(claim).context("a claim must have a uid")?;
        if claim["spec"]["volumeName"].is_null() {
            return self.provide(claim, &name);
        }
        let wanted = &claim["spec"]["resources"]["requests"]["storage"];
        let bound = claim["spec"]["volumeName"] == name.as_str() && claim["status"]["phase"] == "Bound";
        if bound && claim["status"]["capacity"]["storage"] != *wanted {
            return self.grow(claim, &name, wanted);
        }
        Ok(())
    }

    fn provide(&self, claim: &Value, name: &str) -> Result<()> {
        let directory = self.root.join(name);
        // Containers run as any user, and the kubelet gives a directory of the host to none of them.
        fs::create_dir_all(&directory)?;
        fs::set_permissions(&directory, std::os::unix::fs::PermissionsExt::from_mode(0o777))?;
        let volume = volume(claim, name, &directory);
        self.kubectl.with_input(&["apply", "--server-side", "--filename=-"], &volume.to_string())?;
        anstream::println!("provided {name}");
        Ok(())
    }

    /// First the volume, then what the claim is told of it, as a resizer does.
    fn grow(&self, claim: &Value, name: &str, size: &Value) -> Result<()> {
        let volume = json!({"spec": {"capacity": {"storage": size}}}).to_string();
        self.kubectl.output(&["patch", "persistentvolume", name, "--type=merge", "--patch", &volume])?;
        let status = json!({"status": {"capacity": {"storage": size}}}).to_string();
        let text = |field: &str| claim["metadata"][field].as_str().unwrap_or_default().to_owned();
        self.kubectl.output(&[
            "patch",
            "persistentvolumeclaim",
            &text("name"),
            &format!("--namespace={}", text("namespace")),
            "--subresource=status",
            "--type=merge",
            "--patch",
            &status,
        ])?;
        anstream::println!("{name} has grown to {size}");
        Ok(())
    }

    /// A volume whose claim is gone goes with all that is in it.
    fn volume(&self, volume: &Value) -> Result<()> {
        let ours = volume["metadata"]["annotations"][PROVISIONED_BY] == PROVISIONER;
        let doomed = volume["spec"]["persistentVolumeReclaimPolicy"] == "Delete";
        let going = !volume["metadata"]["deletionTimestamp"].is_null();
        if !(ours && doomed && volume["status"]["phase"] == "Released") || going {
            return Ok(());
        }
        let name = volume["metadata"]["name"].as_str().context("a volume must have a name")?;
        let directory = self.root.join(name);
        if directory.exists() {
            fs::remove_dir_all(directory)?;
        }
        self.kubectl.output(&["delete", "persistentvolume", name, "--wait=false", "--ignore-not-found"])?;
        anstream::println!("removed {name}");
        Ok(())
    }
}

fn volume_name(claim: &Value) -> Option<String> {
    claim["metadata"]["uid"].as_str().map(|uid| format!("pvc-{uid}"))
}

fn volume(claim: &Value, name: &str, directory: &Path) -> Value {
    let metadata = &claim["metadata"];
    json!({
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": name, "annotations": {PROVISIONED_BY: PROVISIONER}},
        "spec": {
            "storageClassName": CLASS,
            "capacity": {"storage": claim["spec"]["resources"]["requests"]["storage"]},
            "accessModes": claim["spec"]["accessModes"],
            "volumeMode": "Filesystem",
            "persistentVolumeReclaimPolicy": "Delete",
            "claimRef": {
                "apiVersion": "v1", "kind": "PersistentVolumeClaim", "name": metadata["name"],
                "namespace": metadata["namespace"], "uid": metadata["uid"],
            },
            "hostPath": {"path": directory, "type": "Directory"},
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_volume_is_for_one_claim_and_goes_with_it() {
        let claim = json!({
            "metadata": {"name": "data", "namespace": "shop", "uid": "u-1"},
            "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
        });
        let name = volume_name(&claim).unwrap();
        let volume = volume(&claim, &name, Path::new("/volumes/pvc-u-1"));
        assert_eq!(volume["metadata"]["name"], "pvc-u-1");
        assert_eq!(volume["spec"]["claimRef"]["uid"], "u-1");
        assert_eq!(volume["spec"]["capacity"]["storage"], "1Gi");
        assert_eq!(volume["spec"]["persistentVolumeReclaimPolicy"], "Delete");
        assert_eq!(volume["spec"]["hostPath"]["path"], "/volumes/pvc-u-1");
    }
}
