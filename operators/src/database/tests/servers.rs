//! What the server is started with, what restarts it, and what of `spec.pod` reaches which container.

use serde_json::{Value, json};

use super::db;
use crate::database::{Database, api::Location, backup_sample, build};

fn text(database: &Database) -> String {
    build::config(database).data.unwrap()["postgresql.conf"].clone()
}

fn hash(spec: Value) -> String {
    let template = build::stateful_set(&db(spec), "10Gi").spec.template.metadata.unwrap();
    template.annotations.unwrap()["database.example.com/server-hash"].clone()
}

#[test]
fn only_what_the_spec_asks_of_the_server_restarts_it() {
    let plain = hash(json!({}));
    for other in [
        json!({"parameters": {"max_connections": "50"}}),
        json!({"image": "postgres:13.1"}),
        json!({"version": "14"}),
        json!({"pod": {"nodeSelector": {"disk": "fast"}}}),
    ] {
        assert_ne!(hash(other.clone()), plain, "{other}");
    }
    for same in [
        json!({"backup": {"schedule": "@daily", "method": "Logical", "retention": {"count": 3}}}),
        json!({"storage": {"size": "20Gi"}}),
        json!({"deletionPolicy": "Delete", "deletionProtection": true}),
    ] {
        assert_eq!(hash(same.clone()), plain, "{same}");
    }
    // Scripts and settings of the operator's own are no part of it: another operator brings others.
    let template = serde_json::to_value(build::stateful_set(&db(json!({})), "10Gi").spec.template).unwrap();
    assert_eq!(template["metadata"]["annotations"].as_object().unwrap().len(), 1, "{template}");
}

#[test]
fn a_value_cannot_break_out_of_its_line() {
    let odd = r"it's \ 'quoted\' $HOME";
    let text = text(&db(json!({"parameters": {"application_name": odd}})));
    assert!(text.contains("application_name = 'it''s \\\\ ''quoted\\\\'' $HOME'\n"), "{text}");
    let job = serde_json::to_value(build::check_job(&db(json!({"parameters": {"application_name": odd}}))))
        .unwrap();
    let env = job["spec"]["template"]["spec"]["containers"][0]["env"].as_array().unwrap().clone();
    let settings = env.iter().find(|it| it["name"] == "SETTINGS").unwrap()["value"].as_str().unwrap();
    assert_eq!(settings.replace("$$", "$"), text, "a server is tried with the very same");
}

#[test]
fn the_operator_has_the_last_word_and_initdb_the_first() {
    let text = text(&db(json!({
        "parameters": {"shared_buffers": "1GB", "WAL_Level": "logical"},
        "pod": {"resources": {"limits": {"memory": "2Gi"}}},
    })));
    let at = |line: &str| text.find(line).unwrap_or_else(|| panic!("{line}: {text}"));
    let order = [
        "include_if_exists '/var/lib/postgresql/data/pgdata/postgresql.conf'\n",
        "shared_buffers = '512MB'\neffective_cache_size = '1536MB'\n",
        "wal_level = 'replica'\n",
        "WAL_Level = 'logical'\n",
        "shared_buffers = '1GB'\n",
        "listen_addresses = '*'\n",
    ];
    assert!(order.windows(2).all(|pair| at(pair[0]) < at(pair[1])), "{text}");
    let plain = build::config(&db(json!({}))).data.unwrap()["postgresql.conf"].clone();
    assert!(!plain.contains("shared_buffers"), "without a limit initdb decides: {plain}");
}

#[test]
fn parameters_that_no_server_should_be_asked_to_try_are_refused() {
    let refused = |name: &str, value: &str| {
        let problem = build::check(&db(json!({"parameters": {name: value}}))).unwrap_err();
        assert_eq!(problem.reason, "InvalidSpec");
        problem.message
    };
    for name in ["port", "PORT", "Listen_Addresses", "hba_file", "include", "Include_Dir", "archive_mode"] {
        assert!(refused(name, "1").contains("sets itself"), "{name}");
    }
    for name in ["work_mem = '1'\nport", "work mem", "", "a.b.c", "1st", ".x", "x.", "#x", "x'"] {
        assert!(refused(name, "1").contains("no name of a setting"), "{name:?}");
    }
    for value in ["a\nport = 1", "a\r", "a\0b", "a\u{85}"] {
        assert!(refused("application_name", value).contains("control character"), "{value:?}");
    }
    assert!(refused("wal_level", "minimal").contains("replica or logical"));
    assert!(refused("Max_Wal_Senders", "1").contains("2 or more"));
    for (name, value) in
        [("work_mem", "8MB"), ("pg_stat_statements.max", "10000"), ("wal_level", "logical"), ("X$y", "")]
    {
        build::check(&db(json!({"parameters": {name: value}}))).unwrap();
    }
}

#[test]
fn a_role_or_database_of_postgresqls_own_is_no_applications() {
    for bootstrap in [
        json!({"owner": "postgres"}),
        json!({"owner": "pg_monitor"}),
        json!({"database": "template1"}),
        json!({"database": "template0"}),
    ] {
        let problem = build::check(&db(json!({"bootstrap": bootstrap}))).unwrap_err();
        assert!(problem.message.contains("spec.bootstrap"), "{bootstrap}: {problem}");
    }
    build::check(&db(json!({"bootstrap": {"owner": "shop", "database": "postgres"}}))).unwrap();
}

