//! The corpus of real shapes that stands beside the checkout: every file with the reading that is right for it.
//!
//! The corpus is found through `RALPHLOOP_SHARED`, else as a folder `shared` in or beside one of the folders above.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::{env, fs};

use ralphloop_core::plan::Scheme;
use ralphloop_spec::{SpecFiles, SpecText, apply, error_json, mark_done, read, to_json};
use serde_json::{Map, Value};

const STORY_KEYS: &[&str] = &["id", "title", "kind", "priority", "done", "state", "optional", "parent", "deps", "line"];
const TASK_KEYS: &[&str] = &["id", "text", "done", "state", "optional", "parent", "line"];

/// The folder of the corpus, if it is here.
pub(crate) fn corpus() -> Option<PathBuf> {
    if let Some(named) = env::var_os("RALPHLOOP_SHARED") {
        let folder = PathBuf::from(named).join("fixtures");
        assert!(folder.is_dir(), "RALPHLOOP_SHARED names no folder with fixtures: {}", folder.display());
        return Some(folder);
    }
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.ancestors().map(|folder| folder.join("shared/fixtures")).find(|folder| folder.is_dir())
}

/// The folders of the corpus with their formats.
pub(crate) const FORMATS: &[(&str, Scheme)] = &[
    ("openspec", Scheme::OpenSpec),
    ("prd-json", Scheme::Prd),
    ("checklist", Scheme::Markdown),
    ("fix-plan", Scheme::FixPlan),
    ("speckit", Scheme::SpecKit),
    ("kiro", Scheme::Kiro),
    ("gh-issues", Scheme::GitHub),
    ("beads", Scheme::Beads),
    ("yaml-tasks", Scheme::Yaml),
    ("flight-rules", Scheme::Flight),
    ("backlog", Scheme::Backlog),
];

fn check_format(format: &str, scheme: Scheme) {
    let Some(corpus) = corpus() else {
        eprintln!("no corpus of fixtures beside this checkout: nothing to compare");
        return;
    };
    let mut failures = String::new();
    let (mut reads, mut writes) = (0, 0);
    let mut files: Vec<PathBuf> =
        fs::read_dir(corpus.join(format)).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    for expect_path in files.iter().filter(|path| path.to_string_lossy().ends_with(".expect.json")) {
        let expect: Value = serde_json::from_slice(&fs::read(expect_path).unwrap()).unwrap();
        let source = expect_path.with_file_name(expect["fixture"].as_str().unwrap());
        let bytes = fs::read(&source).unwrap();
        let name = format!("{format}/{}", source.file_name().unwrap().to_string_lossy());
        for line in read_differences(scheme, &name, &bytes, &expect) {
            let _infallible = writeln!(failures, "READ  {name}: {line}");
        }
        reads += 1;
        for write in expect["writes"].as_array().unwrap() {
            if let Some(line) = write_difference(scheme, &bytes, write) {
                let _infallible = writeln!(failures, "WRITE {name} {}: {line}", write["id"]);
            }
            writes += 1;
        }
    }
    assert!(reads > 0 && writes > 0, "no fixtures of {format}");
    assert!(failures.is_empty(), "\n{failures}");
}

fn read_differences(scheme: Scheme, name: &str, bytes: &[u8], expect: &Value) -> Vec<String> {
    let files = SpecFiles::single(scheme, SpecText::new(name, bytes));
    let wants_error = expect["outcome"] == "error";
    match read(&files) {
        Ok(_) if wants_error => vec!["no error".into()],
        Ok(reading) => reading_differences(&to_json(&reading), expect),
        Err(error) if wants_error => error_differences(&error_json(&error)["error"], &expect["error"]),
        Err(error) => vec![format!("{}: {error}", error.class)],
    }
}

fn error_differences(got: &Value, expect: &Value) -> Vec<String> {
    let mut out = Vec::new();
    if got["class"] != expect["class"] {
        out.push(format!("class {} not {}", got["class"], expect["class"]));
    }
    if let Some(line) = expect["line"].as_i64() {
        let tolerance = expect["line_tolerance"].as_i64().unwrap();
        if got["line"].as_i64().is_none_or(|found| (found - line).abs() > tolerance) {
            out.push(format!("line {} not {line}", got["line"]));
        }
    }
    out
}

