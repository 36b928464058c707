use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;
use std::path::Path;
use std::time::Duration;

use ralphloop_core::evidence::CheckResult;
use ralphloop_core::plan::Check;

use super::{could_not_run, failed, runner, spawner};

fn shell(command: &str) -> Check {
    Check::Shell {
        name: None,
        command: command.to_owned(),
        cwd: None,
        expect_output_contains: Vec::new(),
        expect_files_glob: Vec::new(),
        timeout: None,
    }
}

/// The check with those texts and globs expected, in that folder.
fn expecting(command: &str, folder: Option<&str>, texts: &[&str], globs: &[&str]) -> Check {
    let owned = |list: &[&str]| list.iter().map(|&text| text.to_owned()).collect();
    Check::Shell {
        name: None,
        command: command.to_owned(),
        cwd: folder.map(str::to_owned),
        expect_output_contains: owned(texts),
        expect_files_glob: owned(globs),
        timeout: None,
    }
}

fn file(path: &str, glob: bool) -> Check {
    Check::FileExists { name: None, path: path.to_owned(), glob }
}

async fn check_in(project: &Path, check: &Check) -> CheckResult {
    let spawner = spawner();
    runner(&spawner, project).run_check(check).await.unwrap().result
}

#[tokio::test]
async fn c4_a_command_is_judged_by_its_exit_code() {
    let project = tempfile::tempdir().unwrap();
    assert_eq!(check_in(project.path(), &shell("true")).await, CheckResult::Passed);
    assert_eq!(failed(&check_in(project.path(), &shell("echo x; exit 7")).await), ("exit code 7", "x\n"));
    assert!(could_not_run(&check_in(project.path(), &shell("no-such-tool")).await).contains("no-such-tool"));
}

#[tokio::test]
async fn c4_expected_texts_are_sought_in_both_outputs_and_also_where_nothing_is_kept() {
    let project = tempfile::tempdir().unwrap();
    let command = "echo out-1; echo err-1 >&2; head -c 300000 /dev/zero | tr '\\0' a; printf mid; sleep 0.1; printf dle; \
                   head -c 300000 /dev/zero | tr '\\0' b";
    let all = expecting(command, None, &["out-1", "err-1", "middle", ""], &[]);
    assert_eq!(check_in(project.path(), &all).await, CheckResult::Passed);
    let result = check_in(project.path(), &expecting("echo a", None, &["b", "a", "c"], &[])).await;
    assert_eq!(failed(&result), ("the output lacks \"b\"; the output lacks \"c\"", "a\n"));
}

#[tokio::test]
async fn c4_the_command_and_its_globs_start_at_the_folder_of_the_check() {
    let project = tempfile::tempdir().unwrap();
    fs::create_dir(project.path().join("web")).unwrap();
    let build = "mkdir -p dist; touch dist/app.js";
    let check = expecting(build, Some("web"), &[], &["dist/*.js"]);
    assert_eq!(check_in(project.path(), &check).await, CheckResult::Passed);
    assert!(project.path().join("web/dist/app.js").exists());
    let missing = expecting("true", Some("web"), &[], &["dist/*.css"]);
    assert_eq!(failed(&check_in(project.path(), &missing).await).0, "no file matches dist/*.css");
}

#[tokio::test]
async fn a_check_that_leaves_the_project_is_refused_and_nothing_runs() {
    let outer = tempfile::tempdir().unwrap();
    let project = outer.path().join("p");
    fs::create_dir(&project).unwrap();
    fs::write(outer.path().join("secret"), "").unwrap();
    let checks = [
        expecting("touch ran", Some(".."), &[], &[]),
        expecting("touch ran", Some("/tmp"), &[], &[]),
        expecting("true", None, &[], &["../*"]),
        file("../secret", false),
        file("../sec*", true),
    ];
    for check in checks {
        let result = check_in(&project, &check).await;
        assert!(could_not_run(&result).contains("leaves the project"), "{check:?}: {result:?}");
    }
    assert!(!outer.path().join("ran").exists());
}

