//! What an agent is told about a file with tasks, in the formats that are one file.

/// Whose marks are whose, in a Markdown file whose boxes are ticked with `tick`.
pub(crate) fn boxes(tick: char) -> String {
    format!(
        "Tick a task of this story when it is done, by changing `- [ ]` to `- [{tick}]` on its line; change nothing else \
         in that file, and no box of another story. Boxes that are still open when the story has been verified are \
         ticked for you. Do not commit: the tool that called you runs the checks, commits what has passed and keeps \
         that file.\n"
    )
}
