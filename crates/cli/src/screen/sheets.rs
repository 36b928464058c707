//! Diffs for the screen: each is written into a temporary file and read by window, so that it costs no memory however long
//! it is. What is held of it is where its files begin, and where every so many lines.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufReader, Read as _, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use ralphloop_core::ids::{AttemptId, CommitId};
use ralphloop_core::run::Run;
use ralphloop_engine::git::{Command, Repository};
use ralphloop_engine::runs::RunFolder;
use ralphloop_tui::Msg;
use ralphloop_tui::port::{CHUNK, SheetId, SheetMark};
use tempfile::NamedTempFile;

/// Of a longer line the beginning is shown, in bytes.
const LONGEST_LINE: usize = 8 * 1024;
/// Files that are listed; more are counted.
const LISTED: usize = 5_000;
/// Of a longer new file the beginning is shown, in bytes.
const LONGEST_FILE: u64 = 8 * 1024 * 1024;
/// How a diff is written, whatever the user's configuration says.
const FORM: &[&str] = &[
    "--patch",
    "--no-ext-diff",
    "--no-textconv",
    "--no-color",
    "--src-prefix=a/",
    "--dst-prefix=b/",
    "--find-renames",
];

/// The sheets that were made. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub(super) struct Sheets {
    made: Arc<Mutex<Known>>,
}

#[derive(Debug, Default)]
struct Known {
    version: u64,
    sheets: BTreeMap<SheetId, Made>,
}

#[derive(Debug)]
struct Made {
    version: u64,
    text: Text,
}

/// A text in a file, with a list of its parts before it.
#[derive(Debug)]
struct Text {
    head: Vec<String>,
    file: NamedTempFile,
    /// Where every `CHUNK`th line of the file begins.
    places: Vec<u64>,
    lines: u64,
    marks: Vec<SheetMark>,
}

impl Sheets {
    /// Makes a sheet anew, and tells what it is.
    pub(super) async fn make(&self, id: SheetId, folder: &RunFolder, repository: &Repository) -> Msg {
        let made = match written(&id, folder, repository).await {
            Ok(Some(file)) => tokio::task::spawn_blocking(move || Text::of(file))
                .await
                .map_err(|error| error.to_string())
                .and_then(|text| text.map_err(|error| format!("the diff could not be read: {error}"))),
            Ok(None) => return Msg::Sheet { id, version: 0, made: Ok((0, 0, Vec::new())) },
            Err(why) => Err(why),
        };
        let mut known = self.made.lock().unwrap_or_else(PoisonError::into_inner);
        known.version += 1;
        let version = known.version;
        let made = made.map(|text| {
            let told = (text.count(), text.head.len() as u64, text.marks.clone());
            known.sheets.insert(id.clone(), Made { version, text });
            told
        });
        Msg::Sheet { id, version, made }
    }

    /// A chunk of a sheet; nothing if there is a newer one.
    pub(super) fn read(&self, id: SheetId, version: u64, chunk: u64) -> Option<Msg> {
        let known = self.made.lock().unwrap_or_else(PoisonError::into_inner);
        let made = known.sheets.get(&id).filter(|made| made.version == version)?;
        // A file of ours that cannot be read shows nothing.
        let lines = made.text.chunk(chunk).unwrap_or_default();
        Some(Msg::SheetLines { id, version, chunk, lines })
    }
}

