//! Batch scripts: from the template for sbatch or from that of the user.

use std::path::Path;

use ombx_core::error::{Error, Result};

use crate::{
    cluster::{Cluster, Launcher},
    plan::Job,
    script,
};

/// Template for sbatch.
const SLURM: &str = include_str!("slurm.sh");

/// Returns the batch script that runs the script of a job.
pub(crate) fn script(cluster: &Cluster, job: &Job, script: &Path) -> Result<String> {
    let directory = cluster.record.job(job);
    let template = match &cluster.launcher {
        Launcher::Script { template } => template,
        _ => SLURM,
    };
    let values = [
        ("name", format!("ombx-{}", job.name)),
        ("nodes", job.hosts.len().to_string()),
        ("hosts", cluster.host_names(job).join(",")),
        ("ranks", job.ranks().to_string()),
        ("ranks_per_host", job.ranks_per_host.to_string()),
        ("minutes", cluster.launch_limit(job).as_secs().div_ceil(60).to_string()),
        ("directory", shell_words::quote(&directory.to_string_lossy()).into_owned()),
        ("command", script::batch_body(script, &directory).trim_end().to_owned()),
    ];
    fill(template, &values)
}

/// Replaces each `{{name}}` of a template by its value.
fn fill(template: &str, values: &[(&str, String)]) -> Result<String> {
    let (mut text, mut remainder, mut has_command) = (String::new(), template, false);
    while let Some((before, after)) = remainder.split_once("{{") {
        let (name, after) = after.split_once("}}").unwrap_or((after, ""));
        let (known, value) = values.iter().find(|(known, _)| *known == name.trim()).ok_or_else(|| {
            let known: Vec<String> = values.iter().map(|(name, _)| format!("{{{{{name}}}}}")).collect();
            Error::usage(format!(
                "the template has {{{{{name}}}}}, which is not known. Use {}.",
                known.join(" ")
            ))
        })?;
        text += before;
        text += value;
        has_command |= *known == "command";
        remainder = after;
    }
    match has_command {
        true => Ok(text + remainder),
        false => Err(Error::usage("the template has no {{command}}. Add it where the job is to run.")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_template_needs_known_names_and_a_command() {
        let values = [("name", "x".to_owned()), ("command", "sh run.sh".to_owned())];
        assert_eq!(fill("#PBS -N {{name}}\n{{command}}\n", &values).unwrap(), "#PBS -N x\nsh run.sh\n");
        assert!(fill("{{nam}} {{command}}", &values).unwrap_err().to_string().contains("{{name}}"));
        assert!(fill("{{name}}", &values).unwrap_err().to_string().contains("{{command}}"));
    }
}
