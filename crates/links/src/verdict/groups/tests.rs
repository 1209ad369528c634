//! Files of groups, the topology of Slurm, and mistakes in them.

use crate::verdict::groups::*;

fn groups_line(text: &str) -> Result<String, String> {
    text.parse::<HostGroups>().map(|groups| groups.line())
}

#[test]
fn groups_are_read_from_a_file_of_any_kind() {
    let racks = "# Racks\nrack r1: n[01-05],!n05\nrack r2: n[05-08],login # and more\nrow row1: @r[1-2]\n";
    let line = "rack:r1=n[01-04] rack:r2=login,n[05-08];row:row1=login,n[01-08]";
    assert_eq!(groups_line(racks).as_deref(), Ok(line));
    assert_eq!(groups_line("a: n1\na: n2 n3").as_deref(), Ok("group:a=n[1-3]"));
    let slurm =
        "SwitchName=s0 Nodes=n[0-1]\nSwitchName=s1 \\\n  Nodes=n[2-3]\nSwitchName=top Switches=s[0-1]\n";
    let line = "switch:s0=n[0-1] switch:s1=n[2-3];switch:top=n[0-3]";
    assert_eq!(groups_line(slurm).as_deref(), Ok(line));
    let shown = "SwitchName=s0 Level=0 LinkSpeed=1 Nodes=n[0-1]\nSwitchName=s1 Level=0 LinkSpeed=1 Nodes=n[2-3]\n\
                 SwitchName=top Level=1 LinkSpeed=1 Nodes=n[0-3] Switches=s[0-1]\n";
    assert_eq!(groups_line(shown).as_deref(), Ok(line));
    let blocks = "BlockName=b1 Nodes=n[1-2]\nBlockName=b2 Nodes=n[3-4]\nBlockSizes=2\n";
    assert_eq!(groups_line(blocks).as_deref(), Ok("block:b1=n[1-2] block:b2=n[3-4]"));
    for text in [racks, slurm, shown, blocks] {
        let groups: HostGroups = text.parse().unwrap();
        assert_eq!(HostGroups::of_line(&groups.line()).as_ref(), Ok(&groups));
    }
}

#[test]
fn mistakes_are_named_with_their_line() {
    for (text, says) in [
        ("", "no group has a host"),
        ("n01", "line 1: \"n01\" is not a group"),
        ("\na b c: n1", "line 2"),
        ("a: n[1-", "a bracket is not closed"),
        ("a: n1;x", "not the name or address of a host"),
        ("a/b: n1", "not the name of a group"),
        ("a: @b", "group a contains a group that is not there"),
        ("a: @b\nb: @a", "or itself"),
        ("a: n1\nb: n[1-2]", "host n1 is in a and in b"),
    ] {
        let error = groups_line(text).unwrap_err();
        assert!(error.contains(says), "{text:?}: {error}");
    }
}

#[test]
fn spines_that_share_all_hosts_are_left_out() {
    let text = "SwitchName=l0 Nodes=a\nSwitchName=l1 Nodes=b\nSwitchName=s0 Switches=l[0-1]\n\
                SwitchName=s1 Switches=l[0-1]\n";
    assert_eq!(groups_line(text).as_deref(), Ok("switch:l0=a switch:l1=b"));
}

#[test]
fn hosts_are_known_with_and_without_their_domain() {
    let groups: HostGroups = "a: n1 n2.x\nb: n3".parse().unwrap();
    let names = GroupsByName::new(&groups.levels()[0]);
    let has = |host: &str| names.group(host).is_some_and(|group| group.name == "a");
    assert!(has("n1") && has("n1.cluster") && has("n2.x") && has("n2"));
    assert!(!has("n3") && !has("n2.y") && names.group("n3").is_some());
}
