//! A hermetic place to run the binary in: its own home, tools, agent and repository, and nothing from the machine.

mod agent;
mod outcome;
mod processes;
mod repository;
mod screen;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;
use tempfile::TempDir;

use crate::claude::{Recorded, record_path};
use crate::script::AgentScript;

pub use outcome::{Outcome, Running, eventually};
pub use processes::{MARK, alive_with_mark};
pub use repository::Commit;
pub use screen::OnScreen;

/// The programs that a scene offers besides the agent; those that the machine lacks are left out.
const TOOLS: &[&str] = &[
    "awk", "base64", "basename", "bash", "cat", "chmod", "cp", "cut", "date", "dirname", "env", "expr", "false",
    "find", "git", "grep", "head", "hostname", "id", "kill", "ln", "ls", "mkdir", "mktemp", "mv", "nice", "ps", "pwd",
    "readlink", "realpath", "rm", "rmdir", "sed", "seq", "setsid", "sh", "sleep", "sort", "stat", "tail", "tee",
    "test", "timeout", "touch", "tr", "true", "uname", "uniq", "wc", "which", "xargs",
];

/// A temporary world with a repository `repo` in it, which has one commit on branch `main`.
pub struct Scene {
    binary: PathBuf,
    root: TempDir,
    env: BTreeMap<String, OsString>,
}

impl Scene {
    /// A fresh scene for `binary`, with no agent on the path yet.
    ///
    /// # Panics
    /// If the file system or git does not do what is asked; a test cannot go on without it.
    #[must_use]
    pub fn new(binary: impl Into<PathBuf>) -> Self {
        let scene = Self::without_repository(binary);
        scene.init_repository();
        scene
    }

    /// As [`Scene::new`], but in a folder of `folder`: where the machine's temporary files are, a sandbox shows none of them.
    ///
    /// # Panics
    /// As [`Scene::new`].
    #[must_use]
    pub fn new_in(folder: &Path, binary: impl Into<PathBuf>) -> Self {
        let root = tempfile::Builder::new().prefix("rl-").tempdir_in(folder).expect("a temporary folder");
        let scene = Self::without_repository_in(root, binary.into());
        scene.init_repository();
        scene
    }

    /// As [`Scene::new`], but `repo` is a plain empty folder.
    ///
    /// # Panics
    /// As [`Scene::new`].
    #[must_use]
    pub fn without_repository(binary: impl Into<PathBuf>) -> Self {
        let root = tempfile::Builder::new().prefix("rl-").tempdir().expect("a temporary folder");
        Self::without_repository_in(root, binary.into())
    }

    fn without_repository_in(root: TempDir, binary: PathBuf) -> Self {
        let real = fs::canonicalize(root.path()).expect("the folder is there");
        for folder in ["home", "bin", "tools", "run", "tmp", "calls", "repo"] {
            fs::create_dir(real.join(folder)).expect("a fresh folder");
        }
        fs::set_permissions(real.join("run"), fs::Permissions::from_mode(0o700)).expect("own folder");
        fs::write(
            real.join("home/.gitconfig"),
            "[user]\n\tname = Scene\n\temail = scene@example.invalid\n[init]\n\tdefaultBranch = main\n[commit]\n\tgpgsign = false\n",
        )
        .expect("own folder");
        for tool in TOOLS {
            if let Some(program) = find_program(tool) {
                symlink(program, real.join("tools").join(tool)).expect("a fresh name");
            }
        }
        let path = format!("{}:{}", real.join("bin").display(), real.join("tools").display());
        let env = [
            ("PATH", path.into()),
            ("HOME", real.join("home").into_os_string()),
            ("XDG_RUNTIME_DIR", real.join("run").into_os_string()),
            ("TMPDIR", real.join("tmp").into_os_string()),
            (MARK, real.clone().into_os_string()),
            ("GIT_CONFIG_NOSYSTEM", "1".into()),
            ("GIT_TERMINAL_PROMPT", "0".into()),
            ("LC_ALL", "C.UTF-8".into()),
            ("TZ", "UTC".into()),
        ]
        .into_iter()
        .map(|(name, value)| (name.to_owned(), value))
        .collect();
        Self { binary, root, env }
    }

    /// The scene's folder, with links resolved.
    ///
    /// # Panics
    /// If it was removed.
    pub fn root(&self) -> PathBuf {
        fs::canonicalize(self.root.path()).expect("the scene's folder is there")
    }

    /// A path in the scene, outside the repository.
    pub fn outside(&self, relative: &str) -> PathBuf {
        self.root().join(relative)
    }

    /// The repository.
    pub fn repo(&self) -> PathBuf {
        self.outside("repo")
    }

    /// A path in the repository.
    pub fn path(&self, relative: &str) -> PathBuf {
        self.repo().join(relative)
    }

    /// Writes a file of the repository, its folders too.
    ///
    /// # Panics
    /// If it cannot.
    pub fn write(&self, relative: &str, text: impl AsRef<[u8]>) {
        let path = self.path(relative);
        fs::create_dir_all(path.parent().expect("it is below the repository")).expect("folders can be made");
        fs::write(&path, text).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    }

    /// Reads a file of the repository.
    ///
    /// # Panics
    /// If it cannot.
    pub fn read(&self, relative: &str) -> String {
        let path = self.path(relative);
        fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
    }

    /// Sets a variable for everything that is started later.
    pub fn set_env(&mut self, name: &str, value: impl Into<OsString>) {
        self.env.insert(name.to_owned(), value.into());
    }

    /// Puts a program on the path.
    ///
    /// # Panics
    /// If it cannot be written.
    pub fn program(&self, name: &str, text: &str) -> PathBuf {
        let path = self.outside("bin").join(name);
        fs::write(&path, text).expect("own folder");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("own file");
        path
    }