fn reading_differences(got: &Value, expect: &Value) -> Vec<String> {
    let mut out = Vec::new();
    compare(&mut out, "", got, expect, &["project", "branch", "writable", "next", "all_done"]);
    let (got_stories, stories) = (list(&got["stories"]), list(&expect["stories"]));
    if ids(&got_stories) != ids(&stories) {
        out.push(format!("stories {:?} not {:?}", ids(&got_stories), ids(&stories)));
        return out;
    }
    for (got, expect) in got_stories.iter().zip(&stories) {
        let id = expect["id"].to_string();
        compare(&mut out, &id, &Value::from(got.clone()), &Value::from(expect.clone()), STORY_KEYS);
        let (got_tasks, tasks) = (list(&got["tasks"]), list(&expect["tasks"]));
        if ids(&got_tasks) != ids(&tasks) {
            out.push(format!("{id}: tasks {:?} not {:?}", ids(&got_tasks), ids(&tasks)));
            continue;
        }
        for (got, expect) in got_tasks.iter().zip(&tasks) {
            compare(
                &mut out,
                &format!("{id}/{}", expect["id"]),
                &Value::from(got.clone()),
                &Value::from(expect.clone()),
                TASK_KEYS,
            );
        }
    }
    let warnings = |value: &Value| {
        let mut all: Vec<String> = list(value).iter().map(|w| format!("{} {}", w["code"], w["line"])).collect();
        all.sort();
        all
    };
    if warnings(&got["warnings"]) != warnings(&expect["warnings"]) {
        out.push(format!("warnings {:?} not {:?}", warnings(&got["warnings"]), warnings(&expect["warnings"])));
    }
    out
}

fn compare(out: &mut Vec<String>, place: &str, got: &Value, expect: &Value, keys: &[&str]) {
    let normal = |value: &Value| value.as_f64().map_or_else(|| value.clone(), Value::from);
    for key in keys {
        if normal(&got[*key]) != normal(&expect[*key]) {
            out.push(format!("{place}.{key}: {} not {}", got[*key], expect[*key]));
        }
    }
}

fn list(value: &Value) -> Vec<Map<String, Value>> {
    value.as_array().unwrap().iter().map(|entry| entry.as_object().unwrap().clone()).collect::<Vec<_>>()
}

fn ids(entries: &[Map<String, Value>]) -> Vec<String> {
    entries.iter().map(|entry| entry["id"].to_string()).collect()
}

fn write_difference(scheme: Scheme, bytes: &[u8], write: &Value) -> Option<String> {
    let answer = mark_done(scheme, bytes, write["id"].as_str().unwrap());
    if !write["refuse"].is_null() {
        return answer.ok().map(|edits| format!("not refused: {edits:?}"));
    }
    let edits = match answer {
        Ok(edits) => edits,
        Err(error) => return Some(error.to_string()),
    };
    let mut expected = bytes.to_vec();
    let mut wanted: Vec<&Value> = write["edits"].as_array().unwrap().iter().collect();
    wanted.sort_by_key(|edit| std::cmp::Reverse(edit["offset"].as_u64()));
    for edit in wanted {
        let start = usize::try_from(edit["offset"].as_u64().unwrap()).unwrap();
        let end = start + edit["remove"].as_str().unwrap().len();
        expected.splice(start..end, edit["insert"].as_str().unwrap().bytes());
    }
    (apply(bytes, &edits).unwrap() != expected).then(|| format!("{edits:?} not {}", write["edits"]))
}

#[test]
fn r16_every_openspec_fixture_reads_and_writes_as_told() {
    check_format("openspec", Scheme::OpenSpec);
}

#[test]
fn every_prd_json_fixture_reads_and_writes_as_told() {
    check_format("prd-json", Scheme::Prd);
}

#[test]
fn every_plain_checklist_reads_and_writes_as_told() {
    check_format("checklist", Scheme::Markdown);
}

#[test]
fn every_fix_plan_reads_and_writes_as_told() {
    check_format("fix-plan", Scheme::FixPlan);
}

#[test]
fn every_spec_kit_file_reads_and_writes_as_told() {
    check_format("speckit", Scheme::SpecKit);
}

#[test]
fn every_kiro_file_reads_and_writes_as_told() {
    check_format("kiro", Scheme::Kiro);
}

#[test]
fn every_list_of_issues_reads_as_told_and_refuses_marks() {
    check_format("gh-issues", Scheme::GitHub);
}

#[test]
fn every_export_of_beads_reads_as_told_and_refuses_marks() {
    check_format("beads", Scheme::Beads);
}

#[test]
fn every_yaml_list_reads_and_writes_as_told() {
    check_format("yaml-tasks", Scheme::Yaml);
}

#[test]
fn flight_rules_files_read_and_mark_as_the_corpus_says() {
    check_format("flight-rules", Scheme::Flight);
}

#[test]
fn backlog_tasks_read_and_mark_as_the_corpus_says() {
    check_format("backlog", Scheme::Backlog);
}
