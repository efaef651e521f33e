//! The baseline: nothing that is known to lead out of a container.

use std::collections::BTreeSet;

use serde_json::Value;

use super::{Bound, Level, PodView, Violation, containers, plural, quoted, setters};

/// Capabilities that containers have anyway.
const CAPABILITIES: [&str; 13] = [
    "AUDIT_WRITE",
    "CHOWN",
    "DAC_OVERRIDE",
    "FOWNER",
    "FSETID",
    "KILL",
    "MKNOD",
    "NET_BIND_SERVICE",
    "SETFCAP",
    "SETGID",
    "SETPCAP",
    "SETUID",
    "SYS_CHROOT",
];

/// Kernel parameters that only change the Pod itself, and the minor version since which they may be set.
const SYSCTLS: [(&str, u32); 14] = [
    ("kernel.shm_rmid_forced", 0),
    ("net.ipv4.ip_local_port_range", 0),
    ("net.ipv4.tcp_syncookies", 0),
    ("net.ipv4.ping_group_range", 0),
    ("net.ipv4.ip_unprivileged_port_start", 0),
    ("net.ipv4.ip_local_reserved_ports", 27),
    ("net.ipv4.tcp_keepalive_time", 29),
    ("net.ipv4.tcp_fin_timeout", 29),
    ("net.ipv4.tcp_keepalive_intvl", 29),
    ("net.ipv4.tcp_keepalive_probes", 29),
    ("net.ipv4.tcp_rmem", 32),
    ("net.ipv4.tcp_wmem", 32),
    ("net.ipv4.tcp_slow_start_after_idle", 37),
    ("net.ipv4.tcp_notsent_lowat", 37),
];

type Check = fn(&PodView<'_>, Bound) -> Option<Violation>;

/// What the baseline forbids, in the order in which it is told. A stricter level has its own word on some of it.
pub(super) fn violations(bound: Bound, pod: &Value) -> Vec<Violation> {
    let seen = PodView { pod };
    let strict = bound.level == Level::Restricted;
    let checks: [(Check, bool); 12] = [
        (app_armor, true),
        (capabilities, !(strict && bound.since(22))),
        (host_namespaces, true),
        (host_paths, !strict),
        (host_ports, true),
        (probed_hosts, bound.since(34)),
        (privileged, true),
        (proc_mount, !(strict && bound.since(35))),
        (se_linux, true),
        (seccomp, !(strict && bound.since(19))),
        (sysctls, true),
        (host_process, true),
    ];
    checks.iter().filter(|(_, applies)| *applies).filter_map(|(check, _)| check(&seen, bound)).collect()
}

/// The types of a kind of profile that are not allowed, and who sets them.
pub(super) fn bad_profiles<'a>(
    seen: &PodView<'a>,
    field: &str,
    allowed: &[&str],
) -> (bool, Vec<&'a str>, BTreeSet<&'a str>) {
    let bad = |holder: &'a Value| -> Option<&'a str> {
        let profile = &holder["securityContext"][field];
        let kind = profile["type"].as_str().unwrap_or_default();
        (profile.is_object() && !allowed.contains(&kind)).then_some(kind)
    };
    let of_pod = bad(seen.spec());
    let mut values: BTreeSet<&str> = of_pod.into_iter().collect();
    let names = seen.named(|container| {
        let found = bad(container);
        values.extend(found);
        found.is_some()
    });
    (of_pod.is_some(), names, values)
}

fn app_armor(seen: &PodView<'_>, _: Bound) -> Option<Violation> {
    let (of_pod, names, values) = bad_profiles(seen, "appArmorProfile", &["RuntimeDefault", "Localhost"]);
    let allowed =
        |value: &str| value.is_empty() || value == "runtime/default" || value.starts_with("localhost/");
    let annotated: BTreeSet<String> = seen
        .annotations()
        .filter(|(key, value)| {
            key.starts_with("container.apparmor.security.beta.kubernetes.io/") && !allowed(value)
        })
        .map(|(key, value)| format!("{key}={value:?}"))
        .collect();
    let mut who: Vec<String> = setters(of_pod, &names).into_iter().collect();
    if !annotated.is_empty() {
        who.push(plural("annotation", "annotations", annotated.len()).into());
    }
    if who.is_empty() {
        return None;
    }
    let values: Vec<&str> = values.into_iter().chain(annotated.iter().map(String::as_str)).collect();
    let reason = plural("forbidden AppArmor profile", "forbidden AppArmor profiles", values.len());
    let who = who.join(" and ");
    Some(Violation::new(reason, format!("{who} must not set AppArmor profile type to {}", quoted(values))))
}

