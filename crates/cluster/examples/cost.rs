//! What a cluster costs: the time to its first answer, and what settled Deployments use while nothing happens.
//!
//! `cargo run --release -p windlass-cluster --example cost -- 1000`

#![expect(clippy::print_stdout, reason = "the figures are what this is for")]

use std::time::{Duration, Instant};

use windlass::{
    k8s_openapi::api::{apps::v1::Deployment, core::v1::Namespace},
    kube::{
        Api, Client,
        api::{ListParams, PostParams},
    },
    serde_json::{from_value, json},
};
use windlass_cluster::Cluster;

/// How long idleness is watched.
const IDLE: Duration = Duration::from_secs(20);

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let count: usize = std::env::args().nth(1).map_or(Ok(1000), |count| count.parse())?;
    let begin = Instant::now();
    let cluster = Cluster::builder().heartbeat(None).start().await?;
    let client = cluster.client();
    Api::<Namespace>::all(client.clone()).get("default").await?;
    println!("first answer after {:?}", begin.elapsed());
    let begin = Instant::now();
    for index in 0..count {
        create(&client, index).await?;
    }
    println!("{count} Deployments created in {:?}", begin.elapsed());
    while !settled(&client, count).await? {
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    println!("all of them available after {:?}", begin.elapsed());
    tokio::time::sleep(Duration::from_secs(2)).await;
    let (revision, cpu) = (cluster.revision(), cpu_time()?);
    tokio::time::sleep(IDLE).await;
    let used = cpu_time()?.saturating_sub(cpu);
    let share = used.as_secs_f64() / IDLE.as_secs_f64() * 100.0;
    println!("idle for {IDLE:?}: {} writes, {used:?} of CPU ({share:.2} %)", cluster.revision() - revision);
    cluster.shutdown().await?;
    Ok(())
}

async fn create(client: &Client, index: usize) -> Result<(), Box<dyn std::error::Error>> {
    let name = format!("web-{index}");
    let deployment: Deployment = from_value(json!({
        "metadata": {"name": name},
        "spec": {
            "replicas": 3,
            "selector": {"matchLabels": {"app": name}},
            "template": {
                "metadata": {"labels": {"app": name}},
                "spec": {"containers": [{"name": "web", "image": "nginx"}]},
            },
        },
    }))?;
    Api::<Deployment>::namespaced(client.clone(), "default")
        .create(&PostParams::default(), &deployment)
        .await?;
    Ok(())
}

async fn settled(client: &Client, count: usize) -> Result<bool, Box<dyn std::error::Error>> {
    let all = Api::<Deployment>::namespaced(client.clone(), "default").list(&ListParams::default()).await?;
    let available =
        |one: &&Deployment| one.status.as_ref().and_then(|status| status.available_replicas) == Some(3);
    Ok(all.items.iter().filter(available).count() == count)
}

/// The processor time of this process so far, in the kernel's ticks of a hundredth of a second.
fn cpu_time() -> Result<Duration, Box<dyn std::error::Error>> {
    let stat = std::fs::read_to_string("/proc/self/stat")?;
    let fields: Vec<&str> = stat.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
    let ticks: u64 = fields[11].parse::<u64>()? + fields[12].parse::<u64>()?;
    Ok(Duration::from_millis(ticks * 10))
}
