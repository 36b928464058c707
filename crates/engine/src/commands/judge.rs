//! What a command's shape says of it: ordinary, unknown, or such that it is not run at all.

use super::parsed::{Pipe, Script, Simple, Text, is_shell, parse};

/// What is known of a command before it runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Shape {
    /// A tool of projects with plain arguments: it checks, builds or looks.
    Ordinary,
    /// Nothing speaks against it, and nothing for it.
    Unknown,
    /// It destroys what is not the project's, runs what comes from the network, or sends away what is secret.
    Refused {
        /// Why, as the end of a sentence that begins with the command.
        why: String,
    },
}

/// The shape of a command for `sh -c`.
pub fn shape_of(command: &str) -> Shape {
    let Some(script) = parse(command) else { return Shape::Unknown };
    match refusal(&script) {
        Some(why) => Shape::Refused { why },
        None if script.pipelines.iter().all(is_ordinary) => Shape::Ordinary,
        None => Shape::Unknown,
    }
}

fn refusal(script: &Script) -> Option<String> {
    if let Some(name) = script.recursive.first() {
        return Some(format!("defines a function, {name}, that calls itself without end"));
    }
    let mut fetched: Vec<String> = Vec::new();
    for pipe in &script.pipelines {
        if let Some(why) = piped(pipe) {
            return Some(why);
        }
        for stage in &pipe.stages {
            if let Some(why) = alone(stage, &fetched) {
                return Some(why);
            }
            if is_fetcher(stage) {
                fetched.extend(files_of(stage));
            }
        }
    }
    None
}

/// What speaks against a command wherever it stands.
fn alone(stage: &Simple, fetched: &[String]) -> Option<String> {
    let name = stage.name();
    if stage.elevated {
        return Some("asks for the rights of another user".to_owned());
    }
    if let Some(target) = stage.writes.iter().find(|target| is_system_file(target)) {
        return Some(format!("writes to {}", target.text));
    }
    if stage
        .writes
        .iter()
        .chain(&stage.reads)
        .any(|target| target.text.starts_with("/dev/tcp/") || target.text.starts_with("/dev/udp/"))
    {
        return Some("opens a connection by the shell itself".to_owned());
    }
    if runs_its_input(stage) && stage.within.iter().any(|pipe| pipe.stages.iter().any(is_fetcher_deep)) {
        return Some("runs what comes from the network".to_owned());
    }
    if runs_its_input(stage) && stage.within.iter().any(|pipe| pipe.stages.iter().any(is_decoder)) {
        return Some("runs what it has decoded first, so that nobody can read it".to_owned());
    }
    let run = if is_interpreter(name) || matches!(name, "." | "source") {
        stage.operands().next().map(|word| word.text.as_str())
    } else {
        stage.words.first().map(|word| word.text.as_str())
    };
    if run.is_some_and(|run| fetched.iter().any(|file| file == run.trim_start_matches("./"))) {
        return Some("runs a file that it has just fetched from the network".to_owned());
    }
    if is_fetcher(stage) {
        let secret = stage.arguments().find(|word| {
            is_secret_file(word.trim_start_matches('@'))
                || word.contains("=@") && is_secret_file(word.split("=@").nth(1).unwrap_or_default())
        });
        if let Some(file) = secret {
            return Some(format!("sends {file} to the network"));
        }
        if stage.reads.iter().any(|word| is_secret_file(&word.text))
            || stage.within.iter().flat_map(|pipe| &pipe.stages).any(tells_secrets)
        {
            return Some("sends secrets to the network".to_owned());
        }
        if matches!(name, "nc" | "ncat" | "netcat" | "socat")
            && (stage.has_flag(Some('e'), "exec")
                || stage.has_flag(Some('c'), "sh-exec")
                || stage.arguments().any(|word| word.to_ascii_uppercase().starts_with("EXEC:")))
        {
            return Some("gives a shell to whoever connects".to_owned());
        }
    }
    destroys(stage)
}

