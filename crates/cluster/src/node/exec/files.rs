//! What is mounted into a container, as far as objects of the API decide it. Pure: a Pod and what it refers to enter,
//! files leave.

use std::collections::{BTreeMap, BTreeSet};

use windlass::k8s_openapi::api::core::v1::{
    Container, DownwardAPIVolumeFile, KeyToPath, Pod, ProjectedVolumeSource, Volume, VolumeMount,
    VolumeProjection,
};

use super::{environment, world::Known};

/// Files by their paths below something.
pub(super) type Tree = BTreeMap<String, Vec<u8>>;

/// What is mounted somewhere.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Content {
    Tree(Tree),
    File(Vec<u8>),
    /// Something that no object of the API decides.
    Unknown,
}

/// What is at a path.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Found<'a> {
    File(&'a [u8]),
    Directory(BTreeSet<&'a str>),
    Nothing,
    Unknown,
}

/// What is mounted into a container.
#[derive(Debug, Default)]
pub(super) struct Files(BTreeMap<String, Content>);

impl Files {
    pub(super) fn new(mounts: impl IntoIterator<Item = (String, Content)>) -> Self {
        Self(mounts.into_iter().map(|(path, content)| (normal(&path), content)).collect())
    }

    /// The files of a container.
    pub(super) fn of(pod: &Pod, container: &Container, known: &Known) -> Self {
        let volumes = pod.spec.as_ref().and_then(|spec| spec.volumes.as_deref()).unwrap_or_default();
        let mounts = container.volume_mounts.as_deref().unwrap_or_default();
        Self::new(mounts.iter().map(|mount| {
            let volume = volumes.iter().find(|volume| volume.name == mount.name);
            let tree = volume.and_then(|volume| tree(volume, pod, container, known));
            (mount.mount_path.clone(), tree.map_or(Content::Unknown, |tree| part(mount, tree)))
        }))
    }

    /// What is at an absolute path: decided by the longest mount above it.
    pub(super) fn look(&self, path: &str) -> Found<'_> {
        let path = normal(path);
        let below =
            |mount: &str| path.strip_prefix(mount).filter(|rest| rest.is_empty() || rest.starts_with('/'));
        let above = self.0.iter().filter_map(|(mount, content)| Some((below(mount)?, content)));
        let Some((rest, content)) = above.min_by_key(|(rest, _)| rest.len()) else { return Found::Unknown };
        match content {
            Content::Unknown => Found::Unknown,
            Content::File(bytes) if rest.is_empty() => Found::File(bytes),
            Content::File(_) => Found::Nothing,
            Content::Tree(tree) => inside(tree, rest.trim_start_matches('/')),
        }
    }
}

fn inside<'a>(tree: &'a Tree, path: &str) -> Found<'a> {
    if let Some(bytes) = tree.get(path) {
        return Found::File(bytes);
    }
    let prefix = if path.is_empty() { String::new() } else { format!("{path}/") };
    let below = tree.keys().filter_map(|file| file.strip_prefix(&prefix));
    let names: BTreeSet<&str> = below.filter_map(|rest| rest.split('/').next()).collect();
    if names.is_empty() && !path.is_empty() { Found::Nothing } else { Found::Directory(names) }
}

/// A path without `.`, `..` and double slashes; `/` itself is empty.
fn normal(path: &str) -> String {
    let mut parts: Vec<&str> = Vec::new();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => drop(parts.pop()),
            part => parts.push(part),
        }
    }
    parts.iter().flat_map(|part| ["/", part]).collect()
}

/// The part of a volume that is mounted.
fn part(mount: &VolumeMount, tree: Tree) -> Content {
    if mount.sub_path_expr.is_some() {
        return Content::Unknown;
    }
    let path = normal(mount.sub_path.as_deref().unwrap_or_default());
    let path = path.trim_start_matches('/');
    if path.is_empty() {
        return Content::Tree(tree);
    }
    if let Some(bytes) = tree.get(path) {
        return Content::File(bytes.clone());
    }
    let prefix = format!("{path}/");
    let below =
        tree.into_iter().filter_map(|(file, bytes)| Some((file.strip_prefix(&prefix)?.to_owned(), bytes)));
    Content::Tree(below.collect())
}

/// The files of a volume, if they are known.
fn tree(volume: &Volume, pod: &Pod, container: &Container, known: &Known) -> Option<Tree> {
    if volume.empty_dir.is_some() {
        // Nobody runs who could have written there.
        return Some(Tree::new());
    }
    if let Some(source) = &volume.config_map {
        return Some(chosen(known.config_map(&source.name), source.items.as_deref()));
    }
    if let Some(source) = &volume.secret {
        return Some(chosen(known.secret(source.secret_name.as_deref()?), source.items.as_deref()));
    }
    if let Some(source) = &volume.downward_api {
        return Some(downward(source.items.as_deref().unwrap_or_default(), pod, container, known));
    }
    volume.projected.as_ref().map(|source| projected(source, pod, container, known))
}

