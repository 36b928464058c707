//! A small repository in a temporary folder, with a private home and no configuration from outside.
use std::path::{Path, PathBuf};
use std::process::Output;
use std::time::Duration;

use ralphloop_engine::git::{Git, Repository, SnapshotLimits};
use ralphloop_engine::process::{Spawner, SupervisorProgram};

pub(crate) struct World {
    folder: tempfile::TempDir,
    /// The top of the working tree.
    pub(crate) top: PathBuf,
}

/// A repository with two commits, a tracked tree, an ignored file and an untracked one.
const USUAL: &str = r"
git init -q -b main .
git config user.name Test; git config user.email test@example.invalid
printf 'one\n' >a.txt; mkdir -p dir/deep; printf 'two\n' >dir/b.txt; printf 'three\n' >dir/deep/c.txt
printf '#!/bin/sh\n' >run.sh; chmod +x run.sh
printf '*.log\n.env\nbuild/\n' >.gitignore
git add . ; git commit -qm first
printf 'one and more\n' >a.txt; git commit -qam second
printf 'SECRET=1\n' >.env; printf 'note\n' >note.txt
";

impl World {
    pub(crate) fn new() -> Self {
        Self::with(USUAL)
    }

    pub(crate) fn with(script: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let top = folder.path().join("repo");
        std::fs::create_dir_all(&top).unwrap();
        std::fs::create_dir_all(folder.path().join("home")).unwrap();
        let top = top.canonicalize().unwrap();
        let world = Self { folder, top };
        world.sh(script);
        world
    }

    /// A place beside the repository.
    pub(crate) fn beside(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn environment(&self) -> Vec<(&'static str, PathBuf)> {
        let home = self.folder.path().join("home");
        vec![
            ("HOME", home.clone()),
            ("XDG_CONFIG_HOME", home.join(".config")),
            ("GIT_CONFIG_NOSYSTEM", "1".into()),
            ("GNUPGHOME", home.join("gnupg")),
        ]
    }

    /// Runs a script in the repository, which has to succeed.
    pub(crate) fn sh(&self, script: &str) -> String {
        let output = self.output(script);
        assert!(output.status.success(), "{script}\n{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    pub(crate) fn output(&self, script: &str) -> Output {
        std::process::Command::new("bash")
            .args(["-euc", script])
            .current_dir(&self.top)
            .env("W", self.folder.path())
            .env("GIT_OPTIONAL_LOCKS", "0")
            .env_remove("GIT_DIR")
            .envs(self.environment())
            .output()
            .unwrap()
    }

    pub(crate) async fn open(&self) -> Repository {
        self.open_at(&self.top, SnapshotLimits::default()).await
    }

    pub(crate) async fn open_at(&self, start: &Path, limits: SnapshotLimits) -> Repository {
        Repository::open(start, self.git(), limits).await.unwrap()
    }

    pub(crate) fn git(&self) -> Git {
        self.git_with_timeout(Duration::from_secs(20))
    }

    pub(crate) fn git_with_timeout(&self, timeout: Duration) -> Git {
        let supervisor =
            SupervisorProgram { program: env!("CARGO_BIN_EXE_ralphloop-supervise").into(), args: Vec::new() };
        let git = Git::new(Spawner::new(supervisor), timeout);
        self.environment().into_iter().fold(git, |git, (name, value)| git.env(name, value))
    }

    pub(crate) fn read(&self, path: &str) -> String {
        std::fs::read_to_string(self.top.join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
    }

    pub(crate) fn exists(&self, path: &str) -> bool {
        std::fs::symlink_metadata(self.top.join(path)).is_ok()
    }

    /// Waits until the file system's clock has gone on so far that no file's times are in doubt.
    pub(crate) fn settle(&self) {
        let probe = self.beside("clock");
        let tick = || {
            std::fs::write(&probe, "x").unwrap();
            std::fs::metadata(&probe).unwrap().modified().unwrap()
        };
        let begin = tick();
        while tick().duration_since(begin).unwrap_or_default() < Duration::from_millis(40) {
            std::thread::yield_now();
        }
    }
}

impl World {
    /// The same surroundings with another working tree.
    pub(crate) fn moved_to(self, top: PathBuf) -> Self {
        Self { top, ..self }
    }
}
