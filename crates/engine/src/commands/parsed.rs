//! A command line as a shell reads it: every simple command in it, however deep, with what is known of its words.

use brush_parser::ast::{
    AndOr, Command, CommandPrefixOrSuffixItem, CompoundCommand, CompoundList, FunctionDefinition, IoFileRedirectKind,
    IoFileRedirectTarget, IoRedirect, Pipeline, Program, SimpleCommand, SubshellCommand, Word,
};
use brush_parser::word::{WordPiece, WordPieceWithSource};
use brush_parser::{Parser, ParserOptions};

/// So deep may commands stand in one another; beyond, nothing is known.
const DEEPEST: usize = 12;
/// A longer command is not read, in bytes.
const LONGEST: usize = 64 << 10;

/// All that a command line does.
#[derive(Debug, Default)]
pub(super) struct Script {
    /// Each pipeline, those within others too, in the order of the text.
    pub(super) pipelines: Vec<Pipe>,
    /// The functions that call themselves.
    pub(super) recursive: Vec<String>,
}

/// Commands of which each reads what the one before writes.
#[derive(Debug, Default, Clone)]
pub(super) struct Pipe {
    pub(super) stages: Vec<Simple>,
}

/// One command.
#[derive(Debug, Default, Clone)]
pub(super) struct Simple {
    /// Its name and arguments, less what only calls it (`sudo`, `env A=1`, `timeout 5`).
    pub(super) words: Vec<Text>,
    /// Files that it writes to.
    pub(super) writes: Vec<Text>,
    /// Files that it reads from by redirection.
    pub(super) reads: Vec<Text>,
    /// What the commands run whose output is part of its words or is fed to it.
    pub(super) within: Vec<Pipe>,
    /// It was called with the rights of somebody else.
    pub(super) elevated: bool,
    /// It sets variables.
    pub(super) assigns: bool,
}

/// A word as far as it is known: variables stand in it as they are written.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(super) struct Text {
    /// Without its quotes.
    pub(super) text: String,
    /// A part of it is only known when it runs.
    pub(super) varies: bool,
}

impl Simple {
    /// The name of the program, without its folder.
    pub(super) fn name(&self) -> &str {
        let name = self.words.first().map_or("", |word| word.text.as_str());
        name.rsplit('/').next().unwrap_or(name)
    }

    /// Its arguments.
    pub(super) fn arguments(&self) -> impl Iterator<Item = &str> {
        self.words.iter().skip(1).map(|word| word.text.as_str())
    }

    /// Whether it has a flag: short ones also within a cluster.
    pub(super) fn has_flag(&self, short: Option<char>, long: &str) -> bool {
        self.arguments().take_while(|word| *word != "--").any(|word| match word.strip_prefix("--") {
            Some(name) => !long.is_empty() && name.split('=').next() == Some(long),
            None => word.strip_prefix('-').is_some_and(|cluster| short.is_some_and(|short| cluster.contains(short))),
        })
    }

    /// Its arguments that are no flags.
    pub(super) fn operands(&self) -> impl Iterator<Item = &Text> {
        self.words.iter().skip(1).filter(|word| !word.text.starts_with('-') || word.text == "-")
    }
}

/// Reads a command line; `None` if it is none that this reader knows.
pub(super) fn parse(command: &str) -> Option<Script> {
    let mut script = Script::default();
    let program = program(command)?;
    let mut reader = Reader { script: &mut script, complete: true };
    for list in &program.complete_commands {
        reader.list(list, 0, &mut Vec::new());
    }
    reader.complete.then_some(script)
}

fn options() -> ParserOptions {
    ParserOptions { sh_mode: false, ..ParserOptions::default() }
}

fn program(command: &str) -> Option<Program> {
    (command.len() <= LONGEST).then(|| Parser::new(command.as_bytes(), &options()).parse_program().ok()).flatten()
}

struct Reader<'s> {
    script: &'s mut Script,
    /// Everything was understood.
    complete: bool,
}

