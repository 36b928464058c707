//! Every recorded stream of a real client comes to the end that its script stands for.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use ralphloop_agent::client::Format;
use ralphloop_agent::decoder::ProcessEnd;
use ralphloop_core::evidence::{AgentEnd, AgentReport, Claim};
use ralphloop_core::units::{Timestamp, Usd};

use crate::support::Call;

/// The recordings of a client, which are not part of the repository: `RALPHLOOP_SHARED`, or a folder `shared` beside it.
fn recordings(client: &str) -> Option<PathBuf> {
    let below = Path::new("recordings").join(client);
    if let Some(shared) = std::env::var_os("RALPHLOOP_SHARED") {
        return Some(Path::new(&shared).join(below));
    }
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.ancestors().map(|up| up.join("shared").join(&below)).find(|path| path.is_dir())
}

fn index(folder: &Path) -> serde_json::Value {
    serde_json::from_slice(&std::fs::read(folder.join("index.json")).unwrap()).unwrap()
}

/// Names of all recordings in `folder`.
fn names(folder: &Path) -> Vec<String> {
    let mut names: Vec<String> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "jsonl"))
        .map(|path| path.file_stem().unwrap().to_str().unwrap().to_owned())
        .collect();
    names.sort();
    names
}

fn read(folder: &Path, format: Format, name: &str, index: &serde_json::Value) -> AgentReport {
    let stdout = std::fs::read(folder.join(format!("{name}.jsonl"))).unwrap();
    let about = &index[name];
    let stderr = about["stderr_head"].as_str().unwrap_or_default();
    let process = match about["rc"].as_i64() {
        Some(code) if code >= 0 => ProcessEnd::Exited { code: i32::try_from(code).unwrap() },
        Some(code) => ProcessEnd::Signalled { signal: i32::try_from(-code).unwrap() },
        None => ProcessEnd::Signalled { signal: 9 },
    };
    let call = Call { format, prompt: "", stdout: &stdout, stderr: stderr.as_bytes(), process };
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
        AgentEnd::SignIn { .. } => "sign in".into(),
        AgentEnd::NoCredit { .. } => "no credit".into(),
        AgentEnd::ModelUnknown { .. } => "model unknown".into(),
        AgentEnd::CannotStart { .. } => "cannot start".into(),
        other => format!("{other:?}"),
    }
}