    /// Puts a link to a program of the machine on the path.
    ///
    /// # Panics
    /// If the name is taken.
    pub fn link_program(&self, name: &str, target: &Path) {
        symlink(target, self.outside("bin").join(name)).expect("a fresh name");
    }

    /// Puts a `claude` on the path that plays `script`. A later call changes the script.
    ///
    /// # Panics
    /// If the scripted agent cannot be built or written.
    pub fn scripted_agent(&self, script: &AgentScript) {
        let file = self.outside("agent.json");
        fs::write(&file, serde_json::to_vec_pretty(script).expect("a script is JSON")).expect("own file");
        let program = agent::program();
        let text = format!(
            "#!/bin/sh\nexec '{}' '{}' '{}' \"$@\"\n",
            program.display(),
            file.display(),
            self.outside("calls").display()
        );
        self.program("claude", &text);
    }

    /// How the agent was called so far, in order. Calls whose record is not yet written are left out.
    ///
    /// # Panics
    /// If a record is damaged.
    pub fn calls(&self) -> Vec<Recorded> {
        let folder = self.outside("calls");
        (1..=usize::MAX)
            .take_while(|n| folder.join(n.to_string()).exists())
            .filter_map(|n| fs::read(record_path(&folder, n)).ok())
            .map(|bytes| serde_json::from_slice(&bytes).expect("a record is whole once it has its name"))
            .collect()
    }

    /// The calls about the story of that text.
    pub fn calls_of(&self, story: &str) -> Vec<Recorded> {
        self.calls().into_iter().filter(|c| c.story == story).collect()
    }

    /// Waits until the agent was called `count` times.
    ///
    /// # Panics
    /// If that does not happen in time.
    pub fn wait_for_calls(&self, count: usize) {
        eventually(&format!("{count} calls of the agent"), || self.calls().len() >= count);
    }

    /// Waits until a file is there.
    ///
    /// # Panics
    /// If that does not happen in time.
    pub fn wait_for_file(&self, path: &Path) {
        eventually(&format!("the file {}", path.display()), || path.exists());
    }

    /// A command with the scene's environment and nothing else, in the repository, with closed stdin.
    pub fn command(&self, program: impl AsRef<std::ffi::OsStr>) -> Command {
        let mut command = Command::new(program);
        command.env_clear().envs(&self.env).current_dir(self.repo()).stdin(Stdio::null());
        command
    }

    /// Starts the binary in a process group of its own.
    ///
    /// # Panics
    /// If it cannot be started.
    pub fn start(&self, arguments: &[&str]) -> Running {
        self.start_in(&self.repo(), arguments)
    }

    /// Starts the binary in another folder.
    ///
    /// # Panics
    /// If it cannot be started.
    pub fn start_in(&self, folder: &Path, arguments: &[&str]) -> Running {
        let capture = tempfile::Builder::new().prefix("out-").tempdir_in(self.root()).expect("own folder").keep();
        let file = |name: &str| fs::File::create(capture.join(name)).expect("own folder");
        let mut command = self.command(&self.binary);
        command.args(arguments).current_dir(folder).stdout(file("stdout")).stderr(file("stderr")).process_group(0);
        let child = command.spawn().unwrap_or_else(|e| panic!("{} does not start: {e}", self.binary.display()));
        Running::new(child, arguments, capture)
    }

    /// Runs the binary to its end.
    ///
    /// # Panics
    /// If it does not end in time.
    pub fn run(&self, arguments: &[&str]) -> Outcome {
        self.start(arguments).wait()
    }

    /// What `status --json` says.
    ///
    /// # Panics
    /// If it says no JSON.
    pub fn status(&self) -> Value {
        self.run(&["status", "--json"]).json()
    }

    /// One story of `status --json`.
    ///
    /// # Panics
    /// If there is none of that id.
    pub fn story(&self, id: &str) -> Value {
        let status = self.status();
        let stories = status["stories"].as_array().cloned().unwrap_or_default();
        stories.into_iter().find(|s| s["id"] == id).unwrap_or_else(|| panic!("no story {id} in {status:#}"))
    }

    /// The state of one story.
    ///
    /// # Panics
    /// If there is none of that id.
    pub fn state_of(&self, id: &str) -> String {
        self.story(id)["state"].as_str().unwrap_or_default().to_owned()
    }

    /// The journals of all runs, oldest first.
    pub fn journals(&self) -> Vec<PathBuf> {
        let runs = self.path(".git/ralphloop/runs");
        let mut found: Vec<PathBuf> = fs::read_dir(runs)
            .into_iter()
            .flatten()
            .filter_map(Result::ok)
            .map(|entry| entry.path().join("journal.jsonl"))
            .filter(|path| path.exists())
            .collect();
        found.sort();
        found
    }

    /// Asserts that nothing started in this scene is alive. What is being swept has a moment to go.
    ///
    /// # Panics
    /// If something stays.
    pub fn nothing_runs(&self) {
        let root = self.root();
        eventually("nothing of the scene to be running", || alive_with_mark(&root).is_empty());
    }
}

impl Drop for Scene {
    /// Ends whatever a failed test has left running, by this scene's mark and nothing else.
    fn drop(&mut self) {
        if let Ok(root) = fs::canonicalize(self.root.path()) {
            processes::end_with_mark(&root);
        }
    }
}

fn find_program(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path)
        .map(|folder| folder.join(name))
        .find(|candidate| candidate.metadata().is_ok_and(|m| m.is_file() && m.permissions().mode() & 0o111 != 0))
}