impl Reader<'_> {
    /// `within` gets the pipelines too, for whoever uses their output.
    fn list(&mut self, list: &CompoundList, depth: usize, within: &mut Vec<Pipe>) {
        for item in &list.0 {
            let and_or = &item.0;
            self.pipeline(&and_or.first, depth, within);
            for AndOr::And(next) | AndOr::Or(next) in &and_or.additional {
                self.pipeline(next, depth, within);
            }
        }
    }

    fn pipeline(&mut self, pipeline: &Pipeline, depth: usize, within: &mut Vec<Pipe>) {
        if depth > DEEPEST {
            self.complete = false;
            return;
        }
        let mut pipe = Pipe::default();
        for command in &pipeline.seq {
            match command {
                Command::Simple(simple) => pipe.stages.push(self.simple(simple, depth)),
                Command::Compound(compound, redirects) => {
                    let mut inner = Vec::new();
                    self.compound(compound, depth + 1, &mut inner);
                    // For whoever stands beside it in the pipeline it is all that it runs.
                    let mut stage = Simple { within: inner, ..Simple::default() };
                    self.redirects(redirects.iter().flat_map(|list| &list.0), &mut stage, depth);
                    pipe.stages.push(stage);
                }
                Command::Function(function) => self.function(function, depth),
                Command::ExtendedTest(_, redirects) => {
                    let mut stage = Simple { words: vec![known("[[")], ..Simple::default() };
                    self.redirects(redirects.iter().flat_map(|list| &list.0), &mut stage, depth);
                    pipe.stages.push(stage);
                }
            }
        }
        within.push(pipe.clone());
        self.script.pipelines.push(pipe);
    }

    fn function(&mut self, function: &FunctionDefinition, depth: usize) {
        let before = self.script.pipelines.len();
        self.compound(&function.body.0, depth + 1, &mut Vec::new());
        let name = function.fname.value.as_str();
        let calls = |pipe: &Pipe| pipe.stages.iter().any(|stage| stage.name() == name);
        if self.script.pipelines.iter().skip(before).any(calls) {
            self.script.recursive.push(name.to_owned());
        }
    }

    fn compound(&mut self, compound: &CompoundCommand, depth: usize, within: &mut Vec<Pipe>) {
        match compound {
            CompoundCommand::Arithmetic(_) => {}
            CompoundCommand::ArithmeticForClause(clause) => self.list(&clause.body.list, depth, within),
            CompoundCommand::BraceGroup(group) => self.list(&group.list, depth, within),
            CompoundCommand::Subshell(shell) => self.list(&shell.list, depth, within),
            CompoundCommand::ForClause(clause) => {
                let mut values = Simple::default();
                for word in clause.values.iter().flatten() {
                    self.word(word, &mut values, depth);
                }
                self.list(&clause.body.list, depth, within);
            }
            CompoundCommand::CaseClause(clause) => {
                self.word(&clause.value, &mut Simple::default(), depth);
                clause
                    .cases
                    .iter()
                    .filter_map(|case| case.cmd.as_ref())
                    .for_each(|list| self.list(list, depth, within));
            }
            CompoundCommand::IfClause(clause) => {
                self.list(&clause.condition, depth, within);
                self.list(&clause.then, depth, within);
                for other in clause.elses.iter().flatten() {
                    other.condition.iter().chain([&other.body]).for_each(|list| self.list(list, depth, within));
                }
            }
            CompoundCommand::WhileClause(clause) | CompoundCommand::UntilClause(clause) => {
                self.list(&clause.0, depth, within);
                self.list(&clause.1.list, depth, within);
            }
            CompoundCommand::Coprocess(process) => {
                let pipeline = Pipeline { timed: None, bang: false, seq: vec![(*process.body).clone()] };
                self.pipeline(&pipeline, depth, within);
            }
        }
    }

    fn simple(&mut self, simple: &SimpleCommand, depth: usize) -> Simple {
        let mut stage = Simple::default();
        let prefix = simple.prefix.iter().flat_map(|prefix| &prefix.0);
        let suffix = simple.suffix.iter().flat_map(|suffix| &suffix.0);
        for item in prefix {
            self.item(item, &mut stage, depth, true);
        }
        if let Some(name) = &simple.word_or_name {
            let word = self.word(name, &mut stage, depth);
            stage.words.push(word);
        }
        for item in suffix {
            self.item(item, &mut stage, depth, false);
        }
        unwrap(&mut stage);
        self.carried(&mut stage, depth);
        stage
    }

    fn item(&mut self, item: &CommandPrefixOrSuffixItem, stage: &mut Simple, depth: usize, is_prefix: bool) {
        match item {
            CommandPrefixOrSuffixItem::IoRedirect(redirect) => self.redirects([redirect], stage, depth),
            CommandPrefixOrSuffixItem::Word(word) => {
                let word = self.word(word, stage, depth);
                stage.words.push(word);
            }
            CommandPrefixOrSuffixItem::AssignmentWord(_, word) => {
                let word = self.word(word, stage, depth);
                stage.assigns |= is_prefix;
                if !is_prefix {
                    stage.words.push(word);
                }
            }
            CommandPrefixOrSuffixItem::ProcessSubstitution(_, shell) => self.substitution(shell, stage, depth),
        }
    }

    fn substitution(&mut self, shell: &SubshellCommand, stage: &mut Simple, depth: usize) {
        let mut within = Vec::new();
        self.list(&shell.list, depth + 1, &mut within);
        stage.within.extend(within);
        stage.words.push(Text { text: "/dev/fd/63".to_owned(), varies: true });
    }

    fn redirects<'a>(&mut self, redirects: impl IntoIterator<Item = &'a IoRedirect>, stage: &mut Simple, depth: usize) {
        for redirect in redirects {
            match redirect {
                IoRedirect::File(
                    _,
                    kind,
                    IoFileRedirectTarget::Filename(word) | IoFileRedirectTarget::Duplicate(word),
                ) => {
                    let word = self.word(word, stage, depth);
                    match kind {
                        IoFileRedirectKind::Read | IoFileRedirectKind::DuplicateInput => stage.reads.push(word),
                        _ => stage.writes.push(word),
                    }
                }
                IoRedirect::File(_, _, IoFileRedirectTarget::ProcessSubstitution(_, shell)) => {
                    self.substitution(shell, stage, depth);
                    stage.words.pop();
                }
                IoRedirect::File(_, _, IoFileRedirectTarget::Fd(_)) => {}
                IoRedirect::HereDocument(_, document) => {
                    self.word(&document.doc, stage, depth);
                }
                IoRedirect::HereString(_, word) => {
                    let word = self.word(word, stage, depth);
                    stage.reads.push(word);
                }
                IoRedirect::OutputAndError(word, _) => {
                    let word = self.word(word, stage, depth);
                    stage.writes.push(word);
                }
            }
        }
    }

    /// What is known of a word; the commands in it become part of `stage`.
    fn word(&mut self, word: &Word, stage: &mut Simple, depth: usize) -> Text {
        self.text(&word.value, stage, depth)
    }

    fn text(&mut self, source: &str, stage: &mut Simple, depth: usize) -> Text {
        let mut text = Text::default();
        match brush_parser::word::parse(source, &options()) {
            Ok(pieces) if depth <= DEEPEST => self.pieces(source, &pieces, stage, depth, &mut text),
            _ => {
                self.complete = false;
                text = Text { text: source.to_owned(), varies: true };
            }
        }
        text
    }

    fn pieces(
        &mut self,
        source: &str,
        pieces: &[WordPieceWithSource],
        stage: &mut Simple,
        depth: usize,
        text: &mut Text,
    ) {
        for piece in pieces {
            let written = source.get(piece.start_index..piece.end_index).unwrap_or_default();
            match &piece.piece {
                WordPiece::Text(plain) | WordPiece::SingleQuotedText(plain) => text.text.push_str(plain),
                WordPiece::AnsiCQuotedText(plain) => text.text.push_str(&unescaped(plain)),
                WordPiece::EscapeSequence(escape) => text.text.push_str(escape.strip_prefix('\\').unwrap_or(escape)),
                WordPiece::DoubleQuotedSequence(inner) | WordPiece::GettextDoubleQuotedSequence(inner) => {
                    self.pieces(source, inner, stage, depth, text);
                }
                WordPiece::TildeExpansion(_) => text.text.push_str(written),
                WordPiece::ParameterExpansion(_) => {
                    text.varies = true;
                    text.text.push_str(&plain_name(written));
                    // A default may hold commands: `${X:-$(…)}`.
                    let inner = written.strip_prefix("${").and_then(|inner| inner.strip_suffix('}'));
                    if let Some((_, default)) =
                        inner.and_then(|inner| inner.split_once(['-', '=', '+', '?', '/', '#', '%']))
                    {
                        self.text(default, stage, depth + 1);
                    }
                }
                WordPiece::CommandSubstitution(command) | WordPiece::BackquotedCommandSubstitution(command) => {
                    text.varies = true;
                    text.text.push_str("$(…)");
                    self.inner(command, stage, depth);
                }
                WordPiece::ArithmeticExpression(_) => {
                    text.varies = true;
                    text.text.push('0');
                }
            }
        }
    }

    /// A command line within a command.
    fn inner(&mut self, command: &str, stage: &mut Simple, depth: usize) {
        let Some(program) = program(command).filter(|_| depth < DEEPEST) else {
            self.complete = false;
            return;
        };
        let mut within = Vec::new();
        program.complete_commands.iter().for_each(|list| self.list(list, depth + 1, &mut within));
        stage.within.extend(within);
    }

    /// `sh -c '…'`, `eval …`, `trap '…' EXIT`: the text that a command is given to run.
    fn carried(&mut self, stage: &mut Simple, depth: usize) {
        let command = match stage.name() {
            name if is_shell(name) => {
                let mut words = stage.words.iter().skip(1);
                let is_c = |word: &&Text| {
                    word.text.starts_with('-') && !word.text.starts_with("--") && word.text.contains('c')
                };
                words.by_ref().find(is_c).and_then(|_| words.next()).cloned()
            }
            "eval" => {
                let text: Vec<&str> = stage.arguments().collect();
                Some(Text { text: text.join(" "), varies: stage.words.iter().any(|word| word.varies) })
            }
            "trap" => stage.words.get(1).cloned(),
            _ => None,
        };
        if let Some(command) = command.filter(|command| !command.varies && !command.text.is_empty()) {
            self.inner(&command.text, stage, depth);
        }
    }
}

