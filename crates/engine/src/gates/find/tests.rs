use super::*;

/// The commands found in a project with those files.
fn commands(files: &[(&str, &str)]) -> Vec<String> {
    found(files).gates.into_iter().map(|found| found.gate.command).collect()
}

fn found(files: &[(&str, &str)]) -> Found {
    let dir = tempfile::tempdir().unwrap();
    for (name, text) in files {
        let path = dir.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    find(dir.path(), &|program| program == "cargo-clippy")
}

#[test]
fn r18_a_rust_project_is_checked_linted_and_tested() {
    let expected = ["cargo check", "cargo clippy --all-targets -- -D warnings", "cargo test"];
    assert_eq!(commands(&[("Cargo.toml", "[package]")]), expected);
}

#[test]
fn r18_without_clippy_there_is_no_clippy_gate() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("Cargo.toml"), "").unwrap();
    let commands: Vec<String> = find(dir.path(), &|_| false).gates.into_iter().map(|f| f.gate.command).collect();
    assert_eq!(commands, ["cargo check", "cargo test"]);
}

#[test]
fn r18_a_node_project_runs_the_scripts_that_it_has() {
    let manifest = r#"{"scripts": {"build": "tsc", "dev": "vite", "lint": "eslint .", "test": "vitest"}}"#;
    assert_eq!(commands(&[("package.json", manifest)]), ["npm run lint", "npm run test", "npm run build"]);
}

#[test]
fn the_placeholder_test_of_npm_is_no_gate() {
    let manifest = r#"{"scripts": {"test": "echo \"Error: no test specified\" && exit 1"}}"#;
    assert_eq!(commands(&[("package.json", manifest)]), Vec::<String>::new());
}

#[test]
fn the_package_manager_is_the_declared_one_else_that_of_the_lock_file() {
    let plain = r#"{"scripts": {"test": "t"}}"#;
    let declared = r#"{"packageManager": "yarn@4.1.0+sha224.abc", "scripts": {"test": "t"}}"#;
    for (lock, manager) in
        [("pnpm-lock.yaml", "pnpm"), ("yarn.lock", "yarn"), ("bun.lockb", "bun"), ("bun.lock", "bun")]
    {
        assert_eq!(commands(&[("package.json", plain), (lock, "")]), [format!("{manager} run test")]);
    }
    assert_eq!(commands(&[("package.json", declared), ("pnpm-lock.yaml", "")]), ["yarn run test"]);
}

#[test]
fn r18_a_python_project_runs_the_tools_that_it_configures() {
    let configured = "[tool.mypy]\nstrict = true\n[tool.pytest.ini_options]\n[tool.ruff]\n";
    assert_eq!(commands(&[("pyproject.toml", configured)]), ["ruff check .", "mypy .", "pytest"]);
    assert_eq!(commands(&[("setup.py", "setup()"), ("pytest.ini", "")]), ["pytest"]);
    assert_eq!(commands(&[("setup.py", "setup(name='mypytest')")]), Vec::<String>::new());
    assert_eq!(commands(&[("setup.py", "setup(extras_require={'dev': ['pytest>=7']})")]), ["pytest"]);
}

#[test]
fn a_python_tool_counts_wherever_it_is_a_dependency() {
    for manifest in [
        "[project]\ndependencies = [\"pytest >= 8\"]",
        "[project.optional-dependencies]\ndev = [\"pytest[x]==8\"]",
        "[dependency-groups]\ndev = [\"pytest\", {include-group = \"x\"}]",
        "[tool.uv]\ndev-dependencies = [\"pytest\"]",
        "[tool.poetry.group.dev.dependencies]\npytest = \"^8\"",
        "[tool.poetry.dev-dependencies]\npytest = {version = \"8\"}",
    ] {
        assert_eq!(commands(&[("pyproject.toml", manifest)]), ["pytest"], "{manifest}");
    }
    assert_eq!(commands(&[("pyproject.toml", "[project]\ndependencies = [\"pytest-cov\"]")]), Vec::<String>::new());
}

