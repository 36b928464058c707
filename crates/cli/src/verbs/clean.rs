//! `clean`: what finished runs left, and its removal.

use ralphloop_core::units::Timestamp;
use ralphloop_engine::bytes::Bytes;
use ralphloop_engine::clean::{CleanError, Item, Wanted, choose, left, remove};
use serde_json::{Value, json};

use super::repository::{open, runtime};
use crate::arguments::CleanArguments;
use crate::error::CliError;
use crate::exit::Exit;
use crate::host::Host;
use crate::output;
use crate::view::rfc3339;

pub(super) fn clean(arguments: &CleanArguments, host: &Host) -> Result<Exit, CliError> {
    let wanted = match (arguments.all_finished, arguments.names.is_empty()) {
        (true, _) => Some(Wanted::AllFinished),
        (false, false) => Some(Wanted::Named(arguments.names.clone())),
        (false, true) if arguments.apply => {
            return Err(CliError::usage("--apply removes only what is named")
                .hint("name runs or attempts as `ralphloop clean` lists them, or give --all-finished"));
        }
        (false, true) => None,
    };
    runtime()?.block_on(async {
        let place = open(host).await?;
        let items = left(&place.repository).await.map_err(|error| told(&error))?;
        let Some(wanted) = wanted else {
            show(&items, arguments.json)?;
            return Ok(Exit::DONE);
        };
        let chosen = choose(items, &wanted).map_err(|error| told(&error))?;
        if !arguments.apply {
            show(&chosen, arguments.json)?;
            output::talk("Nothing was removed: --apply does that.\n");
            return Ok(Exit::DONE);
        }
        for item in &chosen {
            remove(&place.repository, item).await.map_err(|error| told(&error))?;
            output::talk(&format!("Removed {} ({})\n", output::one_line(&item.to_string()), Bytes(item.bytes)));
        }
        if chosen.is_empty() {
            output::talk("There is nothing to remove.\n");
        } else if chosen.iter().any(|item| item.is_work) {
            output::talk("`git gc` gives the room of attempts back, in its own time.\n");
        }
        if arguments.json {
            show(&chosen, true)?;
        }
        Ok(Exit::DONE)
    })
}

fn told(error: &CleanError) -> CliError {
    match error {
        CleanError::Unknown { .. } | CleanError::Ambiguous { .. } | CleanError::Held { .. } => {
            CliError::usage(error.to_string())
        }
        CleanError::File(_) | CleanError::Git(_) | CleanError::Store(_) => CliError::environment(error.to_string()),
    }
}

fn show(items: &[Item], as_json: bool) -> Result<(), CliError> {
    if as_json {
        return output::json(&items.iter().map(json_of).collect());
    }
    if items.is_empty() {
        output::talk("Nothing is left of any run.\n");
        return Ok(());
    }
    let rows: Vec<Vec<String>> = items.iter().map(row).collect();
    output::data(&output::table(&["NAME", "KIND", "SIZE", "LAST CHANGED", "ABOUT"], &rows))
}

fn row(item: &Item) -> Vec<String> {
    let about = match &item.held {
        Some(why) => format!("{}; stays: {why}", item.about),
        None => item.about.clone(),
    };
    vec![
        item.name.clone(),
        item.kind.as_str().to_owned(),
        Bytes(item.bytes).to_string(),
        item.changed_at.map(age).unwrap_or_default(),
        about,
    ]
}

fn json_of(item: &Item) -> Value {
    json!({
        "name": item.name,
        "kind": item.kind.as_str(),
        "run": item.run,
        "about": item.about,
        "bytes": item.bytes,
        "changed_at": item.changed_at.map(rfc3339),
        "removable": item.held.is_none(),
        "held": item.held,
        "unmerged": item.is_work,
    })
}

fn age(at: Timestamp) -> String {
    let now = Timestamp(jiff::Timestamp::now().as_millisecond());
    let seconds = now.since(at).as_secs();
    match seconds {
        0..3_600 => format!("{} min ago", seconds / 60),
        3_600..172_800 => format!("{} h ago", seconds / 3_600),
        _ => format!("{} days ago", seconds / 86_400),
    }
}