/// What is destroyed or published.
fn destroys(stage: &Simple) -> Option<String> {
    let name = stage.name();
    let outside = || stage.operands().find(|word| is_outside(word)).map(|word| word.text.clone());
    match name {
        "rm" | "unlink" | "rmdir" | "shred" => {
            if stage.has_flag(None, "no-preserve-root") {
                return Some("removes the root folder".to_owned());
            }
            let recursive = stage.has_flag(Some('r'), "recursive") || stage.has_flag(Some('R'), "") || name == "shred";
            let everything =
                |word: &&Text| matches!(word.text.trim_end_matches('/'), "." | "*" | "./*" | ".*" | ".git" | "./.git");
            match stage.operands().find(|word| is_outside(word) || recursive && everything(word)) {
                Some(target) if recursive || is_system_file(target) => Some(format!("removes {}", target.text)),
                _ => None,
            }
        }
        "find" => {
            let removes = stage.arguments().any(|word| word == "-delete")
                || stage.arguments().any(|word| matches!(word, "rm" | "shred" | "/bin/rm" | "/usr/bin/rm"));
            let start = stage.words.get(1).filter(|word| is_outside(word))?;
            removes.then(|| format!("removes what it finds below {}", start.text))
        }
        "dd" => {
            let target = stage.arguments().find_map(|word| word.strip_prefix("of="))?;
            is_system_file(&Text { text: target.to_owned(), varies: false }).then(|| format!("writes over {target}"))
        }
        "wipefs" | "fdisk" | "sfdisk" | "parted" | "sgdisk" | "blkdiscard" | "mkswap" => {
            Some("changes disks".to_owned())
        }
        _ if name == "mkfs" || name.starts_with("mkfs.") => Some("makes a file system over what is there".to_owned()),
        "shutdown" | "reboot" | "halt" | "poweroff" | "init" | "telinit" => Some("stops the machine".to_owned()),
        "kill"
            if stage.arguments().any(|word| word == "-1")
                && stage.words.last().is_some_and(|word| word.text == "-1") =>
        {
            Some("ends every program of the user".to_owned())
        }
        "killall5" => Some("ends every program".to_owned()),
        "pkill" | "killall" if stage.has_flag(Some('u'), "user") || stage.has_flag(Some('U'), "") => {
            Some("ends every program of a user".to_owned())
        }
        "chmod" | "chown" | "chgrp" if stage.has_flag(Some('R'), "recursive") => {
            outside().map(|target| format!("changes the rights of everything below {target}"))
        }
        "mv" | "cp" | "ln" | "tee" | "install" | "truncate" => {
            let target = stage.operands().filter(|word| is_system_file(word)).last()?;
            Some(format!("writes to {}", target.text))
        }
        "crontab" | "at" | "systemctl" | "launchctl" => Some("leaves something behind that runs later".to_owned()),
        "iptables" | "nft" | "ufw" => Some("changes the firewall".to_owned()),
        "git" => git(stage),
        "npm" | "pnpm" | "yarn" | "cargo" | "gem" | "twine" | "docker" | "gh" => publishes(stage),
        _ => None,
    }
}

/// What of git changes more than the tree that is checked.
fn git(stage: &Simple) -> Option<String> {
    let mut words = stage.arguments();
    let mut verb = words.next()?;
    while verb.starts_with('-') {
        if matches!(verb, "-C" | "-c" | "--git-dir" | "--work-tree" | "--namespace") {
            words.next();
        }
        verb = words.next()?;
    }
    let rest: Vec<&str> = words.collect();
    let has = |flags: &[&str]| rest.iter().any(|word| flags.contains(word));
    let why = match verb {
        "push"
            if has(&["-f", "--force", "--force-with-lease", "--mirror", "--delete", "-d", "--prune"])
                || rest.iter().any(|word| word.starts_with('+') || word.starts_with("--force")) =>
        {
            "overwrites what others have, by a forced push"
        }
        "push" | "send-pack" => "pushes, and a check publishes nothing",
        "reset" if has(&["--hard", "--merge", "--keep"]) => "throws away changes that are in no commit",
        "clean" if rest.iter().any(|word| word.starts_with('-') && word.contains('f')) => {
            "removes files that are in no commit"
        }
        "checkout" | "restore" if has(&[".", "-f", "--force", ":/"]) => "throws away changes that are in no commit",
        "stash" if !has(&["list", "show"]) => "moves changes away that are in no commit",
        "filter-branch" | "filter-repo" | "fast-import" | "replace" => "rewrites the history",
        "update-ref" | "symbolic-ref"
            if !rest.is_empty()
                && (verb != "symbolic-ref" || rest.iter().filter(|w| !w.starts_with('-')).count() >= 2) =>
        {
            "moves refs"
        }
        "branch" | "tag" if has(&["-D", "-d", "--delete", "-f", "--force", "-M"]) => "removes or moves refs",
        "reflog" if has(&["expire", "delete"]) => "throws away the way back",
        "gc" | "prune"
            if rest.iter().any(|word| word.starts_with("--prune") || word.starts_with("--expire"))
                || verb == "prune" =>
        {
            "throws away the way back"
        }
        "config" if has(&["--global", "--system"]) && !has(&["--get", "--list", "-l", "--get-all"]) => {
            "changes the user's settings of git"
        }
        "remote" if has(&["add", "set-url", "remove", "rm", "rename"]) => "changes the remotes",
        "rebase" | "commit" | "am" | "cherry-pick" | "merge" | "pull" => "makes commits, and a check makes none",
        _ => return None,
    };
    Some(why.to_owned())
}

