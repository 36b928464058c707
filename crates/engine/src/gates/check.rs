//! One verification step of a story: a command, a file that must exist, an address that must answer.

use std::io::Read;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use memchr::memmem;
use ralphloop_core::evidence::CheckResult;
use ralphloop_core::plan::Check;

use super::inside::{PathError, any_matches, inside};
use super::output;
use super::run::{Cancelled, Ran, Runner, Shell, timed_out};
use crate::process::Stream;
use crate::requests::{self, Unanswered};

/// So much of an answer's body is read and searched.
const MAX_BODY: u64 = 4 << 20;
/// So much of an answer's body is shown.
const SHOWN_BODY: usize = 4 << 10;
const MAX_REDIRECTS: u32 = 10;

impl Runner<'_> {
    /// Runs a story's check. Paths in it start at the project and may not leave it.
    pub async fn run_check(&self, check: &Check) -> Result<Ran, Cancelled> {
        let began = Instant::now();
        let (result, repeatable) = match check {
            Check::Shell { command, cwd, expect_output_contains, expect_files_glob, timeout, .. } => {
                let step = ShellStep {
                    command,
                    cwd: cwd.as_deref().unwrap_or_default(),
                    texts: expect_output_contains,
                    globs: expect_files_glob,
                    timeout: timeout.unwrap_or(self.timeout),
                };
                self.shell_step(step).await?
            }
            Check::FileExists { path, glob, .. } => (self.file_exists(path, *glob).await, true),
            Check::Url { url, method, expect_status, expect_body_contains, timeout, .. } => {
                let step = UrlStep {
                    url: url.clone(),
                    method: method.clone(),
                    status: *expect_status,
                    texts: expect_body_contains.clone(),
                    timeout: *timeout,
                };
                match requests::make("check of an address", move || step.ask(), &self.cancel).await {
                    Ok(result) => (result, false),
                    Err(Unanswered::Cancelled) => return Err(Cancelled),
                    Err(error @ Unanswered::Broke(_)) => (could_not_run(&error), false),
                }
            }
        };
        Ok(Ran { result: self.redacted(result), took: began.elapsed(), repeatable })
    }

    async fn shell_step(&self, step: ShellStep<'_>) -> Result<(CheckResult, bool), Cancelled> {
        let cwd = match inside(self.project, self.project, step.cwd) {
            Ok(cwd) => cwd,
            Err(error) => return Ok((could_not_run(&error), false)),
        };
        let mut sought = Sought::new(step.texts);
        let ended = self.shell(step.command, &cwd, step.timeout, |stream, bytes| sought.see(stream, bytes)).await?;
        let output = match ended {
            Shell::Passed { output } => output,
            Shell::Failed { why, output, repeatable } => return Ok((CheckResult::Failed { why, output }, repeatable)),
            Shell::CouldNotRun { why } => return Ok((CheckResult::CouldNotRun { why }, false)),
            Shell::NoRoom { why } => return Ok((CheckResult::NoRoom { why }, false)),
        };
        let mut missing: Vec<String> = sought.missing().map(|text| format!("the output lacks {text:?}")).collect();
        for pattern in step.globs {
            match self.matches(cwd.clone(), pattern.clone()).await {
                Ok(true) => {}
                Ok(false) => missing.push(format!("no file matches {pattern}")),
                Err(error) => return Ok((could_not_run(&error), false)),
            }
        }
        if missing.is_empty() {
            return Ok((CheckResult::Passed, true));
        }
        Ok((CheckResult::Failed { why: missing.join("; "), output }, true))
    }

    async fn file_exists(&self, path: &str, glob: bool) -> CheckResult {
        let there = if glob {
            self.matches(self.project.to_owned(), path.to_owned()).await
        } else {
            inside(self.project, self.project, path).map(|path| path.exists())
        };
        match there {
            Ok(true) => CheckResult::Passed,
            Ok(false) if glob => failed(format!("no file matches {path}")),
            Ok(false) => failed(format!("there is no file {path}")),
            Err(error) => could_not_run(&error),
        }
    }

    /// Walks folders, which may take a while, on a thread for that.
    async fn matches(&self, base: PathBuf, pattern: String) -> Result<bool, PathError> {
        let project = self.project.to_owned();
        blocking(move || any_matches(&project, &base, &pattern)).await
    }

    /// Output of commands is redacted where it is read; this is for bodies of answers, and for messages.
    fn redacted(&self, result: CheckResult) -> CheckResult {
        let clean = |text: String| self.redactor.redact_text(&text);
        match result {
            CheckResult::Passed | CheckResult::Stopped | CheckResult::NoRoom { .. } => result,
            CheckResult::Failed { why, output } => CheckResult::Failed { why: clean(why), output: clean(output) },
            CheckResult::CouldNotRun { why } => CheckResult::CouldNotRun { why: clean(why) },
        }
    }
}

