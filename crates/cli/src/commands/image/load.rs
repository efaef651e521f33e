//! `windlass image load`: an image into the container engine of this machine, so that no registry is needed.

use std::{
    ffi::OsStr,
    path::Path,
    process::{Command, Stdio},
};

use windlass_image::{Layout, Platform, write_docker_archive};

use super::{Error, open};
use crate::{
    args::{Engine, ImageLoadArgs},
    error,
    operator::debugger::find_in,
    printer::Printer,
};

pub(in crate::commands) fn load(args: &ImageLoadArgs, printer: Printer) -> Result<(), error::Error> {
    let (_, layout) = open(args.from.from.as_ref())?;
    let image = layout.image(None).map_err(Error::Open)?;
    let name =
        args.image.as_ref().map(ToString::to_string).or_else(|| Layout::name(image).map(str::to_owned));
    let name = name.ok_or(Error::Unnamed)?;
    let path = std::env::var_os("PATH").unwrap_or_default();
    let engine = match args.into {
        Some(engine) => engine,
        None => only(&present(&path, &args.address))?,
    };
    let line = engine.line(&args.namespace, &args.address);
    if args.dry_run {
        printer.fact("image", &name)?;
        return printer.command(line.join(" "));
    }
    let platform = args.platform.clone().unwrap_or_else(Platform::of_this_machine);
    let exported = layout.export(None, &platform, vec![name.clone()]).map_err(Error::Open)?;
    let mut archive = Vec::new();
    write_docker_archive(&mut archive, &[exported]).map_err(|source| Error::Pack(platform, source))?;
    feed(engine, &line, &archive)?;
    printer.remark("loaded", name, format_args!("into {}", engine.name()))?;
    Ok(())
}

impl Engine {
    fn name(self) -> &'static str {
        match self {
            Self::Containerd => "containerd",
            Self::Docker => "docker",
            Self::Podman => "podman",
        }
    }

    fn program(self) -> &'static str {
        match self {
            Self::Containerd => "ctr",
            Self::Docker => "docker",
            Self::Podman => "podman",
        }
    }

    /// The command that reads an archive from its standard input.
    fn line(self, namespace: &str, address: &Path) -> Vec<String> {
        let arguments: Vec<String> = match self {
            Self::Containerd => {
                let address = address.display().to_string();
                let all = ["--address", &address, "--namespace", namespace, "images", "import", "-"];
                all.map(str::to_owned).into()
            }
            Self::Docker | Self::Podman => vec!["load".into()],
        };
        std::iter::once(self.program().to_owned()).chain(arguments).collect()
    }
}

/// The engines of this machine: a program in the path, and for containerd its socket.
fn present(path: &OsStr, socket: &Path) -> Vec<Engine> {
    let mut engines = vec![Engine::Containerd, Engine::Docker, Engine::Podman];
    engines.retain(|engine| {
        let serves = *engine != Engine::Containerd || socket.exists();
        serves && find_in(path, engine.program()).is_some()
    });
    engines
}

/// With several, only the user knows which one.
fn only(engines: &[Engine]) -> Result<Engine, Error> {
    match engines {
        [] => Err(Error::NoEngine),
        [one] => Ok(*one),
        several => Err(Error::Engines(several.iter().map(|engine| engine.name()).collect())),
    }
}

fn feed(engine: Engine, line: &[String], archive: &[u8]) -> Result<(), Error> {
    let program = engine.program();
    let failed = |source| Error::Engine { program, source };
    // A file, not a pipe: whoever fails early leaves nothing that blocks.
    let mut file = tempfile::tempfile().map_err(failed)?;
    std::io::Write::write_all(&mut file, archive).map_err(failed)?;
    std::io::Seek::rewind(&mut file).map_err(failed)?;
    let mut command = Command::new(&line[0]);
    command.args(&line[1..]).stdin(Stdio::from(file));
    let output = command.output().map_err(failed)?;
    if output.status.success() {
        return Ok(());
    }
    let said =
        format!("{}{}", String::from_utf8_lossy(&output.stderr), String::from_utf8_lossy(&output.stdout));
    let said = said.lines().map(str::trim).rfind(|line| !line.is_empty()).unwrap_or_default().to_owned();
    let said = if said.is_empty() { output.status.to_string() } else { said };
    Err(Error::Load { command: line.join(" "), said })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_engine_is_the_only_one_that_is_here() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().as_os_str();
        let socket = folder.path().join("socket");
        assert!(matches!(only(&present(path, &socket)), Err(Error::NoEngine)));
        let install = |name: &str| {
            std::fs::write(folder.path().join(format!("{name}{}", std::env::consts::EXE_SUFFIX)), "")
                .unwrap();
        };
        install("ctr");
        assert!(
            matches!(only(&present(path, &socket)), Err(Error::NoEngine)),
            "without a socket it serves nobody"
        );
        std::fs::write(&socket, "").unwrap();
        assert_eq!(only(&present(path, &socket)).unwrap(), Engine::Containerd);
        install("podman");
        let error = only(&present(path, &socket)).unwrap_err();
        assert_eq!(error.to_string(), "images can be loaded into more than one here: containerd, podman");
    }

    #[test]
    fn containerd_gets_the_image_where_kubernetes_looks() {
        let line = Engine::Containerd.line("k8s.io", Path::new("/run/c.sock")).join(" ");
        assert_eq!(line, "ctr --address /run/c.sock --namespace k8s.io images import -");
        assert_eq!(Engine::Docker.line("k8s.io", Path::new("/run/c.sock")).join(" "), "docker load");
    }
}