fn publishes(stage: &Simple) -> Option<String> {
    let words: Vec<&str> = stage.arguments().filter(|word| !word.starts_with('-')).collect();
    let dry = stage.has_flag(Some('n'), "dry-run");
    let publishes = match (stage.name(), words.first().copied()) {
        ("npm" | "pnpm" | "yarn" | "cargo", Some("publish" | "unpublish" | "yank")) => !dry,
        ("gem" | "docker", Some("push")) | ("twine", Some("upload")) => true,
        ("gh", Some("release" | "repo" | "secret")) => {
            words.get(1).is_some_and(|verb| !matches!(*verb, "list" | "view"))
        }
        _ => false,
    };
    publishes.then(|| "publishes, and a check publishes nothing".to_owned())
}

/// What speaks against commands that stand one behind the other.
fn piped(pipe: &Pipe) -> Option<String> {
    let mut before: Option<&'static str> = None;
    let mut secrets = false;
    for stage in &pipe.stages {
        if let Some(what) = before.filter(|_| runs_its_input(stage)) {
            return Some(format!("runs {what}"));
        }
        if secrets && is_fetcher_deep(stage) {
            return Some("sends secrets to the network".to_owned());
        }
        if is_fetcher_deep(stage) {
            before = Some("what comes from the network");
        } else if before.is_none() && is_decoder(stage) {
            before = Some("what it has decoded first, so that nobody can read it");
        }
        secrets |= tells_secrets(stage);
    }
    None
}

/// A program that brings something from the network, or sends something there.
fn is_fetcher(stage: &Simple) -> bool {
    matches!(
        stage.name(),
        "curl"
            | "wget"
            | "fetch"
            | "http"
            | "https"
            | "httpie"
            | "aria2c"
            | "lynx"
            | "nc"
            | "ncat"
            | "netcat"
            | "socat"
            | "ftp"
            | "tftp"
            | "telnet"
            | "ssh"
            | "scp"
            | "sftp"
            | "rsync"
            | "openssl"
    ) && (stage.name() != "openssl" || stage.arguments().next() == Some("s_client"))
}

/// It, or a command in it.
fn is_fetcher_deep(stage: &Simple) -> bool {
    is_fetcher(stage) || stage.within.iter().flat_map(|pipe| &pipe.stages).any(is_fetcher_deep)
}

fn is_decoder(stage: &Simple) -> bool {
    let decodes = match stage.name() {
        "base64" | "base32" | "basenc" => stage.has_flag(Some('d'), "decode") || stage.has_flag(Some('D'), ""),
        "xxd" => stage.has_flag(Some('r'), ""),
        "uudecode" => true,
        "openssl" => stage.arguments().any(|word| word == "-d"),
        _ => false,
    };
    decodes || stage.within.iter().flat_map(|pipe| &pipe.stages).any(is_decoder)
}

/// Programs that run what they read.
fn is_interpreter(name: &str) -> bool {
    let stem = name.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.');
    is_shell(name)
        || matches!(
            stem,
            "python" | "perl" | "ruby" | "node" | "php" | "lua" | "pwsh" | "deno" | "bun" | "tclsh" | "osascript"
        )
}

