//! Every recorded stream of a real client comes to the end that its script stands for.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use ralphloop_agent::client::Format;
use ralphloop_agent::decoder::ProcessEnd;
use ralphloop_core::evidence::{AgentEnd, AgentReport, Claim};
use ralphloop_core::units::{Timestamp, Usd};

use crate::support::Call;

/// The recordings, which are not part of the repository: `RALPHLOOP_SHARED`, or a folder `shared` beside it.
fn recordings() -> Option<PathBuf> {
    let below = Path::new("recordings/claude");
    if let Some(shared) = std::env::var_os("RALPHLOOP_SHARED") {
        return Some(Path::new(&shared).join(below));
    }
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.ancestors().map(|up| up.join("shared").join(below)).find(|path| path.is_dir())
}

fn read(folder: &Path, name: &str, index: &serde_json::Value) -> AgentReport {
    let stdout = std::fs::read(folder.join(format!("{name}.jsonl"))).unwrap();
    let about = &index[name];
    let stderr = about["stderr_head"].as_str().unwrap_or_default();
    let process = match about["rc"].as_i64() {
        Some(code) if code >= 0 => ProcessEnd::Exited { code: i32::try_from(code).unwrap() },
        _ => ProcessEnd::Signalled { signal: 9 },
    };
    let call = Call { format: Format::Claude, prompt: "", stdout: &stdout, stderr: stderr.as_bytes(), process };
    let whole = call.clone().run(usize::MAX);
    assert_eq!(whole, call.run(7), "{name} reads otherwise in small pieces");
    whole.1
}

/// The end in one word, with what tells it from others of its kind.
fn word(report: &AgentReport) -> String {
    let claim = match &report.claim {
        Claim::Complete => "complete",
        Claim::None { near_miss: Some(_) } => "near miss",
        Claim::None { near_miss: None } => "none",
        other => return format!("{other:?}"),
    };
    match &report.end {
        AgentEnd::Finished => format!("finished: {claim}"),
        AgentEnd::Crashed { status, .. } => format!("crashed: {status}"),
        AgentEnd::Limit { resets_at, .. } => format!("limit: {}", resets_at.map_or(0, |Timestamp(ms)| ms)),
        AgentEnd::Error { message } => format!("error: {}", message.split(['\n', '(', '.']).next().unwrap().trim()),
        AgentEnd::PermissionDenied { tools } => format!("denied: {}", tools.join(" ")),
        AgentEnd::NoFinalMessage => "no final message".into(),
        AgentEnd::NoOutput => "no output".into(),
        AgentEnd::PromptTooLong { .. } => "prompt too long".into(),
        AgentEnd::Overloaded { .. } => "overloaded".into(),
        AgentEnd::Network { .. } => "network".into(),
        AgentEnd::SignIn { remedy, .. } => {
            format!("sign in: {}", remedy.as_deref().unwrap_or_default().contains("claude"))
        }
        AgentEnd::NoCredit { .. } => "no credit".into(),
        AgentEnd::ModelUnknown { .. } => "model unknown".into(),
        AgentEnd::CannotStart { .. } => "cannot start".into(),
        other => format!("{other:?}"),
    }
}

const EXPECTED: &[(&str, &str)] = &[
    (
        "finished: complete",
        "allowedtools authtoken badmodel bare bgsh big131000_argv big200k_stdin bodies bypass_env denied_acceptEdits \
         denied_default denied_dontAsk err500_once holdstdin json mcp_missing net_default ok ok_partial ok_warn \
         ok_warn_oauth over529_once rate429_once reset_mid reset_once sess2 sessionid slashprompt sse_error strace unicode",
    ),
    ("finished: near miss", "ask quote failed slow_partial"),
    (
        "finished: none",
        "midtoken notoken resume resume3 resume4 resume_othercwd sess2_resume1 sess2_resume2 settings_inline \
         token_in_tool tools_none",
    ),
    ("denied: Write Bash", "plan"),
    ("no final message", "empty sig_INT_hang text"),
    ("no output", "jsonin"),
    ("limit: 0", "rate429 rate429_long rate429_mid rate429_oauth usage429"),
    ("limit: 1795821068000", "usage429_oauth"),
    ("limit: 1795824240000", "usage429_oauth_text"),
    ("overloaded", "err500 over529 over529_dflt_retries over529_fallback text_err500"),
    ("network", "cut reset hang_apitimeout"),
    ("sign in: true", "nokey forbid403"),
    ("no credit", "credit400"),
    ("model unknown", "model404"),
    ("prompt too long", "toolong400 big3M_stdin big12M_stdin"),
    (
        "cannot start",
        "allowedtools_eats_prompt badflag bypass_noisandbox bypassmode_noisandbox dashprompt emptyprompt noprompt \
         noverbose settings_bad",
    ),
    ("error: API Error: 400 messages: bad request", "bad400 bad400_bodies"),
    ("error: Reached maximum budget", "budget"),
    ("error: Reached maximum number of turns", "maxturns"),
    ("error: API Error: Claude's response exceeded the 128000 output token maximum", "maxtok"),
    ("error: API Error: Sonnet 5", "refusal"),
    ("error: No conversation found with session ID: 99999999-2222-4333-8444-555555555555", "resume_unknown"),
    (
        "error: [ede_diagnostic] result_type=user last_content_type=n/a stop_reason=tool_use",
        "sig_INT_group sig_INT_pid",
    ),
    (
        "crashed: signal 9",
        "auth401 epipe hang hang_900s hang_mid hang_mid_900s noanswer_closed sig_KILL_group sig_KILL_pid",
    ),
    ("crashed: exit code 143", "holdstdin_TERM sig_TERM_group sig_TERM_group2 sig_TERM_hang sig_TERM_pid"),
    ("crashed: exit code 129", "sig_HUP_pid"),
];

#[test]
fn every_recording_of_claude_comes_to_the_end_that_its_script_stands_for() {
    let Some(folder) = recordings() else {
        eprintln!("no recordings here; RALPHLOOP_SHARED names their folder");
        return;
    };
    let index: serde_json::Value = serde_json::from_slice(&std::fs::read(folder.join("index.json")).unwrap()).unwrap();
    let mut expected: BTreeMap<&str, &str> = BTreeMap::new();
    for (end, names) in EXPECTED {
        expected.extend(names.split_whitespace().map(|name| (name, *end)));
    }
    let mut seen = 0;
    let mut wrong = Vec::new();
    for entry in std::fs::read_dir(&folder).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|extension| extension != "jsonl") {
            continue;
        }
        let name = path.file_stem().unwrap().to_str().unwrap();
        let report = read(&folder, name, &index);
        let want = expected.get(name).unwrap_or_else(|| panic!("{name} has no expectation"));
        if word(&report) != *want {
            wrong.push(format!("{name}: {want} expected, got {} ({:?})", word(&report), report.end));
        }
        seen += 1;
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert_eq!(seen, expected.len());
}

#[test]
fn r23_the_report_of_a_recording_has_its_last_words_its_tokens_and_its_cost() {
    let Some(folder) = recordings() else { return };
    let report = read(&folder, "ok", &serde_json::json!({"ok": {"rc": 0}}));
    assert_eq!(report.last_words, "All work is finished.\n<promise>COMPLETE</promise>");
    assert_eq!(report.usage.input_tokens, Some(3960));
    assert_eq!(report.usage.output_tokens, Some(150));
    assert_eq!(report.usage.cost, Some(Usd(7740)));
}
