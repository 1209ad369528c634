//! Marks in words: what a mark of each code says, for lists that count marks.

/// Returns what a mark says, as a noun: `ranks that waited for a CPU`. Codes of other programs are their own words.
pub fn phrase(code: &str) -> String {
    let known = match code {
        "autocorrelated" => "samples that depend on each other",
        "base_moved" => "a base that differs before and after the loads",
        "below_one_way" => "broadcasts faster than one message",
        "bimodal" => "samples in two groups",
        "clock" => "a coarse clock",
        "clock_cost" => "a costly reading of the clock",
        "clocks_apart" => "clocks that differ",
        "crowded" | "oversubscribed" => "more ranks than CPUs",
        "crowded_threads" => "more threads than CPUs",
        "debug_build" => "a debug build of ombx",
        "failed" => "a failure",
        "device_errors" => "errors of devices",
        "differing_hosts" => "hosts that differ from the others",
        "far_device" => "ranks far from their network device",
        "few_checks" => "fewer than 59 checked iterations",
        "few_launches" => "fewer than 9 launches",
        "governor" => "CPUs that change their frequency",
        "idle_ranks" => "idle ranks",
        "late_starts" => "late starts",
        "launch_states" => "launches in several states of the machine",
        "launches_drift" => "launches that drift",
        "no_interval" => "no interval",
        "not_converged" => "precision not reached",
        "one_byte" => "1 byte instead of 0",
        "precision_missed" => "precision that was asked for and not reached",
        "preempted" => "preempted ranks",
        "saturated" => "a rate that was not achieved",
        "shared_cpu" => "ranks on the same CPU",
        "slowed" => "rows that became slow",
        "starts_apart" => "pairs that started apart",
        "stolen" => "CPU time taken by the hypervisor",
        "strangers" => "foreign connections",
        "throttled" => "CPUs that were too hot",
        "thread_multiple" => "locks for threads",
        "unbound" => "ranks that are not bound",
        "unverified" => "data that was not checked",
        "waited" => "ranks that waited for a CPU",
        "wide_interval" => "an interval wider than 10 % on either side",
        "wrong_clock" => "a clock that runs wrong",
        "wrong_data" => "wrong data",
        _ => return code.replace('_', " "),
    };
    known.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the codes of the tables in the reference of marks.
    fn documented() -> Vec<String> {
        let page = include_str!("../../../../docs/reference/marks.md");
        let rows = page.lines().filter(|line| line.starts_with("| `"));
        rows.map(|row| row.split('`').nth(1).unwrap().to_owned()).collect()
    }

    #[test]
    fn every_documented_mark_has_words() {
        let codes = documented();
        assert!(codes.len() > 20, "{codes:?}");
        for code in codes {
            assert!(!phrase(&code).contains('_') && phrase(&code) != code, "{code}");
        }
        assert_eq!(phrase("of_another_program"), "of another program");
    }
}
