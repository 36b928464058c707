//! Requirement deltas: what a change adds to, changes in, or takes from a capability.

use ralphloop_core::plan::{Delta, Requirement, Scenario};

use crate::error::{Code, Diagnostic};
use crate::markdown::boxes::list_marker;
use crate::markdown::outline::{heading_start, without_closing_hashes};
use crate::markdown::scan::{Kind, Line, scan};
use crate::text::Text;

/// A delta file: its requirements, and what is wrong with it.
#[derive(Debug, Default)]
pub(crate) struct DeltaFile {
    pub requirements: Vec<Requirement>,
    pub findings: Vec<Diagnostic>,
}

/// Reads `specs/<capability>/spec.md` of a change.
pub(crate) fn read(text: &Text<'_>, capability: &str) -> DeltaFile {
    let mut reader = Reader {
        file: text.file,
        capability,
        out: DeltaFile::default(),
        section: Section::Other,
        lines: Vec::new(),
        step: None,
        from: None,
        in_scenario: false,
        by_heading: false,
    };
    let mut any_delta = false;
    for line in &scan(text).lines {
        reader.take(line);
        any_delta |= matches!(reader.section, Section::Delta(_) | Section::Renamed);
    }
    reader.end_rename();
    reader.judge();
    if !any_delta {
        let message = "there is no section of a delta in this file";
        let help = "begin one with ## ADDED Requirements, ## MODIFIED Requirements, ## REMOVED Requirements or ## RENAMED Requirements";
        reader.out.findings.push(Diagnostic::warning(Code::NoDelta, text.file, None, message).with_help(help));
    }
    reader.out
}

#[derive(Debug, Clone, PartialEq)]
enum Section {
    Delta(Delta),
    Renamed,
    /// Purpose, and whatever is no delta.
    Other,
}

/// The kind of step that AND goes on with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step {
    Given,
    When,
    Then,
}

struct Reader<'t> {
    file: &'t str,
    capability: &'t str,
    out: DeltaFile,
    section: Section,
    /// The lines of the requirements' headings.
    lines: Vec<u32>,
    step: Option<Step>,
    /// A FROM that waits for its TO.
    from: Option<(String, u32)>,
    in_scenario: bool,
    /// A heading of this section named a requirement.
    by_heading: bool,
}