fn projected(source: &ProjectedVolumeSource, pod: &Pod, container: &Container, known: &Known) -> Tree {
    let sources = source.sources.as_deref().unwrap_or_default();
    sources.iter().flat_map(|one| projection(one, pod, container, known)).collect()
}

fn projection(source: &VolumeProjection, pod: &Pod, container: &Container, known: &Known) -> Tree {
    if let Some(source) = &source.config_map {
        return chosen(known.config_map(&source.name), source.items.as_deref());
    }
    if let Some(source) = &source.secret {
        return chosen(known.secret(&source.name), source.items.as_deref());
    }
    if let Some(source) = &source.downward_api {
        return downward(source.items.as_deref().unwrap_or_default(), pod, container, known);
    }
    let token = source.service_account_token.as_ref();
    let token = token.and_then(|source| Some((source.path.clone(), known.token(source)?.into())));
    token.into_iter().collect()
}

/// All keys of an object, or those that are named, where they are wanted.
fn chosen(data: Tree, items: Option<&[KeyToPath]>) -> Tree {
    match items {
        None | Some([]) => data,
        Some(items) => {
            items.iter().filter_map(|item| Some((item.path.clone(), data.get(&item.key)?.clone()))).collect()
        }
    }
}

fn downward(items: &[DownwardAPIVolumeFile], pod: &Pod, container: &Container, known: &Known) -> Tree {
    let text = |item: &DownwardAPIVolumeFile| {
        if let Some(field) = &item.field_ref {
            return environment::field(pod, &field.field_path);
        }
        environment::amount(pod, container, item.resource_field_ref.as_ref()?, known)
    };
    items.iter().filter_map(|item| Some((item.path.clone(), text(item)?.into_bytes()))).collect()
}

#[cfg(test)]
mod tests {
    use windlass::serde_json::{from_value, json};

    use super::*;

    fn files() -> Files {
        let pod: Pod = from_value(json!({
            "metadata": {"name": "one", "labels": {"b": "2", "a": "1 \"x\""}},
            "spec": {"containers": [{"name": "app", "resources": {"limits": {"cpu": "1500m"}}, "volumeMounts": [
                {"name": "conf", "mountPath": "/etc/conf/"}, {"name": "conf", "mountPath": "/etc/one", "subPath": "a.txt"},
                {"name": "sec", "mountPath": "/etc/sec"}, {"name": "info", "mountPath": "/etc/info"},
                {"name": "all", "mountPath": "/etc/all"}, {"name": "claim", "mountPath": "/data"},
                {"name": "empty", "mountPath": "/data/tmp"}]}],
            "volumes": [
                {"name": "conf", "configMap": {"name": "conf"}},
                {"name": "sec", "secret": {"secretName": "sec", "items": [{"key": "user", "path": "dir/name"}]}},
                {"name": "info", "downwardAPI": {"items": [
                    {"path": "labels", "fieldRef": {"fieldPath": "metadata.labels"}},
                    {"path": "cpu", "resourceFieldRef": {"containerName": "app", "resource": "limits.cpu"}}]}},
                {"name": "all", "projected": {"sources": [
                    {"configMap": {"name": "conf", "items": [{"key": "a.txt", "path": "a"}]}}, {"secret": {"name": "sec"}}]}},
                {"name": "claim", "persistentVolumeClaim": {"claimName": "x"}},
                {"name": "empty", "emptyDir": {}}]},
        }))
        .unwrap();
        let container = pod.spec.as_ref().unwrap().containers[0].clone();
        let known = Known {
            config_maps: [(
                "conf".into(),
                from_value(json!({"data": {"a.txt": "hello"}, "binaryData": {"c": "AAE="}})).unwrap(),
            )]
            .into(),
            secrets: [("sec".into(), from_value(json!({"data": {"user": "cm9vdA=="}})).unwrap())].into(),
            ..Known::default()
        };
        Files::of(&pod, &container, &known)
    }

    #[test]
    fn volumes_of_objects_are_files() {
        let files = files();
        assert_eq!(files.look("/etc/conf/a.txt"), Found::File(b"hello"));
        assert_eq!(files.look("/etc/conf/c"), Found::File(&[0, 1]));
        assert_eq!(files.look("/etc//one"), Found::File(b"hello"));
        assert_eq!(files.look("/etc/sec"), Found::Directory(["dir"].into()));
        assert_eq!(files.look("/etc/sec/dir/name"), Found::File(b"root"));
        assert_eq!(files.look("/etc/info/labels"), Found::File(b"a=\"1 \\\"x\\\"\"\nb=\"2\""));
        assert_eq!(files.look("/etc/info/cpu"), Found::File(b"2"));
        assert_eq!(files.look("/etc/all"), Found::Directory(["a", "user"].into()));
    }

    #[test]
    fn what_no_object_decides_is_not_known() {
        let files = files();
        assert_eq!(files.look("/etc"), Found::Unknown);
        assert_eq!(files.look("/data/x"), Found::Unknown);
        assert_eq!(files.look("/data/tmp"), Found::Directory(BTreeSet::new()));
        assert_eq!(files.look("/etc/confusing"), Found::Unknown);
        assert_eq!(files.look("/etc/conf/nothing"), Found::Nothing);
    }
}