/// Has git write the diff into a file; none if there is nothing to compare.
async fn written(id: &SheetId, folder: &RunFolder, repository: &Repository) -> Result<Option<NamedTempFile>, String> {
    let run = folder.fold().map_err(|error| error.to_string())?.run;
    let mut file = NamedTempFile::new().map_err(|error| format!("no temporary file can be made: {error}"))?;
    let SheetId::Attempt(attempt) = id else {
        return Ok(landed(&run, repository, file.path()).await?.then_some(file));
    };
    if let Some(lane) = run.lane_of(attempt) {
        let worktree = folder.worktree(lane);
        let top: PathBuf = if worktree.exists() { worktree } else { repository.places().top.clone() };
        live(repository, &top, &mut file).await?;
        return Ok(Some(file));
    }
    match commit_of(&run, attempt) {
        Some(commit) => {
            let show = repository.git().read(&repository.places().top).args([
                "show",
                "--format=",
                "--diff-merges=first-parent",
            ]);
            into(show, file.path(), &[&commit]).await?;
            Ok(Some(file))
        }
        None => Ok(None),
    }
}

async fn into(command: Command<'_>, path: &Path, what: &[&str]) -> Result<(), String> {
    let command = command.args(FORM).arg(format!("--output={}", path.display())).arg("--end-of-options").args(what);
    command.run().await.map(drop).map_err(|error| error.to_string())
}

/// The commit or ref that holds what an attempt changed.
fn commit_of(run: &Run, attempt: &AttemptId) -> Option<String> {
    let record = run.record(&attempt.story)?;
    let kept = record.kept.iter().find(|(number, _)| *number == attempt.number).map(|(_, kept)| kept.clone());
    match (record.state.commit(), kept) {
        (_, Some(kept)) => Some(kept),
        (Some(commit), None) if attempt.number == record.attempts => Some(commit.to_string()),
        _ => None,
    }
}

/// What is changed in a working tree just now, new files included.
async fn live(repository: &Repository, top: &Path, file: &mut NamedTempFile) -> Result<(), String> {
    let git = repository.git();
    into(git.read(top).arg("diff"), file.path(), &["HEAD"]).await?;
    let others = git.read(top).args(["ls-files", "-z", "--others", "--exclude-standard"]).run().await;
    let others = others.map_err(|error| error.to_string())?;
    let names: Vec<String> = others.items().map(|name| String::from_utf8_lossy(name).into_owned()).collect();
    for name in names {
        // A file that goes away meanwhile is not there any more.
        let _gone = append_new(file, top, &name);
    }
    Ok(())
}

fn append_new(file: &mut NamedTempFile, top: &Path, name: &str) -> io::Result<()> {
    let mut content = Vec::new();
    let path = top.join(name);
    if !path.symlink_metadata()?.is_file() {
        return Ok(());
    }
    File::open(&path)?.take(LONGEST_FILE).read_to_end(&mut content)?;
    let out = file.as_file_mut();
    out.seek(SeekFrom::End(0))?;
    let mut out = io::BufWriter::new(out);
    writeln!(out, "diff --git a/{name} b/{name}\nnew file\n--- /dev/null\n+++ b/{name}")?;
    if content.contains(&0) {
        writeln!(out, "Binary files /dev/null and b/{name} differ")?;
    } else if !content.is_empty() {
        writeln!(out, "@@ -0,0 +1 @@")?;
        for line in content.strip_suffix(b"\n").unwrap_or(&content).split(|byte| *byte == b'\n') {
            out.write_all(b"+")?;
            out.write_all(line)?;
            out.write_all(b"\n")?;
        }
    }
    out.flush()
}

