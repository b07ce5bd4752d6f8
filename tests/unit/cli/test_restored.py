"""What is told of a rollback, which is done by then."""

from stowplan.cli.restored import _described
from stowplan.edge.policies.history import Entry, Version


def test_a_version_of_which_the_time_is_not_known():
    assert _described(Version(Entry(3, "abc", "", "v3.yaml"), "")) == "version 3 (hash abc)"
