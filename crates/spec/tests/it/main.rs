//! The readers and writers against files of every shape.
#![expect(clippy::unwrap_used, clippy::print_stderr, reason = "a test that cannot go on should say where")]

mod checking;
mod converting;
mod fixtures;
mod folders;
mod marking;
mod properties;
mod reading;
mod reconciling;

use ralphloop_core::plan::Scheme;
use ralphloop_spec::{Reading, SpecError, SpecFiles, SpecText, read};

fn openspec(tasks: &str, beside: &[(&str, &str)]) -> SpecFiles {
    let main = SpecText::new("openspec/changes/add-jars/tasks.md", tasks);
    let beside = beside.iter().map(|(path, text)| SpecText::new(*path, *text)).collect();
    SpecFiles { beside, ..SpecFiles::single(Scheme::OpenSpec, main) }
}

fn prd(json: &str) -> SpecFiles {
    SpecFiles::single(Scheme::Prd, SpecText::new("prd.json", json))
}

fn reading(files: &SpecFiles) -> Reading {
    read(files).unwrap_or_else(|error| panic!("{error}"))
}

fn error(files: &SpecFiles) -> SpecError {
    read(files).err().unwrap_or_else(|| panic!("this should not be readable"))
}
