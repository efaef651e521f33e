//! The disk: full, robbed of its log, and cut off in the middle of writes.

use std::{io::Write, time::Duration};

use anyhow::{Result, ensure};
use fs_err as fs;
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::super::{
    Stage,
    client::{Connection, MERGE, Who},
    objects::{self, CONFIG_MAPS},
};

/// Fills what is left of the disk, down to the last block.
fn fill(stage: &Stage) -> Result<std::path::PathBuf> {
    let path = stage.server.disk().join("filler");
    let mut file = fs::File::create(&path)?;
    for size in [1 << 20, 4096] {
        let piece = vec![7; size];
        while file.write_all(&piece).is_ok() {}
    }
    Ok(path)
}

async fn create(client: &mut Connection, name: &str) -> Result<(u16, String)> {
    let answer = client.post(CONFIG_MAPS, &objects::config_map(name, &"x".repeat(100_000))).await?;
    Ok((answer.status, answer.message()))
}

/// Reads are served, deletes work, writes say why not; and all is well again when there is room.
pub(super) async fn full_disk(stage: &mut Stage) -> Result<String> {
    let mut client = stage.server.api().admin().await?;
    for index in 0..10 {
        ensure!(create(&mut client, &format!("kept-{index}")).await?.0 == 201, "a write before it is full");
    }
    let mut watch = stage.server.api().stream(Who::Admin, "http/1.1").await?;
    watch
        .write_all(format!("GET {CONFIG_MAPS}?watch=true HTTP/1.1\r\nHost: localhost\r\n\r\n").as_bytes())
        .await?;
    let filler = fill(stage)?;
    let mut refused = None;
    for index in 0..200 {
        let (status, message) = create(&mut client, &format!("more-{index}")).await?;
        if status != 201 {
            refused = Some((status, message));
            break;
        }
    }
    let Some((status, message)) = refused else { anyhow::bail!("200 writes of 100 KB fit on a full disk") };
    ensure!(message.contains("disk") && message.contains("full"), "{status}: {message}");
    // Controllers go on trying to write all the while.
    for _ in 0..3 {
        for path in [
            CONFIG_MAPS,
            "/version",
            "/api",
            "/apis",
            "/openapi/v3",
            "/api/v1/namespaces/default/configmaps/kept-0",
        ] {
            let answer = client.get(path).await?;
            ensure!(answer.status == 200, "GET {path}: {} {}", answer.status, answer.message());
        }
        tokio::time::sleep(Duration::from_millis(400)).await;
    }
    let ready = client.get("/readyz").await?.status;
    ensure!(ready == 500, "/readyz says {ready}");
    for index in 0..5 {
        let answer = client.delete(&format!("{CONFIG_MAPS}/kept-{index}")).await?;
        ensure!(answer.status == 200, "DELETE: {} {}", answer.status, answer.message());
    }
    let gone = client.get(&format!("{CONFIG_MAPS}/kept-0")).await?.status;
    ensure!(gone == 404, "what was deleted is still there: {gone}");
    let mut seen = vec![0; 8 << 20];
    let mut length = 0;
    while !String::from_utf8_lossy(&seen[..length]).contains("DELETED") {
        let read = tokio::time::timeout(Duration::from_secs(10), watch.read(&mut seen[length..])).await??;
        ensure!(read > 0 && length + read < seen.len(), "the watch ended without telling of a delete");
        length += read;
    }
    // A start on a full disk.
    stage.server.restart(false)?;
    client = stage.server.api().admin().await?;
    for path in [CONFIG_MAPS, "/version", "/api/v1/namespaces/default/configmaps/kept-9"] {
        let answer = client.get(path).await?;
        ensure!(answer.status == 200, "after a start GET {path}: {} {}", answer.status, answer.message());
    }
    let gone = client.get(&format!("{CONFIG_MAPS}/kept-0")).await?.status;
    ensure!(gone == 404, "what was deleted is there again: {gone}");
    let answer = client.delete(&format!("{CONFIG_MAPS}/kept-9")).await?;
    ensure!(answer.status == 200, "after a start DELETE: {} {}", answer.status, answer.message());
    fs::remove_file(filler)?;
    for turn in 0.. {
        let (status, message) = create(&mut client, "after").await?;
        if status == 201 {
            break;
        }
        ensure!(turn < 100, "writes are refused 20 s after there is room: {message}");
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    let ready = client.get("/readyz").await?.status;
    ensure!(ready == 200, "/readyz says {ready} after there is room");
    Ok(format!("{status}, reads and deletes served, also after a start; well again by itself"))
}

/// Keys without a log are the rest of a cluster, not the beginning of one.
pub(super) async fn without_log(stage: &mut Stage) -> Result<String> {
    let mut client = stage.server.api().admin().await?;
    client.post(CONFIG_MAPS, &objects::config_map("kept", "x")).await?.succeed()?;
    for entry in fs::read_dir(stage.server.data().join("store"))? {
        fs::remove_file(entry?.path())?;
    }
    match stage.server.restart(false) {
        Ok(()) => anyhow::bail!("it started empty, although keys were there"),
        Err(error) => {
            let text = format!("{error:#}");
            ensure!(text.contains("keys") && text.contains("log"), "it does not say why: {text}");
            Ok("refused".into())
        }
    }
}

/// What was acknowledged before a kill is there after it.
pub(super) async fn kills(stage: &mut Stage) -> Result<String> {
    let mut total = 0;
    for kill in 0..stage.scale(2, 10) {
        let mut writers = Vec::new();
        for writer in 0..8 {
            let mut client = stage.server.api().admin().await?;
            writers.push(tokio::spawn(async move {
                let name = format!("map-{kill}-{writer}");
                let path = format!("{CONFIG_MAPS}/{name}");
                let mut acknowledged = None;
                let _ = client.post(CONFIG_MAPS, &objects::config_map(&name, "x")).await;
                for turn in 0_u64.. {
                    let patch = json!({"data": {"turn": turn.to_string()}}).to_string();
                    match client.patch(&path, MERGE, patch).await {
                        Ok(answer) if answer.status == 200 => acknowledged = Some(turn),
                        _ => break,
                    }
                }
                (path, acknowledged)
            }));
        }
        tokio::time::sleep(Duration::from_millis(700)).await;
        stage.server.restart(false)?;
        let mut client = stage.server.api().admin().await?;
        for writer in writers {
            let (path, Some(acknowledged)) = writer.await? else { continue };
            let found = client.get(&path).await?.succeed()?.value()?;
            let turn: u64 = found["data"]["turn"].as_str().unwrap_or_default().parse()?;
            ensure!(turn >= acknowledged, "{path}: turn {acknowledged} was acknowledged, {turn} is there");
            total += acknowledged;
        }
    }
    Ok(format!("{total} acknowledged writes, none lost"))
}
