use ralphloop_core::effect::Failure;
use ralphloop_core::ids::StoryId;
use ralphloop_core::plan::{Context, Priority, Requirement, Scenario, Task, WorkId, WorkState};
use ralphloop_core::signal;

use super::*;

fn story(id: &str, title: &str) -> Story {
    Story {
        description: "Users must be able to sign in.".into(),
        priority: Some(Priority(1.0)),
        tasks: vec![task("1.1", "Make the form", WorkState::Done), task("1.2", "Check the token", WorkState::Todo)],
        criteria: vec!["A wrong password is refused".into()],
        ..Story::new(id, title)
    }
}

fn task(id: &str, text: &str, state: WorkState) -> Task {
    Task { state, ..Task::new(id, text) }
}

fn requirement(capability: &str, title: &str) -> Requirement {
    Requirement {
        capability: capability.into(),
        id: title.to_lowercase().replace(' ', "-"),
        title: title.into(),
        delta: ralphloop_core::plan::Delta::Added,
        text: format!("The system SHALL do {title}."),
        scenarios: vec![Scenario {
            name: format!("{title} works"),
            given: vec!["a user".into()],
            when: vec!["he asks".into()],
            then: vec!["he is answered".into(), "it is logged".into()],
            other: Vec::new(),
        }],
    }
}

fn plan(story: Story) -> Plan {
    Plan {
        context: Context {
            proposal: "PROPOSAL-TEXT".into(),
            design: "DESIGN-TEXT".into(),
            requirements: vec![requirement("billing", "Invoices"), requirement("auth/tokens", "Token check")],
            tool_prompt: "TOOL-PROMPT".into(),
            ..Context::default()
        },
        ..Plan::new(WorkId { scheme: Scheme::OpenSpec, id: "add-login".into() }, vec![story])
    }
}

/// The prompt of an attempt at the only story of `plan`.
fn prompt_with(
    plan: &Plan,
    brief: &Brief,
    attempt: u32,
    template: Option<(&str, &str)>,
) -> Result<String, PromptError> {
    build(&PromptInput {
        plan,
        story: &plan.stories[0],
        brief,
        attempt,
        max_attempts: 4,
        grammar: &SignalGrammar::default(),
        gates: &[Gate { name: "test".into(), command: "cargo test".into() }],
        learnings_budget: 4096,
        template,
    })
}

fn prompt(brief: &Brief, attempt: u32) -> String {
    prompt_with(&plan(story("S-1", "Sign in")), brief, attempt, None).unwrap()
}

fn failure(reason: &str, output: &str) -> Failure {
    Failure { reason: reason.into(), output: output.into(), at_baseline: false, check: None }
}

fn assert_order(text: &str, parts: &[&str]) {
    let mut from = 0;
    for part in parts {
        let at =
            text[from..].find(part).unwrap_or_else(|| panic!("{part:?} is not after the parts before it:\n{text}"));
        from += at + part.len();
    }
}

#[test]
fn r28_the_sections_come_in_their_order() {
    let brief = Brief {
        previous: vec![failure("test failed: exit code 1", "assertion failed")],
        learnings: vec!["use make deps".into()],
        guidance: vec!["prefer small steps".into()],
        ..Brief::default()
    };
    let text = prompt(&brief, 2);
    let parts = [
        "# Story S-1: Sign in\n",
        "attempt 2 of at most 4",
        "previous attempt failed",
        "test failed: exit code 1",
        "```\nassertion failed\n```",
        "prefer small steps",
        "this story only",
        "Users must be able to sign in.",
        "- [x] 1.1 Make the form\n",
        "- [ ] 1.2 Check the token\n",
        "A wrong password is refused",
        "test: cargo test",
        "PROPOSAL-TEXT",
        "DESIGN-TEXT",
        "use make deps",
        "Look after the ones that matter",
        "Then he is answered\n  - And it is logged",
        "TOOL-PROMPT",
        "    <promise>COMPLETE</promise>\n",
        "    <promise>FAILED: why, in one sentence</promise>\n",
        "    <promise>BLOCKED: what is missing, in one sentence</promise>\n",
    ];
    assert_order(&text, &parts);
    assert!(text.starts_with("# Story S-1"));
    assert!(!text.contains("\n\n\n"), "{text}");
}

#[test]
fn r29_the_prompt_needs_no_environment_variable() {
    assert!(!prompt(&Brief::default(), 1).contains('$'));
}

#[test]
fn r30_after_an_abnormal_end_nothing_is_added() {
    assert_eq!(prompt(&Brief::default(), 2), prompt(&Brief::default(), 1));
}

#[test]
fn r52_what_earlier_attempts_learned_is_told_once_within_the_budget_and_how_to_leave_more() {
    let mut learnings: Vec<String> = (0..100).map(|n| format!("learning {n} {}", "x".repeat(200))).collect();
    learnings.insert(0, "the best".into());
    learnings.insert(1, "the best".into());
    let text = prompt(&Brief { learnings, ..Brief::default() }, 1);
    assert_eq!(text.matches("- the best").count(), 1);
    assert!(text.contains("learning 0 ") && !text.contains("learning 99 "));
    assert!(text.contains("<learning>one sentence</learning>"));
    assert!(!prompt(&Brief::default(), 1).contains("Learned by earlier attempts"));
}

