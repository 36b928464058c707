//! What an agent is told about the files of a change.

use std::fmt::Write as _;

use ralphloop_core::plan::Context;

/// Where the files are and what the agent may do with them. `tasks` is the path of `tasks.md`.
pub(super) fn tool_prompt(tasks: &str, context: &Context) -> String {
    let folder = tasks.rsplit_once('/').map_or(String::new(), |(folder, _)| format!("{folder}/"));
    let mut out = String::from("This work is an OpenSpec change. Its files:\n");
    let mut list = |file: &str, what: &str| {
        let _infallible = writeln!(out, "- {file}: {what}");
    };
    list(tasks, "the tasks; a heading is a story, a box is a task");
    if !context.proposal.is_empty() {
        list(&format!("{folder}proposal.md"), "why, and what changes");
    }
    if !context.design.is_empty() {
        list(&format!("{folder}design.md"), "how it is meant to be built");
    }
    let mut capabilities: Vec<&str> = context.requirements.iter().map(|r| r.capability.as_str()).collect();
    capabilities.sort_unstable();
    capabilities.dedup();
    for capability in capabilities {
        list(&format!("{folder}specs/{capability}/spec.md"), "what is to hold afterwards");
    }
    out.push_str(
        "\nTick a task of this story when it is done, by changing `- [ ]` to `- [x]` on its line; change nothing else in \
         that file, and no box of another story. Boxes that are still open when the story has been verified are ticked \
         for you. Do not commit, do not archive the change and do not edit the files above otherwise: the tool that \
         called you runs the verification commands, commits what has passed and keeps these files.\n",
    );
    if !context.requirements.is_empty() {
        out.push_str(
            "\nA requirement is a heading `### Requirement: name`, its scenarios are `#### Scenario: name` with the steps \
             `- **GIVEN** …`, `- **WHEN** …`, `- **THEN** …` and `- **AND** …`. Look after those that this story touches.\n",
        );
    }
    out
}