/// `${HOME}` and `$HOME` are the same name.
fn plain_name(written: &str) -> String {
    match written.strip_prefix("${").and_then(|inner| inner.strip_suffix('}')) {
        Some(inner) => {
            let end = inner.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(inner.len());
            format!("${}", &inner[..end])
        }
        None => written.to_owned(),
    }
}

/// The characters that `$'…'` writes by number.
fn unescaped(text: &str) -> String {
    let mut plain = String::new();
    let mut rest = text;
    while let Some(at) = rest.find('\\') {
        plain.push_str(&rest[..at]);
        let escape = &rest[at + 1..];
        let digits =
            |from: &str, radix: u32, most: usize| from.chars().take(most).take_while(|c| c.is_digit(radix)).count();
        let (number, length) = match escape.chars().next() {
            Some('x') => {
                (u32::from_str_radix(&escape[1..=digits(&escape[1..], 16, 2)], 16), 1 + digits(&escape[1..], 16, 2))
            }
            Some('0'..='7') => (u32::from_str_radix(&escape[..digits(escape, 8, 3)], 8), digits(escape, 8, 3)),
            Some(other) => (Ok(u32::from(other)), other.len_utf8()),
            None => break,
        };
        plain.push(number.ok().and_then(char::from_u32).unwrap_or('?'));
        rest = &escape[length..];
    }
    plain + rest
}