#[test]
fn scenarios_that_the_story_speaks_of_come_first_and_what_does_not_fit_is_counted() {
    assert_order(&prompt(&Brief::default(), 1), &["auth/tokens: Token check", "billing: Invoices"]);
    let mut many = plan(story("S-1", "Sign in"));
    many.context.requirements =
        (0..200).map(|n| requirement("misc", &format!("Thing {n} {}", "y".repeat(300)))).collect();
    many.context.requirements.push(requirement("auth/tokens", "Token check"));
    let text = prompt_with(&many, &Brief::default(), 1, None).unwrap();
    assert!(text.contains("auth/tokens: Token check") && text.contains("more requirements are left out"));
    assert!(text.len() < 50_000, "{}", text.len());
}

#[test]
fn a_question_is_quoted_and_nobody_answers_it() {
    let brief = Brief { last_words: Some("Should I use SQLite or Postgres?".into()), ..Brief::default() };
    assert_order(&prompt(&brief, 2), &["Should I use SQLite or Postgres?", "Nobody answers", "decide it yourself"]);
}

#[test]
fn a_repair_keeps_the_work_and_tells_what_fails() {
    let brief = Brief {
        repair: vec![Failure { at_baseline: true, ..failure("gate lint failed", "unused import") }],
        ..Brief::default()
    };
    let text = prompt(&brief, 2);
    let told = ["Keep it and mend it", "gate lint failed (it failed before", "unused import", "this story only"];
    assert_order(&text, &told);
    assert!(!text.contains("attempt 2"));
}

#[test]
fn failing_output_is_bounded_and_cannot_close_its_fence() {
    let output = format!("FIRST\n{}\n````\nLAST", "z".repeat(400_000));
    let text = prompt(&Brief { previous: vec![failure("test failed", &output)], ..Brief::default() }, 2);
    assert!(text.len() < 20_000, "{}", text.len());
    assert_order(&text, &["`````\nFIRST", "bytes left out here]", "````\nLAST\n`````"]);
}

#[test]
fn a_shorter_prompt_is_never_longer_and_drops_history_and_context() {
    let brief = Brief { shorter: true, previous: vec![failure("Prompt is too long", "")], ..Brief::default() };
    let text = prompt(&brief, 2);
    assert!(text.len() <= prompt(&Brief::default(), 1).len());
    assert!(text.contains("S-1") && text.contains("Check the token"));
    for gone in ["PROPOSAL-TEXT", "DESIGN-TEXT", "Prompt is too long", "attempt 2"] {
        assert!(!text.contains(gone), "{gone}");
    }
}

#[test]
fn a_long_story_is_told_whole() {
    let mut long = story("S1", "long story");
    long.description = format!("{}END-MARK-91", "long text ".repeat(30_000));
    assert!(prompt_with(&plan(long), &Brief::default(), 1, None).unwrap().contains("END-MARK-91"));
}

#[test]
fn text_of_a_spec_is_data_and_never_a_template() {
    let mut odd = story("S-1", "two\nlines {{ work }} {% include \"base\" %}");
    odd.description = "{{ 7 * 7 }} {% raw %} {# gone #} <b>&amp;</b>".into();
    let text = prompt_with(&plan(odd), &Brief::default(), 1, None).unwrap();
    assert!(text.starts_with("# Story S-1: two lines {{ work }} {% include \"base\" %}\n"), "{text}");
    assert!(text.contains("{{ 7 * 7 }} {% raw %} {# gone #} <b>&amp;</b>"));
}

#[test]
fn the_prompt_itself_is_no_signal_even_if_all_of_it_is_echoed() {
    let text = prompt(&Brief::default(), 1);
    let claim = signal::claim(&text, &StoryId::from("S-1"), &SignalGrammar::default());
    assert!(matches!(claim, ralphloop_core::evidence::Claim::None { .. }));
}

#[test]
fn a_users_template_may_extend_ours_or_replace_it() {
    let plan = plan(story("S-1", "Sign in"));
    let extended = "{% extends \"openspec\" %}{% block scope %}OWN SCOPE\n{% endblock %}";
    let text = prompt_with(&plan, &Brief::default(), 1, Some(("own.md", extended))).unwrap();
    assert_order(&text, &["# Story S-1", "OWN SCOPE", "DESIGN-TEXT", "How to end"]);
    let whole = "Do {{ story.id }} of {{ work }}, then say {{ signals.complete }}";
    let text = prompt_with(&plan, &Brief::default(), 1, Some(("own.md", whole))).unwrap();
    assert_eq!(text, "Do S-1 of openspec:add-login, then say <promise>COMPLETE</promise>");
}

#[test]
fn a_fault_in_a_users_template_is_told_with_name_and_line() {
    let plan = plan(story("S-1", "Sign in"));
    let error = |text: &str| prompt_with(&plan, &Brief::default(), 1, Some(("own.md", text))).unwrap_err();
    for text in
        ["{{ story.id }}\n{% if %}", "{{ story.id }}\n{{ no_such_value }}", "{{ story.id }}\n{% include \"x\" %}"]
    {
        let message = error(text).to_string();
        assert!(message.contains("own.md, line 2"), "{message}");
    }
    let message = error("Do something.").to_string();
    assert!(message.contains("own.md") && message.contains("{{ story.id }}"), "{message}");
}