#[tokio::test]
async fn a_check_has_a_time_limit_of_its_own() {
    let project = tempfile::tempdir().unwrap();
    let mut check = shell("sleep 999");
    if let Check::Shell { timeout, .. } = &mut check {
        *timeout = Some(Duration::from_millis(300));
    }
    assert_eq!(failed(&check_in(project.path(), &check).await).0, "timed out after 300ms");
}

#[tokio::test]
async fn c5_a_file_is_found_by_path_or_by_glob() {
    let project = tempfile::tempdir().unwrap();
    fs::create_dir(project.path().join("src")).unwrap();
    fs::write(project.path().join("src/[a].rs"), "").unwrap();
    for check in [file("src/[a].rs", false), file("src/*.rs", true), file("src", false)] {
        assert_eq!(check_in(project.path(), &check).await, CheckResult::Passed, "{check:?}");
    }
    assert_eq!(failed(&check_in(project.path(), &file("src/b.rs", false)).await).0, "there is no file src/b.rs");
    assert_eq!(failed(&check_in(project.path(), &file("*.py", true)).await).0, "no file matches *.py");
}

/// Answers each of the requests that come with the next of those texts; returns the address.
fn server(answers: Vec<String>) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}/health", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        for answer in answers {
            let (stream, _) = listener.accept().unwrap();
            let mut lines = BufReader::new(&stream).lines();
            let method = lines.next().unwrap().unwrap();
            while lines.next().is_some_and(|line| !line.unwrap().is_empty()) {}
            (&stream).write_all(answer.replace("{method}", &method).as_bytes()).unwrap();
        }
    });
    address
}

fn answer(status: &str, body: &str) -> String {
    format!("HTTP/1.1 {status}\r\ncontent-type: text/plain\r\nconnection: close\r\nlocation: /health\r\n\r\n{body}")
}

fn url(url: &str, method: &str, status: u16, texts: &[&str]) -> Check {
    Check::Url {
        name: None,
        url: url.to_owned(),
        method: method.to_owned(),
        expect_status: status,
        expect_body_contains: texts.iter().map(|&text| text.to_owned()).collect(),
        timeout: Duration::from_secs(5),
    }
}

#[tokio::test]
async fn c6_an_address_is_judged_by_status_and_body() {
    let project = tempfile::tempdir().unwrap();
    let at = server(vec![answer("200 OK", "{method} is up"); 3]);
    let good = url(&at, "POST", 200, &["POST /health", "is up"]);
    assert_eq!(check_in(project.path(), &good).await, CheckResult::Passed);
    let result = check_in(project.path(), &url(&at, "GET", 204, &["nope"])).await;
    let (why, output) = failed(&result);
    assert_eq!(why, format!("{at}: status 200 instead of 204; the body lacks \"nope\""));
    assert_eq!(output, "GET /health HTTP/1.1 is up");
}

#[tokio::test]
async fn c6_an_expected_error_or_redirect_is_seen_as_it_is() {
    let project = tempfile::tempdir().unwrap();
    let at = server(vec![answer("404 Not Found", "no"), answer("302 Found", "moved")]);
    assert_eq!(check_in(project.path(), &url(&at, "GET", 404, &["no"])).await, CheckResult::Passed);
    assert_eq!(check_in(project.path(), &url(&at, "GET", 302, &["moved"])).await, CheckResult::Passed);
}

#[tokio::test]
async fn an_address_where_nobody_answers_fails_and_one_that_is_none_could_not_be_asked() {
    let project = tempfile::tempdir().unwrap();
    let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let result = check_in(project.path(), &url(&format!("http://{free}/"), "GET", 200, &[])).await;
    assert!(failed(&result).0.starts_with("no answer from http://"), "{result:?}");
    for bad in [url("not a url", "GET", 200, &[]), url("http://x/", "GE T", 200, &[])] {
        could_not_run(&check_in(project.path(), &bad).await);
    }
}

#[tokio::test]
async fn an_address_that_never_answers_times_out() {
    let project = tempfile::tempdir().unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let mut check = url(&format!("http://{}/", listener.local_addr().unwrap()), "GET", 200, &[]);
    if let Check::Url { timeout, .. } = &mut check {
        *timeout = Duration::from_millis(300);
    }
    let result = check_in(project.path(), &check).await;
    assert!(failed(&result).0.ends_with("timed out after 300ms"), "{result:?}");
}