impl Reader<'_> {
    fn take(&mut self, line: &Line<'_>) {
        match line.kind {
            Kind::FrontMatter | Kind::Comment => {}
            Kind::Fence | Kind::Quote => self.take_content(line.raw.trim_end()),
            Kind::Text => {
                let masked = line.masked();
                match heading_start(&masked) {
                    Some((level, start)) => {
                        self.take_heading(level, without_closing_hashes(&line.clean(start)), line.number);
                    }
                    None => self.take_line(&line.clean(0), line),
                }
            }
        }
    }

    fn take_heading(&mut self, level: usize, text: &str, number: u32) {
        match level {
            0..=2 => self.open_section(level, text, number),
            3 => match (&self.section, requirement_name(text)) {
                (Section::Delta(delta), name) => {
                    let delta = delta.clone();
                    self.by_heading = true;
                    self.open_requirement(name.unwrap_or(text), delta, number);
                }
                (Section::Renamed | Section::Other, _) => self.in_scenario = false,
            },
            4 if matches!(self.section, Section::Delta(_)) => {
                let name = strip_word(text, "scenario").unwrap_or(text);
                if let Some(requirement) = self.current() {
                    requirement.scenarios.push(Scenario { name: name.to_owned(), ..Scenario::default() });
                    self.in_scenario = true;
                    self.step = None;
                }
            }
            _ => self.take_content(text),
        }
    }

    fn open_section(&mut self, level: usize, text: &str, number: u32) {
        self.end_rename();
        self.in_scenario = false;
        self.by_heading = false;
        if level < 2 {
            self.section = Section::Other;
            return;
        }
        let mut words = text.split_whitespace().map(str::to_lowercase);
        let (first, second, third) = (words.next().unwrap_or_default(), words.next(), words.next());
        let of_requirements = matches!(second.as_deref(), Some("requirements" | "requirement")) && third.is_none();
        self.section = match first.as_str() {
            "added" if of_requirements => Section::Delta(Delta::Added),
            "modified" if of_requirements => Section::Delta(Delta::Modified),
            "removed" if of_requirements => Section::Delta(Delta::Removed),
            "renamed" if of_requirements => Section::Renamed,
            "purpose" if second.is_none() => Section::Other,
            _ => {
                let message = format!("the section {text:?} is no delta and is not read");
                let help = "deltas stand below ## ADDED, MODIFIED, REMOVED or RENAMED Requirements";
                let finding = Diagnostic::warning(Code::UnknownDeltaSection, self.file, Some(number), message);
                self.out.findings.push(finding.with_help(help));
                Section::Other
            }
        };
    }

    fn open_requirement(&mut self, title: &str, delta: Delta, number: u32) {
        self.in_scenario = false;
        self.step = None;
        let id = requirement_id(title);
        let double = |known: &&Requirement| known.id == id && same_kind(&known.delta, &delta);
        if self.out.requirements.iter().any(|known| double(&known)) {
            let message = format!("the requirement {title:?} is there twice");
            self.out.findings.push(Diagnostic::warning(Code::DuplicateRequirement, self.file, Some(number), message));
        }
        self.lines.push(number);
        self.out.requirements.push(Requirement {
            capability: self.capability.to_owned(),
            id,
            title: title.to_owned(),
            delta,
            text: String::new(),
            scenarios: Vec::new(),
        });
    }

    fn take_line(&mut self, clean: &str, line: &Line<'_>) {
        let bullet = bullet_text(clean);
        match (&self.section, bullet) {
            (Section::Other, _) => {}
            (Section::Renamed, _) => self.take_rename(bullet.unwrap_or(clean), line.number),
            // Below a heading they are reasons; without one, they name the requirements.
            (Section::Delta(Delta::Removed), Some(name)) if !self.by_heading => {
                let name = unquoted_requirement(name).to_owned();
                if !name.is_empty() {
                    self.open_requirement(&name, Delta::Removed, line.number);
                }
            }
            (Section::Delta(_), _) => {
                self.take_content(if line.raw.contains("<!--") { clean } else { line.raw.trim_end() });
            }
        }
    }

    fn take_content(&mut self, text: &str) {
        if !matches!(self.section, Section::Delta(_)) {
            return;
        }
        let (in_scenario, step) = (self.in_scenario, self.step);
        let Some(requirement) = self.current() else { return };
        if !in_scenario {
            if !(requirement.text.is_empty() && text.trim().is_empty()) {
                requirement.text.push_str(text);
                requirement.text.push('\n');
            }
            return;
        }
        let Some(scenario) = requirement.scenarios.last_mut() else { return };
        let (kind, words) = match step_of(text) {
            Some((Keyword::And, words)) => (step, Some(words)),
            Some((Keyword::Step(kind), words)) => (Some(kind), Some(words)),
            None => (step, None),
        };
        let steps = match kind {
            Some(Step::Given) => &mut scenario.given,
            Some(Step::When) => &mut scenario.when,
            Some(Step::Then) => &mut scenario.then,
            None => &mut scenario.other,
        };
        match (words, steps.last_mut()) {
            (Some(words), _) if kind.is_some() => steps.push(words.to_owned()),
            (_, _) if text.trim().is_empty() => {}
            (None, Some(last)) if kind.is_some() => {
                last.push(if bullet_text(text.trim()).is_some() { '\n' } else { ' ' });
                last.push_str(text.trim());
            }
            _ => steps.push(text.trim().to_owned()),
        }
        self.step = kind;
    }

    fn take_rename(&mut self, text: &str, number: u32) {
        let text = text.trim_matches('*');
        if let Some(old) = strip_word(text, "from") {
            self.end_rename();
            self.from = Some((unquoted_requirement(old).to_owned(), number));
        } else if let Some(new) = strip_word(text, "to") {
            match self.from.take() {
                Some((from, _)) => self.open_requirement(unquoted_requirement(new), Delta::Renamed { from }, number),
                None => self.unpaired(number, "this TO has no FROM above it"),
            }
        }
    }

    fn end_rename(&mut self) {
        if let Some((_, number)) = self.from.take() {
            self.unpaired(number, "this FROM has no TO below it");
        }
    }

    fn unpaired(&mut self, number: u32, message: &str) {
        let help = "write pairs: - FROM: `### Requirement: Old` and - TO: `### Requirement: New`";
        let finding = Diagnostic::warning(Code::UnpairedRename, self.file, Some(number), message).with_help(help);
        self.out.findings.push(finding);
    }

    fn current(&mut self) -> Option<&mut Requirement> {
        self.out.requirements.last_mut()
    }

    fn judge(&mut self) {
        for (requirement, line) in self.out.requirements.iter_mut().zip(&self.lines) {
            requirement.text = requirement.text.trim().to_owned();
            if !matches!(requirement.delta, Delta::Added | Delta::Modified) {
                continue;
            }
            let binds =
                requirement.text.split(|c: char| !c.is_alphanumeric()).any(|word| matches!(word, "SHALL" | "MUST"));
            if !binds {
                let message = format!("the requirement {:?} says neither SHALL nor MUST", requirement.title);
                self.out.findings.push(Diagnostic::warning(
                    Code::RequirementWithoutShall,
                    self.file,
                    Some(*line),
                    message,
                ));
            }
            if requirement.scenarios.is_empty() {
                let message = format!("the requirement {:?} has no scenario", requirement.title);
                let help = "add #### Scenario: name with the steps - **WHEN** … and - **THEN** …";
                let finding = Diagnostic::warning(Code::RequirementWithoutScenario, self.file, Some(*line), message);
                self.out.findings.push(finding.with_help(help));
            }
        }
    }
}