#[test]
fn python_tools_run_in_the_environment_of_the_lock_file() {
    let manifest = "[tool.mypy]\nfiles = [\"src\"]\n";
    assert_eq!(commands(&[("pyproject.toml", manifest), ("uv.lock", "")]), ["uv run mypy"]);
    assert_eq!(commands(&[("pyproject.toml", manifest), ("poetry.lock", "")]), ["poetry run mypy"]);
}

#[test]
fn a_go_module_is_vetted_and_tested() {
    assert_eq!(commands(&[("go.mod", "module x")]), ["go vet ./...", "go test ./..."]);
}

#[test]
fn make_targets_count_only_where_they_are_rules() {
    let makefile = "test := no\nlint = a:b\n.PHONY: check\nbuild check: dep\n\techo test:\n# lint:\n";
    assert_eq!(commands(&[("Makefile", makefile)]), ["make check"]);
    assert_eq!(commands(&[("Makefile", "all:\n"), ("makefile", "test::\n\ttrue\n")]), ["make test"]);
}

#[test]
fn just_recipes_count_only_if_they_need_no_argument() {
    let justfile = "check := 'x'\nalias lint := fmt\n@test *args: build\n    echo {{args}}\ncheck target:\n";
    assert_eq!(commands(&[("justfile", justfile)]), ["just lint", "just test"]);
    assert_eq!(commands(&[("justfile", "check mode='fast':\n  x\n")]), ["just check"]);
}

#[test]
fn a_makefile_beside_a_manifest_gives_nothing_twice() {
    assert_eq!(commands(&[("go.mod", ""), ("Makefile", "test:\n\tgo test\n")]), ["go vet ./...", "go test ./..."]);
}

#[test]
fn every_language_of_the_folder_has_its_gates() {
    let package = r#"{"scripts": {"lint": "eslint"}}"#;
    let found = commands(&[("go.mod", ""), ("package.json", package)]);
    assert_eq!(found, ["npm run lint", "go vet ./...", "go test ./..."]);
}

#[test]
fn c24_a_project_one_or_two_levels_down_is_found_in_order() {
    let files = [("b/go.mod", ""), ("a b/go.mod", ""), ("node_modules/x/go.mod", ""), (".hidden/go.mod", "")];
    let found = found(&files);
    let in_order: Vec<&str> = found.gates.iter().map(|f| f.gate.command.as_str()).collect();
    let expected =
        ["cd './a b' && go vet ./...", "cd './a b' && go test ./...", "cd b && go vet ./...", "cd b && go test ./..."];
    assert_eq!(in_order, expected);
    assert_eq!(found.gates[3].gate.name, "go test (b)");
    assert_eq!(found.gates[3].from, Path::new("b/go.mod"));
    assert_eq!(commands(&[("x/y/go.mod", ""), ("x/y/z/go.mod", "")])[0], "cd x/y && go vet ./...");
    assert_eq!(commands(&[("x/y/z/go.mod", "")]), Vec::<String>::new());
}

#[test]
fn the_projects_own_folder_wins_over_those_below() {
    assert_eq!(commands(&[("Makefile", "test:\n"), ("demo/go.mod", "")]), ["make test"]);
}

#[test]
fn r18_a_project_without_manifests_has_no_gates() {
    assert_eq!(found(&[("README.md", "# x")]), Found::default());
}

#[test]
fn a_broken_manifest_is_reported_and_hides_no_other() {
    let found = found(&[("package.json", "{"), ("pyproject.toml", "["), ("go.mod", "")]);
    assert_eq!(found.gates.len(), 2);
    let names: Vec<_> = found.unreadable.iter().map(|(path, _)| path.to_string_lossy().into_owned()).collect();
    assert_eq!(names, ["package.json", "pyproject.toml"]);
}
