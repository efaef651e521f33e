//! Container images without a registry: the ones every node starts with, and ours packed from a static binary.
//!
//! Enter binaries from this machine; leave docker-archive files, and images in a node's containerd.

mod archive;
mod operators;
mod software;

use std::io::BufWriter;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail, ensure};
use fs_err as fs;

use super::{inside, plan, requirements, state};

pub(crate) use archive::{Image, write_archive};
pub(crate) use windlass_image::Layer;

/// The web root of the stand-in for nginx, where users mount their own pages.
const WEB_ROOT: &str = "usr/share/nginx/html";
/// Ends at once on SIGTERM: a process 1 without a handler ignores it, and every Pod would linger for 30 s.
const WEB_SERVER: &str = "#!/bin/sh
trap 'exit 0' TERM QUIT INT
/bin/httpd -f -vv -p 80 -h /usr/share/nginx/html &
wait
";
const WEB_PAGE: &str = "<!doctype html>
<title>windlass testbed</title>
<p>A small web server that stands in for nginx.</p>
";

#[derive(clap::Args)]
pub(super) struct Args {
    /// The statically linked program that the image runs
    #[arg(long, value_name = "PATH")]
    binary: PathBuf,
    /// The image's name and tag
    #[arg(long, value_name = "NAME:TAG", value_parser = archive::parse_tag)]
    tag: String,
    /// A TCP port that the program listens on
    #[arg(long = "port", value_name = "PORT")]
    ports: Vec<u16>,
    /// The user id that the program runs as
    #[arg(long, default_value_t = 65532)]
    user: u32,
    /// The docker-archive to write
    #[arg(short, long, value_name = "OUT.tar")]
    output: PathBuf,
    /// Default arguments of the program
    #[arg(last = true, value_name = "ARGS")]
    arguments: Vec<String>,
}

/// The operators' own program from this checkout, as an image can hold it.
pub(super) fn operators_program() -> Result<PathBuf> {
    operators::build()
}

/// Packs one static binary into an image.
pub(super) fn pack(args: &Args) -> Result<()> {
    let image = from_binary(&args.binary, &args.tag)?;
    let image = Image {
        ports: args.ports.clone(),
        user: args.user.to_string(),
        command: args.arguments.clone(),
        ..image
    };
    write_file(&args.output, &[image])?;
    anstream::println!("{} in {}", args.tag, args.output.display());
    anstream::println!("load it with: cargo xtask kubernetes load-image {}", args.output.display());
    Ok(())
}

/// An image that runs the static program at `binary`, with nothing else in it but users and a `/tmp`.
pub(crate) fn from_binary(binary: &Path, tag: &str) -> Result<Image> {
    let content = fs::read(binary)?;
    ensure!(
        is_static(&content),
        "{} is not a statically linked program, and the image has no libraries: build it for a musl target \
         (rustup target add x86_64-unknown-linux-musl)",
        binary.display()
    );
    let name =
        binary.file_name().and_then(|name| name.to_str()).context("the binary must have a readable name")?;
    let layer = users(Layer::default()).file(name, content, 0o755);
    Ok(Image {
        tags: vec![tag.to_owned()],
        layers: vec![layer],
        entrypoint: vec![format!("/{name}")],
        ..Image::default()
    })
}

/// Writes the images that every node starts with.
pub(super) fn write_base(path: &Path) -> Result<()> {
    let busybox = requirements::busybox().context("failed to find a static busybox")?;
    write_file(path, &base(&fs::read(&busybox)?, &applets(&busybox)?))
}

/// Builds the software that the operators run, and loads it into the node of a testbed.
pub(super) fn load_software(name: &str) -> Result<()> {
    state::require_node(name)?;
    load(name, &software::ensure()?)
}

/// Builds the operators' image from this checkout, and loads it into the node of a testbed.
pub(super) fn load_operators(name: &str) -> Result<()> {
    state::require_node(name)?;
    let archive = operators::ensure()?;
    let loaded = load(name, std::slice::from_ref(&archive));
    operators::remove(&archive)?;
    loaded
}

/// A shell and what it needs.
fn programs_layer() -> Result<Layer> {
    let busybox = requirements::busybox().context("failed to find a static busybox")?;
    Ok(programs(&fs::read(&busybox)?, &applets(&busybox)?))
}