/// What the run has landed: from before its first commit to its last, or commit by commit where others committed between.
async fn landed(run: &Run, repository: &Repository, path: &Path) -> Result<bool, String> {
    let landed = run.records().filter_map(|(_, record)| record.state.commit().cloned());
    let commits: Vec<CommitId> = landed.collect();
    if commits.is_empty() {
        return Ok(false);
    }
    let git = repository.git();
    let read = || git.read(&repository.places().top);
    // In the order in which they follow each other, with their parents.
    let listed =
        read().args(["rev-list", "--no-walk=sorted", "--reverse", "--topo-order", "--parents", "--end-of-options"]);
    let listed = listed.args(commits.iter().map(CommitId::as_str)).run().await.map_err(|error| error.to_string())?;
    let text = String::from_utf8_lossy(&listed.stdout).into_owned();
    let pairs: Vec<(&str, &str)> = text.lines().filter_map(|line| line.split_once(' ')).collect();
    let parents: Vec<&str> = pairs.iter().map(|(_, parents)| parents.split(' ').next().unwrap_or_default()).collect();
    let ids: Vec<&str> = pairs.iter().map(|(id, _)| *id).collect();
    let bases: Vec<&&str> = parents.iter().filter(|parent| !ids.contains(*parent)).collect();
    let tips: Vec<&&str> = ids.iter().filter(|id| !parents.contains(*id)).collect();
    match (bases.as_slice(), tips.as_slice()) {
        ([base], [tip]) => into(read().arg("diff"), path, &[base, tip]).await?,
        _ => into(read().args(["show", "--format=%h %s", "--diff-merges=first-parent"]), path, &ids).await?,
    }
    Ok(true)
}

/// One file of a diff, while it is counted.
struct Part {
    line: u64,
    path: String,
    letter: char,
    added: u64,
    removed: u64,
    in_hunk: bool,
}

impl Part {
    fn begin(line: u64, header: &str) -> Self {
        // `a/x b/x`, of equal halves unless it was renamed, which a later line tells.
        let names = header.trim_start_matches("diff --git ");
        let half = names.get(names.len() / 2 + 1..).unwrap_or(names);
        let path = half.strip_prefix("b/").unwrap_or(half).to_owned();
        Self { line, path, letter: 'M', added: 0, removed: 0, in_hunk: false }
    }

    fn take(&mut self, line: &str) {
        if self.in_hunk {
            match line.as_bytes().first() {
                Some(b'+') => self.added += 1,
                Some(b'-') => self.removed += 1,
                _ => {}
            }
        } else if line.starts_with("@@") {
            self.in_hunk = true;
        } else if line.starts_with("new file") {
            self.letter = 'A';
        } else if line.starts_with("deleted file") {
            self.letter = 'D';
        } else if let Some(path) = line.strip_prefix("rename to ") {
            (self.letter, self.path) = ('R', path.to_owned());
        } else if let Some(path) = line.strip_prefix("+++ b/") {
            path.trim_end_matches('\t').clone_into(&mut self.path);
        }
    }

    fn listed(&self) -> String {
        format!("{} {}  +{} -{}", self.letter, self.path, self.added, self.removed)
    }
}

impl Text {
    /// Reads the file once, and notes where things are.
    fn of(file: NamedTempFile) -> io::Result<Self> {
        let mut reader = BufReader::new(file.reopen()?);
        let (mut places, mut lines, mut at) = (Vec::new(), 0_u64, 0_u64);
        let mut parts: Vec<Part> = Vec::new();
        loop {
            let (line, taken) = next_line(&mut reader, LONGEST_LINE)?;
            if taken == 0 {
                break;
            }
            if lines.is_multiple_of(CHUNK) {
                places.push(at);
            }
            let line = String::from_utf8_lossy(&line);
            if line.starts_with("diff --git ") {
                parts.push(Part::begin(lines, &line));
            } else if let Some(part) = parts.last_mut() {
                part.take(&line);
            }
            at += taken;
            lines += 1;
        }
        let mut head: Vec<String> = parts.iter().take(LISTED).map(Part::listed).collect();
        if parts.len() > LISTED {
            head.push(format!("… and {} more files", parts.len() - LISTED));
        }
        if !head.is_empty() {
            head.push(String::new());
        }
        let before = head.len() as u64;
        let marks = parts.into_iter().map(|part| SheetMark { line: part.line + before, path: part.path }).collect();
        Ok(Self { head, file, places, lines, marks })
    }

    fn count(&self) -> u64 {
        self.head.len() as u64 + self.lines
    }

