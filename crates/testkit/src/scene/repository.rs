//! The scene's repository: git by the scene's own rules, and what has landed.

use std::fs;

use super::Scene;

/// The tag on the commit from which landing is counted.
const START: &str = "scene-start";

/// One commit, read with git.
#[derive(Debug, Clone)]
pub struct Commit {
    /// Its full name.
    pub hash: String,
    /// The first line of its message.
    pub subject: String,
    /// The trailers, in order.
    pub trailers: Vec<(String, String)>,
    /// The paths that it touches.
    pub files: Vec<String>,
}

impl Commit {
    /// The value of the first trailer whose name is `name` or ends with `-name`, in any case.
    pub fn trailer(&self, name: &str) -> Option<&str> {
        let name = name.to_lowercase();
        let suffix = format!("-{name}");
        self.trailers
            .iter()
            .find(|(n, _)| n.to_lowercase() == name || n.to_lowercase().ends_with(&suffix))
            .map(|(_, value)| value.as_str())
    }
}

impl Scene {
    /// Makes `repo` a repository with one commit on branch `main`.
    ///
    /// # Panics
    /// If git fails.
    pub fn init_repository(&self) {
        self.git(&["init", "--quiet", "--initial-branch=main"]);
        self.write("base.txt", "base\n");
        self.commit_all("Start");
    }

    /// Runs git in the repository; its stdout without the last line end.
    ///
    /// # Panics
    /// If git fails.
    pub fn git(&self, arguments: &[&str]) -> String {
        let output = self.command("git").args(arguments).output().expect("git is there");
        let error = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "git {arguments:?}: {error}");
        String::from_utf8_lossy(&output.stdout).trim_end_matches('\n').to_owned()
    }

    /// Whether git succeeds with these arguments.
    ///
    /// # Panics
    /// If git cannot be started.
    pub fn git_succeeds(&self, arguments: &[&str]) -> bool {
        self.command("git").args(arguments).output().expect("git is there").status.success()
    }

    /// Commits everything, and counts landed stories from here.
    pub fn commit_all(&self, message: &str) {
        self.git(&["add", "--all"]);
        self.git(&["commit", "--quiet", "--message", message]);
        self.git(&["update-ref", &format!("refs/testkit/{START}"), "HEAD"]);
    }

    /// The commit that HEAD names.
    pub fn head(&self) -> String {
        self.git(&["rev-parse", "HEAD"])
    }

    /// The commits on HEAD since the last [`Scene::commit_all`], oldest first.
    pub fn landed(&self) -> Vec<Commit> {
        let range = format!("refs/testkit/{START}..HEAD");
        self.git(&["rev-list", "--reverse", &range]).lines().map(|hash| self.commit(hash)).collect()
    }

    /// One commit.
    pub fn commit(&self, revision: &str) -> Commit {
        let show = |format: &str| self.git(&["show", "--no-patch", &format!("--format={format}"), revision]);
        let trailers = show("%(trailers:only=true,unfold=true)");
        let files = self.git(&["show", "--format=", "--name-only", "-z", revision]);
        Commit {
            hash: show("%H"),
            subject: show("%s"),
            trailers: trailers
                .lines()
                .filter_map(|line| line.split_once(':'))
                .map(|(name, value)| (name.trim().to_owned(), value.trim().to_owned()))
                .collect(),
            files: files.split('\0').filter(|f| !f.is_empty()).map(str::to_owned).collect(),
        }
    }

    /// The subjects of the landed commits, oldest first.
    pub fn landed_subjects(&self) -> Vec<String> {
        self.landed().into_iter().map(|c| c.subject).collect()
    }

    /// A file as it is in a commit.
    pub fn file_in(&self, revision: &str, path: &str) -> String {
        self.git(&["show", &format!("{revision}:{path}")])
    }

    /// Asserts that neither index nor tree differ from HEAD, and that nothing untracked is there.
    ///
    /// # Panics
    /// If something is.
    #[track_caller]
    pub fn tree_is_clean(&self) {
        let status = self.git(&["status", "--porcelain", "--untracked-files=all"]);
        assert!(status.is_empty(), "the tree is not clean:\n{status}");
    }

    /// Branch, HEAD, refs, stash, index, configuration and every file with its content: what must not change when nothing lands.
    pub fn snapshot(&self) -> String {
        let mut text = String::new();
        for arguments in [
            &["symbolic-ref", "--quiet", "HEAD"][..],
            &["rev-parse", "HEAD"],
            &["for-each-ref", "refs/heads", "refs/tags", "refs/stash"],
            &["ls-files", "--stage"],
            &["config", "--list", "--local"],
            &["worktree", "list", "--porcelain"],
        ] {
            text.push_str(&arguments.join(" "));
            text.push('\n');
            if self.git_succeeds(arguments) {
                text.push_str(&self.git(arguments));
                text.push('\n');
            }
        }
        let mut files = Vec::new();
        collect(&self.repo(), &mut files);
        files.sort();
        for file in files {
            let bytes = fs::read(&file).unwrap_or_default();
            text.push_str(&file.display().to_string());
            text.push_str(": ");
            text.push_str(&String::from_utf8_lossy(&bytes));
            text.push('\n');
        }
        text
    }

    /// The refs under which attempts are kept.
    pub fn kept_refs(&self) -> Vec<String> {
        self.git(&["for-each-ref", "--format=%(refname)", "refs/ralphloop"]).lines().map(str::to_owned).collect()
    }
}

/// All files below `folder` except git's own.
fn collect(folder: &std::path::Path, files: &mut Vec<std::path::PathBuf>) {
    for entry in fs::read_dir(folder).into_iter().flatten().filter_map(Result::ok) {
        let path = entry.path();
        if entry.file_name() == ".git" {
            continue;
        }
        if path.is_dir() && !path.is_symlink() {
            collect(&path, files);
        } else {
            files.push(path);
        }
    }
}