/// The Pod templates of everything that runs for a Database.
fn templates(database: &Database) -> Vec<(&'static str, Value)> {
    let location: Location = build::location(database, &backup_sample());
    let spec =
        |job: k8s_openapi::api::batch::v1::Job| serde_json::to_value(job.spec.unwrap().template).unwrap();
    let set = build::stateful_set(database, "10Gi");
    let scheduled = build::cron_job(database).spec.job_template.spec.unwrap().template;
    vec![
        ("server", serde_json::to_value(set.spec.template).unwrap()),
        ("schedule", serde_json::to_value(scheduled).unwrap()),
        ("backup", spec(build::backup_job(database, &backup_sample()))),
        ("restore", spec(build::restore_job(database, &location))),
        ("login", spec(build::login_job(database, "x"))),
        ("check", spec(build::check_job(database))),
        ("removal", spec(build::removal_job(&backup_sample(), &location, Some(database)))),
    ]
}

#[test]
fn what_the_spec_says_of_pods_reaches_every_container_of_every_pod() {
    let pod = json!({
        "annotations": {"team": "shop", "windlass.dev/simulate": "crash"},
        "imagePullPolicy": "Always",
        "imagePullSecrets": [{"name": "registry"}],
        "resources": {
            "limits": {"cpu": "4", "memory": "8Gi", "ephemeral-storage": "1Gi"}, "requests": {"memory": "4Gi"},
        },
        "nodeSelector": {"disk": "fast"},
        "tolerations": [{"key": "db", "operator": "Exists"}],
        "serviceAccountName": "shop",
        "securityContext": {"runAsUser": 26, "fsGroup": 26},
        "containerSecurityContext": {"runAsUser": 26, "privileged": false},
    });
    for (what, template) in templates(&db(json!({"pod": pod}))) {
        let spec = &template["spec"];
        for field in
            ["imagePullSecrets", "nodeSelector", "tolerations", "serviceAccountName", "securityContext"]
        {
            assert_eq!(spec[field], pod[field], "{what}: {field}");
        }
        assert_eq!(template["metadata"]["annotations"]["team"], "shop", "{what}");
        let all = |field: &str| spec[field].as_array().cloned().unwrap_or_default();
        let containers = [all("initContainers"), all("containers")].concat();
        assert!(!containers.is_empty());
        for container in containers {
            let name = format!("{what}: {}", container["name"]);
            assert_eq!(container["imagePullPolicy"], "Always", "{name}");
            assert_eq!(container["securityContext"], pod["containerSecurityContext"], "{name}");
            let resources = &container["resources"];
            for key in ["cpu", "memory", "ephemeral-storage"] {
                assert!(resources["limits"][key].is_string(), "{name} has no limit of {key}: {resources}");
            }
            assert!(resources["requests"]["memory"].is_string(), "{name}: {resources}");
            let whole = ["postgresql", "prepare", "restore"].iter().any(|it| container["name"] == *it);
            let asked = if whole { "4Gi" } else { "64Mi" };
            assert_eq!(resources["requests"]["memory"], asked, "{name}: a client needs little");
            let most = if container["name"] == "credentials" { "64Mi" } else { "8Gi" };
            assert_eq!(resources["limits"]["memory"], most, "{name}");
        }
    }
    for (what, template) in templates(&db(json!({"pod": {"resources": {"requests": {"memory": "32Mi"}}}}))) {
        let container = &template["spec"]["containers"][0]["resources"];
        assert_eq!(
            container,
            &json!({"requests": {"memory": "32Mi"}}),
            "{what}: never more than was asked for"
        );
    }
    for (what, template) in templates(&db(json!({}))) {
        assert_eq!(template["spec"]["containers"][0]["resources"], Value::Null, "{what}");
    }
}

#[test]
fn a_simulated_failure_of_the_server_is_none_of_the_jobs() {
    let pod =
        json!({"annotations": {"windlass.dev/simulate": "crash"}, "terminationGracePeriodSeconds": 3600});
    for (what, template) in templates(&db(json!({"pod": pod}))).into_iter().skip(1) {
        let annotations = &template["metadata"]["annotations"];
        assert_eq!(annotations["windlass.dev/simulate"], Value::Null, "{what}");
        assert_eq!(template["spec"]["terminationGracePeriodSeconds"], Value::Null, "{what}");
    }
}

#[test]
fn the_processes_of_a_query_meet_in_more_than_64_megabytes() {
    let template = build::stateful_set(&db(json!({})), "10Gi").spec.template;
    let pod = serde_json::to_value(template.spec).unwrap();
    let mounts = pod["containers"][0]["volumeMounts"].as_array().unwrap();
    let mount = mounts.iter().find(|it| it["mountPath"] == "/dev/shm").unwrap();
    let volume = pod["volumes"].as_array().unwrap().iter().find(|it| it["name"] == mount["name"]).unwrap();
    assert_eq!(volume["emptyDir"], json!({"medium": "Memory"}));
}

#[test]
fn a_job_says_what_it_was_made_from_and_its_pod_its_last_word() {
    let made = |spec: Value| {
        let job = build::backup_job(&db(spec), &backup_sample());
        (job.metadata.annotations.unwrap()[build::MADE_FROM].clone(), job.spec.unwrap())
    };
    let (first, spec) = made(json!({}));
    assert_eq!(first, made(json!({"deletionPolicy": "Delete"})).0);
    assert_ne!(first, made(json!({"image": "postgres:13.1"})).0);
    let container = &spec.template.spec.unwrap().containers[0];
    assert_eq!(container.termination_message_policy.as_deref(), Some("FallbackToLogsOnError"));
}