/// Capabilities that containers add and should not.
pub(super) fn added<'a>(seen: &PodView<'a>, allowed: &[&str]) -> (Vec<&'a str>, BTreeSet<&'a str>) {
    let mut values = BTreeSet::new();
    let names = seen.named(|container| {
        let list = container.pointer("/securityContext/capabilities/add").and_then(Value::as_array);
        let bad: Vec<&str> = list
            .into_iter()
            .flatten()
            .filter_map(Value::as_str)
            .filter(|capability| !allowed.contains(capability))
            .collect();
        values.extend(&bad);
        !bad.is_empty()
    });
    (names, values)
}

fn capabilities(seen: &PodView<'_>, _: Bound) -> Option<Violation> {
    let (names, values) = added(seen, &CAPABILITIES);
    let detail = format!(
        "{} must not include {} in securityContext.capabilities.add",
        containers(&names),
        quoted(values)
    );
    (!names.is_empty()).then(|| Violation::new("non-default capabilities", detail))
}

fn host_namespaces(seen: &PodView<'_>, _: Bound) -> Option<Violation> {
    let fields = ["hostNetwork", "hostPID", "hostIPC"].into_iter();
    let used: Vec<String> =
        fields.filter(|field| seen.spec()[*field] == true).map(|field| format!("{field}=true")).collect();
    (!used.is_empty()).then(|| Violation::new("host namespaces", used.join(", ")))
}

fn host_paths(seen: &PodView<'_>, _: Bound) -> Option<Violation> {
    let volumes = seen.spec()["volumes"].as_array().into_iter().flatten();
    let names: Vec<&str> = volumes
        .filter(|volume| volume["hostPath"].is_object())
        .filter_map(|volume| volume["name"].as_str())
        .collect();
    let word = plural("volume", "volumes", names.len());
    let detail = format!("{word} {}", quoted(names.iter().copied()));
    (!names.is_empty()).then(|| Violation::new("hostPath volumes", detail))
}

fn host_ports(seen: &PodView<'_>, _: Bound) -> Option<Violation> {
    let mut ports = BTreeSet::new();
    let names = seen.named(|container| {
        let list = container["ports"].as_array().into_iter().flatten();
        let own: Vec<String> = list
            .filter_map(|port| port["hostPort"].as_i64())
            .filter(|port| *port != 0)
            .map(|port| port.to_string())
            .collect();
        let any = !own.is_empty();
        ports.extend(own);
        any
    });
    let detail = format!(
        "{} {} {} {}",
        containers(&names),
        plural("uses", "use", names.len()),
        plural("hostPort", "hostPorts", ports.len()),
        ports.into_iter().collect::<Vec<_>>().join(", ")
    );
    (!names.is_empty()).then(|| Violation::new("hostPort", detail))
}

/// Probes and hooks make the node ask other hosts.
fn probed_hosts(seen: &PodView<'_>, _: Bound) -> Option<Violation> {
    let handlers =
        ["/livenessProbe", "/readinessProbe", "/startupProbe", "/lifecycle/postStart", "/lifecycle/preStop"];
    let mut hosts = BTreeSet::new();
    let names = seen.named(|container| {
        let own: Vec<&str> = handlers
            .iter()
            .filter_map(|place| container.pointer(place))
            .flat_map(|handler| [&handler["httpGet"]["host"], &handler["tcpSocket"]["host"]])
            .filter_map(Value::as_str)
            .filter(|host| !host.is_empty())
            .collect();
        hosts.extend(&own);
        !own.is_empty()
    });
    let names: Vec<&str> = names.into_iter().collect::<BTreeSet<_>>().into_iter().collect();
    let detail = format!(
        "{} {} {} {}",
        containers(&names),
        plural("uses", "use", names.len()),
        plural("probe or lifecycle host", "probe or lifecycle hosts", hosts.len()),
        quoted(hosts)
    );
    (!names.is_empty()).then(|| Violation::new("probe or lifecycle host", detail))
}

fn privileged(seen: &PodView<'_>, _: Bound) -> Option<Violation> {
    let names = seen.named(|container| container["securityContext"]["privileged"] == true);
    let detail = format!("{} must not set securityContext.privileged=true", containers(&names));
    (!names.is_empty()).then(|| Violation::new("privileged", detail))
}

fn proc_mount(seen: &PodView<'_>, bound: Bound) -> Option<Violation> {
    if bound.since(35) && seen.has_own_users() {
        return None;
    }
    unmasked(seen)
}