fn same_kind(a: &Delta, b: &Delta) -> bool {
    std::mem::discriminant(a) == std::mem::discriminant(b)
}

/// Lower case, blanks as `-`, other punctuation dropped.
pub(crate) fn requirement_id(title: &str) -> String {
    let lower = title.to_lowercase();
    let words = lower
        .split_whitespace()
        .map(|word| word.chars().filter(|c| c.is_alphanumeric() || matches!(c, '-' | '_')).collect::<String>());
    words.filter(|word| !word.is_empty()).collect::<Vec<_>>().join("-")
}

fn requirement_name(heading: &str) -> Option<&str> {
    strip_word(heading, "requirement")
}

/// What stands behind `word:`, in any case and with or without bold.
fn strip_word<'a>(text: &'a str, word: &str) -> Option<&'a str> {
    let text = text.trim_start_matches('*');
    let head = text.get(..word.len())?;
    let rest = text[word.len()..].trim_start_matches('*').trim_start().strip_prefix(':')?;
    head.eq_ignore_ascii_case(word).then(|| rest.trim_start_matches('*').trim())
}

/// A name that may stand in backquotes and carry its heading.
fn unquoted_requirement(text: &str) -> &str {
    let text = text.trim().trim_matches('`').trim_start_matches('#').trim();
    requirement_name(text).unwrap_or(text)
}

fn bullet_text(line: &str) -> Option<&str> {
    let line = line.trim_start();
    let rest = &line[list_marker(line)?..];
    rest.starts_with([' ', '\t']).then(|| rest.trim())
}

enum Keyword {
    Step(Step),
    And,
}