fn programs(busybox: &[u8], applets: &[String]) -> Layer {
    let layer = users(Layer::default()).file("bin/busybox", busybox.to_vec(), 0o755);
    applets.iter().fold(layer, |layer, applet| layer.symlink(&format!("bin/{applet}"), "busybox"))
}

fn base(busybox: &[u8], applets: &[String]) -> Vec<Image> {
    let programs = programs(busybox, applets);
    let site = Layer::default().file("usr/sbin/nginx", WEB_SERVER.as_bytes().to_vec(), 0o755).file(
        &format!("{WEB_ROOT}/index.html"),
        WEB_PAGE.as_bytes().to_vec(),
        0o644,
    );
    let tagged = |name: &str, tags: &[&str]| {
        tags.iter().map(|tag| format!("docker.io/library/{name}:{tag}")).collect()
    };
    vec![
        Image {
            tags: tagged("pause", &["1"]),
            layers: vec![programs.clone()],
            entrypoint: vec!["/bin/sleep".to_owned(), "2147483647".to_owned()],
            ..Image::default()
        },
        Image {
            tags: tagged("busybox", &["1.37", "1", "latest"]),
            layers: vec![programs.clone()],
            command: vec!["sh".to_owned()],
            ..Image::default()
        },
        Image {
            tags: tagged("nginx", &["1.27", "1", "alpine", "latest"]),
            layers: vec![programs, site],
            command: vec!["nginx".to_owned()],
            ports: vec![80],
            ..Image::default()
        },
    ]
}

/// Whether `content` is a program that runs without a loader, which an image of one file does not have.
pub(super) fn is_static(content: &[u8]) -> bool {
    windlass_image::inspect(content).is_ok()
}

/// What programs expect of any root: user names and a place for temporary files.
fn users(layer: Layer) -> Layer {
    let passwd = "root:x:0:0:root:/root:/bin/sh\nnonroot:x:65532:65532:nonroot:/tmp:/bin/false\n\
                  postgres:x:999:999:postgres:/var/lib/postgresql:/bin/sh\n\
                  memcache:x:11211:11211:memcache:/tmp:/bin/false\n\
                  nobody:x:65534:65534:nobody:/tmp:/bin/false\n";
    let group = "root:x:0:\npostgres:x:999:\nmemcache:x:11211:\nnonroot:x:65532:\nnogroup:x:65534:\n";
    layer.directory("root", 0o700).directory("tmp", 0o1777).file("etc/passwd", passwd, 0o644).file(
        "etc/group",
        group,
        0o644,
    )
}

/// The programs that this busybox was built with.
fn applets(busybox: &Path) -> Result<Vec<String>> {
    let output =
        Command::new(busybox).arg("--list").output().context("failed to ask busybox for its programs")?;
    ensure!(output.status.success(), "failed to ask busybox for its programs: {}", output.status);
    let list = String::from_utf8_lossy(&output.stdout);
    Ok(list.lines().filter(|applet| *applet != "busybox").map(str::to_owned).collect())
}

pub(super) fn write_file(path: &Path, images: &[Image]) -> Result<()> {
    let file = BufWriter::new(fs::File::create(path)?);
    write_archive(file, images).with_context(|| format!("failed to write {}", path.display()))
}

/// Loads archives into the node of a testbed.
pub(super) fn load(name: &str, files: &[PathBuf]) -> Result<()> {
    let (_, inner) = state::require_node(name)?;
    for file in files {
        let loaded = import(inside::nsenter(inner, true, "ctr"), file)?;
        anstream::print!("{loaded}");
    }
    Ok(())
}

/// Imports an archive with `ctr`, started in the way that the caller has prepared, and returns what it said.
pub(super) fn import(mut ctr: Command, archive: &Path) -> Result<String> {
    // By standard input, because the path may mean something else inside the box.
    let file = fs::File::open(archive)?.into_parts().0;
    let output = ctr
        .args(["--address", plan::CONTAINERD_SOCKET, "--namespace", "k8s.io", "images", "import", "-"])
        .stdin(Stdio::from(file))
        .output()
        .context("failed to start `ctr`")?;
    if !output.status.success() {
        let reason = String::from_utf8_lossy(&output.stderr).trim().to_owned();
        bail!("failed to load {}: {reason}", archive.display());
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}