/// Containers that see more of `/proc` than they should.
pub(super) fn unmasked(seen: &PodView<'_>) -> Option<Violation> {
    let mut kinds = BTreeSet::new();
    let names = seen.named(|container| {
        let kind = container["securityContext"]["procMount"].as_str().filter(|kind| *kind != "Default");
        kinds.extend(kind);
        kind.is_some()
    });
    let detail =
        format!("{} must not set securityContext.procMount to {}", containers(&names), quoted(kinds));
    (!names.is_empty()).then(|| Violation::new("procMount", detail))
}

fn se_linux(seen: &PodView<'_>, bound: Bound) -> Option<Violation> {
    let mut allowed = vec!["", "container_t", "container_init_t", "container_kvm_t"];
    if bound.since(31) {
        allowed.push("container_engine_t");
    }
    let (mut kinds, mut user, mut role) = (BTreeSet::new(), false, false);
    let mut is_bad = |holder: &Value| {
        let options = &holder["securityContext"]["seLinuxOptions"];
        let text = |field: &str| options[field].as_str().unwrap_or_default();
        let kind = text("type");
        let bad_kind = !allowed.contains(&kind);
        if bad_kind {
            kinds.insert(kind.to_owned());
        }
        user |= !text("user").is_empty();
        role |= !text("role").is_empty();
        bad_kind || !text("user").is_empty() || !text("role").is_empty()
    };
    let of_pod = is_bad(seen.spec());
    let names = seen.named(is_bad);
    let who = setters(of_pod, &names)?;
    let mut data = Vec::new();
    if !kinds.is_empty() {
        let word = plural("type", "types", kinds.len());
        data.push(format!("{word} {}", quoted(kinds.iter().map(String::as_str))));
    }
    data.extend(user.then(|| "user may not be set".to_owned()));
    data.extend(role.then(|| "role may not be set".to_owned()));
    let detail = format!("{who} set forbidden securityContext.seLinuxOptions: {}", data.join("; "));
    Some(Violation::new("seLinuxOptions", detail))
}

fn seccomp(seen: &PodView<'_>, bound: Bound) -> Option<Violation> {
    if !bound.since(19) {
        return annotated_seccomp(seen);
    }
    let (of_pod, names, values) = bad_profiles(seen, "seccompProfile", &["RuntimeDefault", "Localhost"]);
    let who = setters(of_pod, &names)?;
    let detail = format!("{who} must not set securityContext.seccompProfile.type to {}", quoted(values));
    Some(Violation::new("seccompProfile", detail))
}

/// Before there was a field there were annotations.
fn annotated_seccomp(seen: &PodView<'_>) -> Option<Violation> {
    let mut keys = vec!["seccomp.security.alpha.kubernetes.io/pod".to_owned()];
    keys.extend(
        seen.named(|_| true)
            .into_iter()
            .map(|name| format!("container.seccomp.security.alpha.kubernetes.io/{name}")),
    );
    let allowed = |value: &str| {
        matches!(value, "runtime/default" | "docker/default") || value.starts_with("localhost/")
    };
    let bad: BTreeSet<String> = seen
        .annotations()
        .filter(|(key, value)| keys.iter().any(|known| known == key) && !allowed(value))
        .map(|(key, value)| format!("{key}={value:?}"))
        .collect();
    let word = plural("annotation", "annotations", bad.len());
    let none = bad.is_empty();
    let detail = format!("forbidden {word} {}", bad.into_iter().collect::<Vec<_>>().join(", "));
    (!none).then(|| Violation::new("seccompProfile", detail))
}

fn sysctls(seen: &PodView<'_>, bound: Bound) -> Option<Violation> {
    let list = seen.spec().pointer("/securityContext/sysctls").and_then(Value::as_array);
    let known = |name: &str| SYSCTLS.iter().any(|(known, minor)| *known == name && bound.since(*minor));
    let bad: Vec<&str> = list
        .into_iter()
        .flatten()
        .filter_map(|sysctl| sysctl["name"].as_str())
        .filter(|name| !known(name))
        .collect();
    (!bad.is_empty()).then(|| Violation::new("forbidden sysctls", bad.join(", ")))
}

fn host_process(seen: &PodView<'_>, _: Bound) -> Option<Violation> {
    let is_bad = |holder: &Value| {
        holder.pointer("/securityContext/windowsOptions/hostProcess") == Some(&Value::Bool(true))
    };
    let who = setters(is_bad(seen.spec()), &seen.named(is_bad))?;
    let detail = format!("{who} must not set securityContext.windowsOptions.hostProcess=true");
    Some(Violation::new("hostProcess", detail))
}