/// `- **WHEN** words`, `WHEN words`, `- When words`, `WHEN: words`.
fn step_of(line: &str) -> Option<(Keyword, &str)> {
    let bulleted = bullet_text(line);
    let text = bulleted.unwrap_or(line.trim());
    let bold = ["**", "__"].iter().any(|mark| text.starts_with(mark));
    let bare = text.trim_start_matches(['*', '_']);
    let end = bare.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(bare.len());
    let (word, rest) = bare.split_at(end);
    let keyword = match word.to_ascii_uppercase().as_str() {
        "GIVEN" => Keyword::Step(Step::Given),
        "WHEN" => Keyword::Step(Step::When),
        "THEN" => Keyword::Step(Step::Then),
        "AND" | "BUT" => Keyword::And,
        _ => return None,
    };
    let behind = rest.trim_start_matches(['*', '_', ':']);
    let colon = rest[..rest.len() - behind.len()].contains(':');
    let shouted = word.chars().all(|c| c.is_ascii_uppercase());
    let capital = bulleted.is_some() && word.starts_with(|c: char| c.is_ascii_uppercase());
    let ends = behind.is_empty() || behind.starts_with(char::is_whitespace);
    (ends && (bold || colon || shouted || capital)).then(|| (keyword, behind.trim()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(source: &str) -> DeltaFile {
        read(&Text::decode("specs/a/spec.md", source.as_bytes()).unwrap(), "a")
    }

    fn codes(file: &DeltaFile) -> Vec<(&'static str, Option<u32>)> {
        file.findings.iter().map(|finding| (finding.code.as_str(), finding.line)).collect()
    }

    #[test]
    fn r8_a_requirement_is_known_by_its_title_in_lower_case() {
        assert_eq!(requirement_id("Jar lids: open, (twice)!"), "jar-lids-open-twice");
        assert_eq!(requirement_id("Größe & Maß"), "größe-maß");
    }

    #[test]
    fn r17_and_goes_on_with_the_step_before_it() {
        let source = "## ADDED Requirements\n### Requirement: Lid\nIt SHALL close.\n\n#### Scenario: Twist\n- **GIVEN** a jar\n- **AND** a lid\n- WHEN twisted\n  to the right\n- AND: pressed\n- **THEN:** it is shut\nAND it holds\n";
        let found = file(source);
        let scenario = &found.requirements[0].scenarios[0];
        assert_eq!(scenario.name, "Twist");
        assert_eq!(scenario.given, ["a jar", "a lid"]);
        assert_eq!(scenario.when, ["twisted to the right", "pressed"]);
        assert_eq!(scenario.then, ["it is shut", "it holds"]);
        assert!(scenario.other.is_empty() && found.findings.is_empty());
        assert_eq!(found.requirements[0].text, "It SHALL close.");
    }

    #[test]
    fn all_four_kinds_of_delta_are_read() {
        let source = "## Purpose\nx\n## added requirements\n### Requirement: A\nMUST\n#### Scenario: s\n- WHEN a\n## MODIFIED Requirements\n### Requirement: B\nSHALL\n#### s\n- WHEN b\n## REMOVED Requirements\n### Requirement: C\n**Reason**: old\n- **Migration**: none\n## RENAMED Requirements\n- FROM: `### Requirement: D`\n- TO: `### Requirement: E`\n";
        let found = file(source);
        let kinds: Vec<_> = found.requirements.iter().map(|r| (r.title.as_str(), r.delta.clone())).collect();
        assert_eq!(
            kinds,
            [
                ("A", Delta::Added),
                ("B", Delta::Modified),
                ("C", Delta::Removed),
                ("E", Delta::Renamed { from: "D".into() })
            ]
        );
        assert_eq!(found.requirements[2].text, "**Reason**: old\n- **Migration**: none");
        assert!(found.findings.is_empty(), "{:?}", found.findings);
    }

    #[test]
    fn removed_requirements_may_be_mere_bullets() {
        let found = file("## REMOVED Requirements\n- `### Requirement: Old lid`\n- Old jar\n");
        let titles: Vec<_> = found.requirements.iter().map(|r| r.title.as_str()).collect();
        assert_eq!(titles, ["Old lid", "Old jar"]);
    }

    #[test]
    fn grammar_problems_are_found_with_their_lines() {
        let found = file(
            "## ADDED Requirements\n### Requirement: A\nIt closes.\n## Renaming\n## RENAMED Requirements\n- TO: `x`\n- FROM: `y`\n",
        );
        assert_eq!(
            codes(&found),
            [
                ("unknown_delta_section", Some(4)),
                ("unpaired_rename", Some(6)),
                ("unpaired_rename", Some(7)),
                ("requirement_without_shall", Some(2)),
                ("requirement_without_scenario", Some(2)),
            ]
        );
        assert_eq!(codes(&file("# Spec\n\ntext")), [("no_delta", None)]);
    }

    #[test]
    fn headings_in_code_are_no_requirements() {
        let found = file(
            "## ADDED Requirements\n### Requirement: A\nMUST\n```\n### Requirement: B\n```\n#### Scenario: s\n- WHEN a\n",
        );
        assert_eq!(found.requirements.len(), 1);
        assert!(found.requirements[0].text.contains("### Requirement: B"));
    }
}
