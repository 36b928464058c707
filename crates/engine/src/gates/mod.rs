//! Quality gates and story checks: found, run, cached by tree, compared with a baseline.
