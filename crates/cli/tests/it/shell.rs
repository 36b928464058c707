//! `completions` and `man`.

use std::process::Command;

use crate::world::scene;

#[test]
fn the_completions_of_bash_are_a_script_that_completes_verbs_and_flags() {
    let scene = scene();
    let script = scene.run(&["completions", "bash"]).exits(0).stdout;
    let file = scene.outside("completions.bash");
    std::fs::write(&file, script).unwrap();
    let complete = |words: &str| {
        let ask = format!(
            "source '{}'; COMP_WORDS=({words}); COMP_CWORD=$((${{#COMP_WORDS[@]}}-1)); \
             _ralphloop ralphloop \"${{COMP_WORDS[COMP_CWORD]}}\" \"${{COMP_WORDS[COMP_CWORD-1]}}\"; echo \"${{COMPREPLY[@]}}\"",
            file.display()
        );
        let output = Command::new("bash").args(["-c", &ask]).output().unwrap();
        String::from_utf8(output.stdout).unwrap()
    };
    assert_eq!(complete("ralphloop res").trim(), "resume");
    assert!(complete("ralphloop run --noti").contains("--notify"));
}

#[test]
fn every_shell_gets_a_script_and_an_unknown_one_is_refused() {
    let scene = scene();
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        scene
            .run(&["completions", shell])
            .exits(0)
            .says("ralphloop")
            .says("resume")
            .never_says("demo-agent")
            .never_says("demo__agent");
    }
    scene.run(&["completions", "tcsh"]).exits(2).says("possible values");
}

#[test]
fn the_manual_has_a_page_for_the_program_and_one_for_each_verb() {
    let scene = scene();
    let page = scene.run(&["man"]).exits(0);
    assert!(page.stdout.contains(".TH ralphloop 1"), "{page}");
    page.says("ralphloop\\-doctor(1)").never_says("demo-agent");
    let page = scene.run(&["man", "run"]).exits(0);
    assert!(page.stdout.contains(".TH ralphloop-run 1"), "{page}");
    page.says("notify");
    scene.run(&["man", "no-such-verb"]).exits(2).says("the verbs are");
}