const CLAUDE: &[(&str, &str)] = &[
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
    ("sign in", "nokey forbid403"),
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

const CODEX: &[(&str, &str)] = &[
    ("sign in", "auth401 forbid403 nokey"),
    (
        "error: {\"error\": {\"message\": \"messages: bad request\", \"type\": \"invalid_request_error\", \"code\": null}}",
        "bad400",
    ),
    ("cannot start", "badflag dashprompt strictcfg wire_chat"),
    (
        "finished: complete",
        "bgsh big200k_stdin emptyprompt ephemeral err500_once lastmsg notgit ok over529_once rate429_once reset_once sandbox_ro sandbox_ws unicode unknowncfg",
    ),
    ("prompt too long", "big3M_stdin toolong400"),
    ("network", "cut hang_mid_900s hang_mid_idle5s reset reset_mid sse_error"),
    ("no final message", "empty refusal text"),
    ("overloaded", "err500 err500_noretry over529"),
    ("finished: near miss", "failed quote"),
    ("crashed: signal 9", "hang hang_900s hang_idle5s hang_mid holdstdin sig_KILL_group sig_KILL_pid"),
    ("error: Incomplete response returned, reason: max_output_tokens", "maxtok"),
    ("model unknown", "model404"),
    ("crashed: exit code 1", "noprompt resume_unknown sig_INT_hang sig_INT_pid"),
    ("finished: none", "notoken resume token_in_tool"),
    ("no credit", "quota429"),
    ("limit: 0", "rate429 rate429_long rate429_noretry"),
    ("crashed: signal 1", "sig_HUP_pid"),
    ("crashed: signal 15", "sig_TERM_group sig_TERM_hang sig_TERM_pid"),
    ("limit: 1795821660000", "usage429"),
];
const OPENCODE: &[(&str, &str)] = &[
    ("sign in", "auth401 forbid403"),
    ("error: messages: bad request", "bad400"),
    ("finished: complete", "bgsh big200k_stdin err500_once ok over529_once rate429_once reset_once unicode"),
    ("network", "cut reset reset_mid"),
    ("crashed: exit code 1", "dashprompt"),
    ("no final message", "empty"),
    ("overloaded", "err500 over529 sse_error"),
    ("finished: near miss", "failed quote"),
    (
        "crashed: signal 9",
        "hang hang_mid holdstdin rate429_long sig_HUP_pid sig_INT_hang sig_INT_pid sig_KILL_group sig_KILL_pid usage429",
    ),
    ("error: the answer was cut at the model's output limit", "maxtok"),
    ("model unknown", "model404"),
    ("finished: none", "notoken token_in_tool"),
    ("no credit", "quota429"),
    ("limit: 1795780802000", "rate429"),
    ("error: The response was blocked by the provider's content filter", "refusal"),
    ("crashed: signal 15", "sig_TERM_group sig_TERM_hang sig_TERM_pid"),
];
const GEMINI: &[(&str, &str)] = &[
    ("sign in", "auth401 forbid403 nokey"),
    (
        "error: [API Error: {\"error\":{\"code\":400,\"message\":\"messages: bad request\",\"status\":\"INVALID_ARGUMENT\"}}]",
        "bad400",
    ),
    ("cannot start", "badflag"),
    (
        "finished: complete",
        "bgsh cut err500_once holdstdin ok over529_once rate429_once reset reset_mid reset_once session_id untrusted",
    ),
    ("crashed: exit code 1", "dashprompt"),
    ("finished: none", "denied_default maxtok notoken resume token_in_tool"),
    ("error: The model returned an empty response with no text or thoughts", "empty"),
    (
        "crashed: signal 9",
        "err500 hang hang_mid over529 rate429 sig_HUP_pid sig_INT_hang sig_INT_pid sig_KILL_group sig_KILL_pid sig_TERM_hang sig_TERM_pid",
    ),
    ("finished: near miss", "failed quote"),
    ("network", "hang_900s sse_error"),
    ("no final message", "json norelaunch_INT_pid norelaunch_TERM_hang norelaunch_TERM_pid sig_TERM_group"),
    ("error: Loop detected, stopping execution", "maxturns unicode"),
    ("model unknown", "model404"),
    ("limit: 0", "quota429"),
    ("limit: 1795784400000", "rate429_long"),
    ("error: The model response was blocked due to safety settings", "refusal"),
    ("prompt too long", "toolong400"),
    ("limit: 1795788000000", "usage429"),
];
const QWEN: &[(&str, &str)] = &[
    ("sign in", "auth401"),
    ("finished: complete", "bgsh big200k_stdin holdstdin ok over529_once rate429_once"),
    ("network", "cut reset"),
    ("error: [API Error: Model stream ended with empty response text", "empty refusal"),
    ("crashed: signal 9", "err500 over529 rate429 rate429_long sig_KILL_pid usage429"),
    ("finished: near miss", "failed quote"),
    ("finished: none", "maxtok notoken token_in_tool"),
    ("crashed: exit code 53", "maxturns"),
    ("crashed: exit code 55", "maxwall"),
    ("crashed: signal 2", "sig_INT_pid"),
    ("crashed: signal 15", "sig_TERM_group sig_TERM_hang sig_TERM_pid"),
    ("prompt too long", "toolong400"),
];
const COPILOT: &[(&str, &str)] = &[
    ("sign in", "auth401 forbid403"),
    ("error: 400 messages: bad request", "bad400"),
    ("finished: complete", "bgsh err500_once holdstdin ok over529_once rate429_once reset_once unicode"),
    ("network", "cut reset reset_mid"),
    ("crashed: exit code 1", "dashprompt"),
    ("error: No response was returned", "empty"),
    ("overloaded", "err500 over529 sse_error"),
    ("finished: near miss", "failed quote"),
    ("crashed: signal 9", "hang hang_900s hang_mid sig_KILL_group sig_KILL_pid"),
    ("finished: none", "maxtok notoken refusal token_in_tool"),
    ("model unknown", "model404"),
    ("no credit", "quota429"),
    ("limit: 0", "rate429 rate429_long usage429"),
    ("crashed: signal 1", "sig_HUP_pid"),
    ("crashed: signal 2", "sig_INT_hang sig_INT_pid"),
    ("error: the client was interrupted", "sig_TERM_group"),
    ("crashed: signal 15", "sig_TERM_hang sig_TERM_pid"),
    ("prompt too long", "toolong400"),
];
const PI: &[(&str, &str)] = &[
    ("sign in", "auth401 forbid403"),
    ("error: 400 messages: bad request", "bad400"),
    ("finished: complete", "bgsh cut err500_once ok ok_stdin over529_once rate429_once reset reset_mid reset_once"),
    ("cannot start", "dashprompt"),
    ("no final message", "empty"),
    ("overloaded", "err500 over529 sse_error"),
    ("finished: near miss", "failed quote"),
    ("crashed: signal 9", "hang hang_900s hang_mid holdstdin rate429_long sig_KILL_group sig_KILL_pid"),
    ("error: the answer was cut at the model's output limit", "maxtok"),
    ("model unknown", "model404"),
    ("finished: none", "notoken token_in_tool"),
    ("no credit", "quota429"),
    ("limit: 0", "rate429 usage429"),
    ("error: Provider finish_reason: content_filter", "refusal"),
    ("crashed: exit code 129", "sig_HUP_pid"),
    ("crashed: signal 2", "sig_INT_hang sig_INT_pid"),
    ("crashed: exit code 143", "sig_TERM_group sig_TERM_hang sig_TERM_pid"),
    ("prompt too long", "toolong400"),
];

fn every_recording_ends_as_expected(client: &str, format: Format, expectations: &[(&str, &str)]) {
    let Some(folder) = recordings(client) else {
        return;
    };
    let index = index(&folder);
    let mut expected: BTreeMap<&str, &str> = BTreeMap::new();
    for (end, names) in expectations {
        expected.extend(names.split_whitespace().map(|name| (name, *end)));
    }
    let names = names(&folder);
    let mut wrong = Vec::new();
    for name in &names {
        let report = read(&folder, format, name, &index);
        let want = expected.get(name.as_str()).unwrap_or(&"an expectation");
        if word(&report) != *want {
            wrong.push(format!("{name}: {want} expected, got {} ({:?})", word(&report), report.end));
        }
    }
    assert!(wrong.is_empty(), "{client}\n{}", wrong.join("\n"));
    assert_eq!(names.len(), expected.len());
}

#[test]
fn every_recording_of_claude_comes_to_the_end_that_its_script_stands_for() {
    every_recording_ends_as_expected("claude", Format::Claude, CLAUDE);
}

#[test]
fn every_recording_of_codex_comes_to_the_end_that_its_script_stands_for() {
    every_recording_ends_as_expected("codex", Format::Codex, CODEX);
}

#[test]
fn every_recording_of_opencode_comes_to_the_end_that_its_script_stands_for() {
    every_recording_ends_as_expected("opencode", Format::OpenCode, OPENCODE);
}

#[test]
fn every_recording_of_gemini_comes_to_the_end_that_its_script_stands_for() {
    every_recording_ends_as_expected("gemini", Format::Gemini, GEMINI);
}

#[test]
fn every_recording_of_qwen_comes_to_the_end_that_its_script_stands_for() {
    every_recording_ends_as_expected("qwen", Format::Claude, QWEN);
}

#[test]
fn every_recording_of_copilot_comes_to_the_end_that_its_script_stands_for() {
    every_recording_ends_as_expected("copilot", Format::Copilot, COPILOT);
}

#[test]
fn every_recording_of_pi_comes_to_the_end_that_its_script_stands_for() {
    every_recording_ends_as_expected("pi", Format::Pi, PI);
}

/// What the script that ends well has used.
struct Used {
    client: &'static str,
    format: Format,
    /// Tokens read and tokens written.
    tokens: Option<(u64, u64)>,
    /// In millionths of a dollar.
    cost: Option<u64>,
}

const USED: &[Used] = &[
    Used { client: "claude", format: Format::Claude, tokens: Some((3960, 150)), cost: Some(7740) },
    Used { client: "codex", format: Format::Codex, tokens: Some((3000, 150)), cost: None },
    Used { client: "opencode", format: Format::OpenCode, tokens: Some((3000, 150)), cost: Some(2400) },
    Used { client: "gemini", format: Format::Gemini, tokens: Some((3000, 150)), cost: None },
    Used { client: "qwen", format: Format::Claude, tokens: Some((3000, 150)), cost: None },
    Used { client: "copilot", format: Format::Copilot, tokens: None, cost: None },
    Used { client: "pi", format: Format::Pi, tokens: Some((3000, 150)), cost: None },
];

#[test]
fn r23_the_report_of_a_recording_has_its_last_words_its_tokens_and_its_cost() {
    for Used { client, format, tokens, cost } in USED {
        let Some(folder) = recordings(client) else { return };
        let report = read(&folder, *format, "ok", &index(&folder));
        assert_eq!(report.last_words, "All work is finished.\n<promise>COMPLETE</promise>", "{client}");
        let usage = report.usage;
        assert_eq!((usage.input_tokens, usage.output_tokens), tokens.unzip(), "{client}");
        assert_eq!(usage.cost, cost.map(Usd), "{client}");
    }
}

#[test]
fn every_recording_reads_the_same_when_it_is_cut_at_every_byte() {
    for Used { client, format, .. } in USED {
        let Some(folder) = recordings(client) else { return };
        for name in names(&folder) {
            let stdout = std::fs::read(folder.join(format!("{name}.jsonl"))).unwrap();
            let call = Call { format: *format, stdout: &stdout, ..Call::claude("") };
            let whole = call.clone().run(usize::MAX);
            for piece in [1, 2, 61] {
                assert_eq!(call.clone().run(piece), whole, "{client}/{name} in pieces of {piece}");
            }
        }
    }
}

#[test]
fn a_recording_reads_the_same_in_any_two_pieces() {
    for Used { client, format, .. } in USED {
        let Some(folder) = recordings(client) else { return };
        let stdout = std::fs::read(folder.join("ok.jsonl")).unwrap();
        let call = Call { format: *format, stdout: &stdout, ..Call::claude("") };
        let whole = call.clone().run(usize::MAX);
        let ends: Vec<usize> = (1..stdout.len()).filter(|at| stdout[at - 1] == b'\n').collect();
        let around = ends.iter().flat_map(|end| [end - 1, *end, end + 1]);
        for at in (0..stdout.len().min(600)).chain(around).filter(|at| *at <= stdout.len()) {
            let (first, second) = stdout.split_at(at);
            assert_eq!(call.clone().run_in(&[first, second]), whole, "{client} cut at {at}");
        }
    }
}

#[test]
fn a_recording_that_breaks_off_anywhere_before_its_end_is_no_success() {
    for Used { client, format, .. } in USED {
        let Some(folder) = recordings(client) else { return };
        let stdout = std::fs::read(folder.join("ok.jsonl")).unwrap();
        let said_at = memmem(&stdout, b"All work is finished").unwrap();
        for at in (0..said_at).step_by(37) {
            let report = Call { format: *format, stdout: &stdout[..at], ..Call::claude("") }.report();
            assert!(!matches!(report.end, AgentEnd::Finished), "{client} cut at {at}: {report:?}");
            assert_eq!(report.claim, Claim::None { near_miss: None }, "{client} cut at {at}");
        }
    }
}

fn memmem(text: &[u8], what: &[u8]) -> Option<usize> {
    text.windows(what.len()).position(|window| window == what)
}

#[test]
fn a_recording_with_unknown_events_and_broken_lines_in_it_comes_to_the_same_end() {
    let strangers: &[u8] = b"{\"type\":\"brand.new\",\"payload\":{\"deep\":[1,2]}}\n{\"type\":7}\n[]\nnpm warn x\n{\"type\":\"item.completed\",\"item\":{\"type\":\"brand_new\"}}\n{\"ty\n";
    for Used { client, format, .. } in USED {
        let Some(folder) = recordings(client) else { return };
        let index = index(&folder);
        for name in names(&folder) {
            let stdout = std::fs::read(folder.join(format!("{name}.jsonl"))).unwrap();
            let mut mixed = Vec::new();
            for line in stdout.split_inclusive(|byte| *byte == b'\n').filter(|line| line.ends_with(b"\n")) {
                mixed.extend_from_slice(strangers);
                mixed.extend_from_slice(line);
            }
            let plain = word(&read(&folder, *format, &name, &index));
            // Of a stream without events the last lines are read, and these are others now.
            if plain.starts_with("finished") || plain.starts_with("limit") || plain.starts_with("error") {
                let report = Call { format: *format, stdout: &mixed, ..Call::claude("") }.report();
                assert_eq!(word(&report), plain, "{client}/{name}");
            }
        }
    }
}