    /// The lines from `chunk * CHUNK` on.
    fn chunk(&self, chunk: u64) -> io::Result<Vec<String>> {
        let (from, head) = (chunk * CHUNK, self.head.len() as u64);
        let until = (from + CHUNK).min(self.count());
        let mut lines: Vec<String> =
            (from..until.min(head)).filter_map(|at| self.head.get(usize::try_from(at).ok()?).cloned()).collect();
        let (first, last) = (from.max(head) - head, until.max(head) - head);
        if first >= last {
            return Ok(lines);
        }
        let place = usize::try_from(first / CHUNK).ok().and_then(|at| self.places.get(at)).copied();
        let mut reader = BufReader::new(self.file.reopen()?);
        reader.seek(SeekFrom::Start(place.unwrap_or_default()))?;
        for at in first / CHUNK * CHUNK..last {
            let (line, _) = next_line(&mut reader, LONGEST_LINE)?;
            if at >= first {
                lines.push(String::from_utf8_lossy(&line).into_owned());
            }
        }
        Ok(lines)
    }
}

/// The next line without its end, of a long one the beginning, and how many bytes it took; none at the end.
fn next_line(reader: &mut impl io::BufRead, longest: usize) -> io::Result<(Vec<u8>, u64)> {
    let (mut line, mut taken) = (Vec::new(), 0_u64);
    loop {
        let buffer = reader.fill_buf()?;
        if buffer.is_empty() {
            return Ok((line, taken));
        }
        let end = buffer.iter().position(|byte| *byte == b'\n');
        let part = buffer.get(..end.unwrap_or(buffer.len())).unwrap_or_default();
        line.extend_from_slice(part.get(..part.len().min(longest - line.len())).unwrap_or_default());
        let used = part.len() + usize::from(end.is_some());
        reader.consume(used);
        taken += used as u64;
        if end.is_some() {
            return Ok((line, taken));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(diff: &str) -> Text {
        let mut file = NamedTempFile::new().unwrap();
        file.write_all(diff.as_bytes()).unwrap();
        Text::of(file).unwrap()
    }

    #[test]
    fn files_are_listed_with_what_became_of_them_before_the_diff() {
        let diff = "diff --git a/x.rs b/x.rs\nindex 1..2 100644\n--- a/x.rs\n+++ b/x.rs\n@@ -1 +1,2 @@\n-a\n+++ b/no\n+c\n\
                    diff --git a/new b/new\nnew file mode 100644\n--- /dev/null\n+++ b/new\n@@ -0,0 +1 @@\n+n\n\
                    diff --git a/old b/old\ndeleted file mode 100644\n--- a/old\n+++ /dev/null\n@@ -1 +0,0 @@\n-o\n";
        let text = text(diff);
        assert_eq!(text.head, ["M x.rs  +2 -1", "A new  +1 -0", "D old  +0 -1", ""]);
        let lines = text.chunk(0).unwrap();
        assert_eq!(lines.len() as u64, text.count());
        for mark in &text.marks {
            let line = &lines[usize::try_from(mark.line).unwrap()];
            assert!(line.starts_with("diff --git ") && line.ends_with(&mark.path), "{line}");
        }
    }

    #[test]
    fn any_window_of_a_long_diff_is_what_stands_there_and_a_long_line_is_cut() {
        let many: String = (0..2000).map(|n| format!("+line {n}\n")).collect();
        let long = "x".repeat(3 * LONGEST_LINE);
        let text = text(&format!("diff --git a/f b/f\n@@ -0,0 +1 @@\n{many}+{long}\n+end\n"));
        assert_eq!(text.head, ["M f  +2002 -0", ""]);
        let all: Vec<String> = (0..=text.count() / CHUNK).flat_map(|chunk| text.chunk(chunk).unwrap()).collect();
        assert_eq!(all.len() as u64, text.count());
        assert_eq!(all[4], "+line 0");
        assert_eq!(all[2003], "+line 1999");
        assert_eq!(all[2004].len(), LONGEST_LINE);
        assert_eq!(all[2005], "+end");
    }
}