/// Whether it runs what it reads from its standard input, or what stands in its words.
fn runs_its_input(stage: &Simple) -> bool {
    let name = stage.name();
    if matches!(name, "eval" | "." | "source") {
        return true;
    }
    if name.is_empty() {
        // A group of commands reads for each of them.
        return stage.within.iter().filter_map(|pipe| pipe.stages.first()).any(runs_its_input)
            || !stage.words.is_empty();
    }
    // `$(curl …)` as the name of the command.
    if stage.words.first().is_some_and(|word| word.text.starts_with("$(")) {
        return true;
    }
    if !is_interpreter(name) {
        return false;
    }
    let mut operands = stage.operands();
    let script = operands.next();
    let has_code = stage.has_flag(Some('c'), "") || stage.has_flag(Some('e'), "eval");
    let reads = script.is_none_or(|word| matches!(word.text.as_str(), "-" | "/dev/stdin" | "/dev/fd/0" | "/dev/fd/63"))
        || is_shell(name) && stage.has_flag(Some('s'), "");
    // What a shell is given to run may be fetched or decoded.
    reads && !(has_code && script.is_some()) || is_shell(name) && has_code && stage.words.iter().any(|word| word.varies)
}

/// Whether it writes out what nobody else should see.
fn tells_secrets(stage: &Simple) -> bool {
    match stage.name() {
        "env" | "printenv" | "set" | "export" | "declare" => true,
        _ if is_fetcher(stage) => false,
        _ => stage.arguments().any(is_secret_file) || stage.reads.iter().any(|word| is_secret_file(&word.text)),
    }
}

fn is_secret_file(path: &str) -> bool {
    let home = ["~", "$HOME", "/root", "/home"].iter().find_map(|home| path.strip_prefix(home)?.strip_prefix('/'));
    let below = home
        .map(|rest| if path.starts_with("/home/") { rest.split_once('/').map_or("", |(_, rest)| rest) } else { rest });
    below.is_some_and(|below| {
        [
            ".ssh",
            ".aws",
            ".gnupg",
            ".netrc",
            ".config/gh",
            ".git-credentials",
            ".docker",
            ".kube",
            ".npmrc",
            ".pypirc",
            ".claude",
            ".codex",
        ]
        .iter()
        .any(|secret| below.starts_with(secret))
    }) || matches!(path, "/etc/shadow" | "/etc/sudoers")
        || path.starts_with("/proc/self/environ")
}

/// A path that is not the project's: the root, a home folder, what lies above. `$X/` may be the root.
fn is_outside(word: &Text) -> bool {
    let path = word.text.as_str();
    let is_temporary = ["/tmp/", "/var/tmp/", "$TMPDIR/"].iter().any(|folder| {
        path.strip_prefix(folder).is_some_and(|rest| !rest.is_empty() && !rest.starts_with('*') && !rest.contains(".."))
    });
    if is_temporary {
        return false;
    }
    path.starts_with('/')
        || path == "~"
        || path.starts_with("~/")
        || path.starts_with("..")
        || path.contains("/../")
        || path.starts_with("$HOME")
        || path.starts_with("$(") && path.contains('/')
        || path.starts_with('$')
            && path.split_once('/').is_some_and(|(_, rest)| rest.is_empty() || rest.starts_with('*'))
}

/// A file whose change lasts beyond the project: of the system, a disk, a start-up file of the user's.
fn is_system_file(word: &Text) -> bool {
    const FOLDERS: [&str; 12] = [
        "/etc/",
        "/usr/",
        "/bin/",
        "/sbin/",
        "/boot/",
        "/lib/",
        "/lib64/",
        "/sys/",
        "/proc/",
        "/var/spool/",
        "/System/",
        "/Library/",
    ];
    let path = word.text.as_str();
    if let Some(device) = path.strip_prefix("/dev/") {
        let harmless = [
            "null", "stdout", "stderr", "stdin", "tty", "zero", "full", "random", "urandom", "shm/", "fd/", "tcp/",
            "udp/",
        ];
        return !harmless.iter().any(|name| device == *name || name.ends_with('/') && device.starts_with(name));
    }
    let below = path.strip_prefix("~/").or_else(|| path.strip_prefix("$HOME/"));
    FOLDERS.iter().any(|folder| path.starts_with(folder))
        || below.is_some_and(|below| below.starts_with('.') || below.starts_with("bin/"))
        || matches!(path, "/" | "~" | "$HOME")
        || path.split('/').any(|part| part == ".git")
}