fn known(text: &str) -> Text {
    Text { text: text.to_owned(), varies: false }
}

/// A program that runs what it reads.
pub(super) fn is_shell(name: &str) -> bool {
    matches!(name, "sh" | "bash" | "dash" | "zsh" | "ksh" | "ash" | "busybox" | "fish" | "mksh")
}

/// Takes off what only calls another command.
fn unwrap(stage: &mut Simple) {
    loop {
        let name = stage.name().to_owned();
        let (takes_value, skips): (&[&str], usize) = match name.as_str() {
            "sudo" | "doas" | "pkexec" | "su" => {
                stage.elevated = true;
                (&["-u", "-g", "-C", "-h", "-p"], 0)
            }
            "env" => (&["-u", "-C", "-S"], 0),
            "nice" => (&["-n"], 0),
            "timeout" => (&["-s", "-k"], 1),
            "stdbuf" => (&["-i", "-o", "-e"], 0),
            "xargs" => (&["-n", "-I", "-P", "-d", "-L", "-s", "-a"], 0),
            "command" | "builtin" | "exec" | "nohup" | "time" | "setsid" | "ionice" | "!" => (&[], 0),
            _ => return,
        };
        let mut rest = 1;
        while let Some(word) = stage.words.get(rest) {
            if takes_value.contains(&word.text.as_str()) {
                rest += 2;
            } else if word.text.starts_with('-') || (name == "env" && word.text.contains('=')) {
                rest += 1;
            } else {
                break;
            }
        }
        rest += skips;
        if rest >= stage.words.len() {
            return;
        }
        stage.words.drain(..rest);
    }
}
