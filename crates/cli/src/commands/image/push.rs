//! `windlass image push`: what a registry lacks of an image, with the user's own login.

use std::{
    io::{IsTerminal, Write},
    sync::Arc,
};

use serde::Serialize;
use windlass_image::registry::{
    self, Access, Keyring, Options, Proxies, PushOptions, Pushed, Repository, Step,
};

use super::{Error, open, size};
use crate::{
    args::{ImagePushArgs, RegistryArgs},
    error,
    printer::Printer,
};

/// What a push did, for programs.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Answer {
    image: String,
    digest: String,
    dry_run: bool,
    uploaded_blobs: usize,
    uploaded_bytes: u64,
    present_blobs: usize,
    mounted_blobs: usize,
    uploaded_manifests: usize,
    referrers: usize,
}

pub(in crate::commands) async fn push(args: &ImagePushArgs, printer: Printer) -> Result<(), error::Error> {
    let (_, layout) = open(args.from.from.as_ref())?;
    let options = Options { mount_from: args.mount_from.clone(), ..options(&args.registry)? };
    let repository = Repository::open(&args.reference, Access::Push, &options).await.map_err(Error::from)?;
    let how = PushOptions {
        no_clobber: args.no_clobber,
        chunk: args.chunk_size.map(|size| size as usize * 1024 * 1024),
        dry_run: args.dry_run,
    };
    let pushed = registry::push(&layout, None, &repository, how, watcher(how.dry_run)).await;
    clear();
    let pushed = pushed.map_err(Error::from)?;
    let image = args.reference.with_digest(pushed.digest.clone()).to_string();
    if let Some(format) = args.output.output {
        return printer.data(format, &answer(&args.reference.to_string(), args.dry_run, pushed));
    }
    let sent = if args.dry_run { "would be sent" } else { "sent" };
    let (count, bytes) = pushed.uploaded;
    let text = match count {
        0 => "nothing to send".to_owned(),
        1 => format!("1 blob {sent}, {}", size(bytes)),
        count => format!("{count} blobs {sent}, {}", size(bytes)),
    };
    let rest = [(pushed.present, "there already"), (pushed.mounted, "taken from the other repository")];
    let rest: Vec<String> =
        rest.iter().filter(|(count, _)| *count > 0).map(|(count, what)| format!("{count} {what}")).collect();
    if rest.is_empty() {
        printer.fact("blobs", text)?;
    } else {
        printer.remark("blobs", text, rest.join(", "))?;
    }
    if pushed.manifests > 0 {
        printer.fact("manifests", format_args!("{} {sent}", pushed.manifests))?;
    }
    printer.fact("image", image)
}

fn answer(image: &str, dry_run: bool, pushed: Pushed) -> Answer {
    Answer {
        image: image.to_owned(),
        digest: pushed.digest.to_string(),
        dry_run,
        uploaded_blobs: pushed.uploaded.0,
        uploaded_bytes: pushed.uploaded.1,
        present_blobs: pushed.present,
        mounted_blobs: pushed.mounted,
        uploaded_manifests: pushed.manifests,
        referrers: pushed.referrers,
    }
}

/// How a registry is spoken to, as the flags and the user's logins say.
fn options(args: &RegistryArgs) -> Result<Options, Error> {
    let keyring = match &args.username {
        Some(username) => Keyring::of(username.clone(), password()?),
        None => Keyring::from_environment(|name| std::env::var_os(name), std::env::home_dir().as_deref())
            .map_err(registry::Error::from)?,
    };
    let proxies = Proxies::from_environment(|name| std::env::var(name).ok())?;
    let (insecure, authorities) = (args.insecure, args.ca_file.clone());
    Ok(Options { insecure, authorities, keyring, proxies, ..Options::default() })
}

/// All of standard input, without the end of the line that `echo` writes.
fn password() -> Result<String, Error> {
    let text = std::io::read_to_string(std::io::stdin().lock()).map_err(Error::Password)?;
    Ok(text.trim_end_matches(['\r', '\n']).to_owned())
}

/// Shows on a terminal how far a blob is; elsewhere nothing.
fn watcher(dry_run: bool) -> Arc<dyn Fn(Step) + Send + Sync> {
    if dry_run || !std::io::stderr().is_terminal() {
        return Arc::new(|_| {});
    }
    Arc::new(|step| {
        if let Step::Uploading(blob, sent) = step {
            let line = format!("{} of {} {}", size(sent), size(blob.size), blob.digest.short());
            let mut stderr = anstream::stderr().lock();
            let _ = write!(stderr, "\r\x1b[2K{line}").and_then(|()| stderr.flush());
        }
    })
}

fn clear() {
    if std::io::stderr().is_terminal() {
        let mut stderr = anstream::stderr().lock();
        let _ = write!(stderr, "\r\x1b[2K").and_then(|()| stderr.flush());
    }
}