struct ShellStep<'a> {
    command: &'a str,
    cwd: &'a str,
    texts: &'a [String],
    globs: &'a [String],
    timeout: Duration,
}

fn failed(why: String) -> CheckResult {
    CheckResult::Failed { why, output: String::new() }
}

fn could_not_run(error: &impl std::fmt::Display) -> CheckResult {
    CheckResult::CouldNotRun { why: error.to_string() }
}

async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    match tokio::task::spawn_blocking(work).await {
        Ok(value) => value,
        Err(error) => std::panic::resume_unwind(error.into_panic()),
    }
}

/// Texts that are looked for in all of a command's output, also in the part that is not kept.
struct Sought<'a> {
    missing: Vec<&'a str>,
    /// The end of what came on each stream: a text may be split between chunks.
    ends: [Vec<u8>; 2],
}

impl<'a> Sought<'a> {
    fn new(texts: &'a [String]) -> Self {
        Self { missing: texts.iter().map(String::as_str).filter(|t| !t.is_empty()).collect(), ends: Default::default() }
    }

    fn see(&mut self, stream: Stream, bytes: &[u8]) {
        let Some(longest) = self.missing.iter().map(|text| text.len()).max() else { return };
        let seen = &mut self.ends[usize::from(stream == Stream::Stderr)];
        seen.extend_from_slice(bytes);
        self.missing.retain(|text| memmem::find(seen, text.as_bytes()).is_none());
        seen.drain(..seen.len().saturating_sub(longest - 1));
    }

    fn missing(&self) -> impl Iterator<Item = &'a str> {
        self.missing.iter().copied()
    }
}

struct UrlStep {
    url: String,
    method: String,
    status: u16,
    texts: Vec<String>,
    timeout: Duration,
}

impl UrlStep {
    fn ask(&self) -> CheckResult {
        let request = match ureq::http::Request::builder().method(self.method.as_str()).uri(&self.url).body(()) {
            Ok(request) => request,
            Err(e) => return CheckResult::CouldNotRun { why: format!("{} {}: {e}", self.method, self.url) },
        };
        // Who expects a redirect wants to see it.
        let redirects = if (300..400).contains(&self.status) { 0 } else { MAX_REDIRECTS };
        let agent: ureq::Agent = ureq::Agent::config_builder()
            .timeout_global(Some(self.timeout))
            .http_status_as_error(false)
            .max_redirects(redirects)
            .max_redirects_will_error(false)
            .user_agent(concat!("ralphloop/", env!("CARGO_PKG_VERSION")))
            .build()
            .into();
        let mut response = match agent.run(request) {
            Ok(response) => response,
            Err(error) => return self.no_answer(&error),
        };
        let mut body = Vec::new();
        let read = response.body_mut().as_reader().take(MAX_BODY).read_to_end(&mut body);
        let status = response.status().as_u16();
        let mut wrong: Vec<String> = Vec::new();
        if status != self.status {
            wrong.push(format!("status {status} instead of {}", self.status));
        } else if let Err(error) = read {
            wrong.push(format!("the body broke off: {error}"));
        }
        let lacking = self.texts.iter().filter(|text| memmem::find(&body, text.as_bytes()).is_none());
        wrong.extend(lacking.map(|text| format!("the body lacks {text:?}")));
        if wrong.is_empty() {
            return CheckResult::Passed;
        }
        body.truncate(SHOWN_BODY);
        CheckResult::Failed { why: format!("{}: {}", self.url, wrong.join("; ")), output: output::clean(&body) }
    }

    fn no_answer(&self, error: &ureq::Error) -> CheckResult {
        use ureq::Error as E;
        match error {
            E::Timeout(_) => failed(format!("{}: {}", self.url, timed_out(self.timeout))),
            E::BadUri(_) | E::Http(_) | E::RequireHttpsOnly(_) | E::InvalidProxyUrl => {
                CheckResult::CouldNotRun { why: format!("{} {}: {error}", self.method, self.url) }
            }
            _ => failed(format!("no answer from {}: {error}", self.url)),
        }
    }
}
