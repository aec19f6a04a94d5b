"""A group's description, as text and as JSON."""

from cli.groups.group_description import GroupDescription, MemberDescription


def test_assignments_are_short() -> None:
    """Ranges of partitions; a target only where there is one."""
    member = MemberDescription("m", None, "c", "h", {"t": (0, 1, 2, 7), "u": (3,)})
    assert (member.assignment_text, member.target_text) == ("t:0-2,7 u:3", "")


def test_a_document_has_everything() -> None:
    member = MemberDescription("m", None, "c", "h", {"t": (0,)}, epoch=4, protocol="share")
    group = GroupDescription("g", "Stable", "share", "simple", "1", (member,), (), "share", 5, 4)
    document = group.as_document()
    assert (document["type"], document["epoch"], document["target_epoch"]) == ("share", 5, 4)
    assert document["members"] == (
        {
            "member_id": "m",
            "instance_id": None,
            "client_id": "c",
            "host": "h",
            "assignment": {"t": (0,)},
            "target": None,
            "epoch": 4,
            "protocol": "share",
        },
    )
