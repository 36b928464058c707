//! The list of steps that an agent keeps of its work, whichever tool or event of its client tells it.

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::lenient::{Flag, ListOrText, Text};
use crate::sanitize;

/// More steps than this are not told.
const STEPS: usize = 50;
/// Columns of one step.
const WIDEST: usize = 200;
/// The tools by which agents keep their list, as clients call them.
const TOOLS: [&str; 5] = ["TodoWrite", "todowrite", "todo_write", "write_todos", "update_plan"];

/// How far a step is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum StepState {
    /// It is still to be done.
    Open,
    /// It is being done.
    Current,
    /// It is done, as the agent says.
    Done,
    /// It will not be done.
    Dropped,
}

impl StepState {
    /// As a box in front of the step.
    pub fn mark(self) -> &'static str {
        match self {
            Self::Open => "[ ]",
            Self::Current => "[>]",
            Self::Done => "[x]",
            Self::Dropped => "[-]",
        }
    }
}

/// One step of a plan.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Step {
    /// What is to be done, on one line.
    pub text: String,
    /// How far it is.
    pub state: StepState,
}

/// A plan in few words: how much of it is done, and what is being done.
pub fn in_brief(steps: &[Step]) -> String {
    let done = steps.iter().filter(|step| step.state == StepState::Done).count();
    let of = steps.iter().filter(|step| step.state != StepState::Dropped).count();
    let current = steps.iter().find(|step| step.state == StepState::Current);
    current.map_or_else(|| format!("{done} of {of} done"), |step| format!("{done} of {of} done; now: {}", step.text))
}

/// A plan in full, a line a step.
pub fn in_full(steps: &[Step]) -> String {
    steps.iter().map(|step| format!("{} {}", step.state.mark(), step.text)).collect::<Vec<_>>().join("\n")
}

/// Whether a tool of that name keeps a plan, and changes nothing else.
pub(crate) fn is_tool(name: &str) -> bool {
    TOOLS.contains(&name)
}

/// The plan in the input of a tool, if it is one that keeps it.
pub(crate) fn of_tool(name: &str, input: &str) -> Vec<Step> {
    #[derive(Debug, Default, Deserialize)]
    #[serde(default)]
    struct Input<'a> {
        #[serde(borrow)]
        todos: Option<&'a RawValue>,
        #[serde(borrow)]
        plan: Option<&'a RawValue>,
    }
    if !is_tool(name) {
        return Vec::new();
    }
    let input: Input<'_> = serde_json::from_str(input).unwrap_or_default();
    input.todos.or(input.plan).map(|list| of_list(list.get())).unwrap_or_default()
}

/// The steps of a list, whatever its client calls their parts. What has no words is no step.
pub(crate) fn of_list(list: &str) -> Vec<Step> {
    #[derive(Debug, Default, Deserialize)]
    #[serde(default)]
    struct Item<'a> {
        #[serde(borrow)]
        content: Text<'a>,
        #[serde(borrow)]
        step: Text<'a>,
        #[serde(borrow)]
        description: Text<'a>,
        #[serde(borrow)]
        text: Text<'a>,
        #[serde(borrow)]
        status: Text<'a>,
        completed: Flag,
    }
    let Ok(ListOrText::List(items)) = serde_json::from_str::<ListOrText<'_, Item<'_>>>(list) else { return Vec::new() };
    let step = |item: &Item<'_>| {
        let words = [&item.content, &item.step, &item.description, &item.text].into_iter().find_map(Text::as_str)?;
        let state = match item.status.as_str() {
            Some("completed" | "done") => StepState::Done,
            Some("in_progress" | "inProgress") => StepState::Current,
            Some("cancelled" | "canceled") => StepState::Dropped,
            None if item.completed.0 == Some(true) => StepState::Done,
            _ => StepState::Open,
        };
        let text = sanitize::one_line(words, WIDEST);
        (!text.is_empty()).then_some(Step { text, state })
    };
    items.iter().filter_map(step).take(STEPS).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plan_reads_from_each_clients_list_and_from_no_other_tool() {
        let shown = |name: &str, input: &str| in_full(&of_tool(name, input));
        let claude = r#"{"todos":[{"content":"Look","status":"completed","activeForm":"Looking"},{"content":"Do","status":"in_progress","activeForm":"Doing"}]}"#;
        assert_eq!(shown("TodoWrite", claude), "[x] Look\n[>] Do");
        assert_eq!(shown("todo_write", claude), "[x] Look\n[>] Do");
        let gemini =
            r#"{"todos":[{"description":"Look","status":"cancelled"},{"description":"Do","status":"pending"}]}"#;
        assert_eq!(shown("write_todos", gemini), "[-] Look\n[ ] Do");
        assert_eq!(shown("update_plan", r#"{"plan":[{"step":"Do","status":"in_progress"}]}"#), "[>] Do");
        assert_eq!(shown("Write", claude), "");
        for broken in ["", "[]", "7", r#"{"todos":"none"}"#, r#"{"todos":[7,{},{"content":" "}]}"#] {
            assert_eq!(shown("TodoWrite", broken), "", "{broken}");
        }
    }

    #[test]
    fn a_plan_is_bounded_and_harmless() {
        let step = r#"{"content":"\u001b[31mred\nand more "#.to_owned() + &"x".repeat(5000) + r#""}"#;
        let steps = of_list(&format!("[{}]", vec![step; 500].join(",")));
        assert_eq!(steps.len(), STEPS);
        assert!(steps[0].text.starts_with("red and more x") && steps[0].text.len() <= WIDEST + 3, "{}", steps[0].text);
    }

    #[test]
    fn in_brief_it_says_how_far_it_is() {
        let step = |text: &str, state| Step { text: text.to_owned(), state };
        let steps = [step("a", StepState::Done), step("b", StepState::Current), step("c", StepState::Dropped)];
        assert_eq!(in_brief(&steps), "1 of 2 done; now: b");
        assert_eq!(in_brief(&steps[..1]), "1 of 1 done");
    }
}