/// The files that a fetcher writes.
fn files_of(stage: &Simple) -> Vec<String> {
    let words: Vec<&str> = stage.arguments().collect();
    let named = words
        .windows(2)
        .filter(|pair| matches!(pair[0], "-o" | "-O" | "--output" | "--output-document"))
        .map(|pair| pair[1]);
    let last = words.iter().rev().find(|word| word.contains("://")).and_then(|address| address.rsplit('/').next());
    let written = stage.writes.iter().map(|word| word.text.as_str());
    let own_name = last.filter(|_| stage.name() == "wget" || stage.has_flag(Some('O'), "remote-name"));
    named
        .chain(written)
        .chain(own_name)
        .map(|file| file.trim_start_matches("./").to_owned())
        .filter(|file| !file.is_empty())
        .collect()
}

/// Every command of it is a tool of projects with plain arguments, and nothing is written but what such tools write.
fn is_ordinary(pipe: &Pipe) -> bool {
    pipe.stages.iter().all(|stage| {
        let plain = !stage.assigns
            && stage.words.iter().all(|word| !word.varies)
            && stage
                .writes
                .iter()
                .all(|target| target.text == "/dev/null" || target.text.bytes().all(|byte| byte.is_ascii_digit()))
            && stage.within.iter().all(is_ordinary);
        plain && is_ordinary_tool(stage)
    })
}

fn is_ordinary_tool(stage: &Simple) -> bool {
    let first = stage.operands().next().map_or("", |word| word.text.as_str());
    match stage.name() {
        // Nothing: a group of commands, which were looked at by themselves.
        "" | ":" | "true" | "false" | "test" | "[" | "[[" | "echo" | "printf" | "cat" | "ls" | "head" | "tail"
        | "wc" | "grep" | "egrep" | "rg" | "diff" | "cmp" | "sort" | "uniq" | "cut" | "tr" | "pwd" | "cd" | "exit"
        | "sleep" | "basename" | "dirname" | "stat" | "file" | "jq" | "pytest" | "mypy" | "ruff" | "black"
        | "isort" | "flake8" | "pylint" | "pyright" | "tox" | "nox" | "tsc" | "eslint" | "prettier" | "jest"
        | "vitest" | "mocha" | "biome" | "golangci-lint" | "gofmt" | "shellcheck" | "shfmt" | "rspec" | "rubocop"
        | "phpunit" | "phpstan" | "ctest" | "make" | "gmake" | "just" | "ninja" | "rustfmt" | "clang-format"
        | "hadolint" | "yamllint" | "markdownlint" => true,
        "cargo" => matches!(
            first,
            "test" | "build" | "check" | "clippy" | "fmt" | "nextest" | "doc" | "bench" | "deny" | "audit" | "machete"
        ),
        "npm" | "pnpm" | "yarn" | "bun" => {
            matches!(first, "test" | "t" | "run" | "run-script" | "ci" | "lint" | "build" | "typecheck")
        }
        "npx" => matches!(first, "tsc" | "eslint" | "prettier" | "jest" | "vitest" | "mocha" | "biome"),
        "go" => matches!(first, "test" | "vet" | "build" | "fmt"),
        "python" | "python3" => {
            stage.arguments().next() == Some("-m")
                && matches!(first, "pytest" | "unittest" | "mypy" | "compileall" | "ruff")
        }
        "uv" | "poetry" | "pipenv" | "hatch" => first == "run",
        "bundle" => first == "exec",
        "mvn" | "./mvnw" | "gradle" | "gradlew" | "mvnw" => {
            matches!(first, "test" | "verify" | "check" | "build" | "compile")
        }
        "dotnet" => matches!(first, "test" | "build" | "format"),
        "swift" | "mix" | "zig" | "deno" => matches!(first, "test" | "build" | "format" | "lint" | "fmt" | "check"),
        "git" => matches!(first, "diff" | "status" | "log" | "show" | "ls-files" | "rev-parse" | "grep"),
        _ => false,
    }
}

#[cfg(test)]
mod tests;
