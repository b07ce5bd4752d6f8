"""Device selectors: what they see, and the texts of their errors."""

import pytest

from stowplan.cel.device import CelCompileError, CelRuntimeError, device, matches

GPU = device(
    "gpu.example.com",
    {
        "attributes": {
            "model": {"string": "h200"},
            "numa": {"int": 1},
            "shiny": {"bool": True},
            "driver": {"version": "1.2.3"},
            "other.example.com/size": {"int": 7},
            "zones": {"strings": ["a", "b"]},
        },
        "capacity": {"memory": {"value": "80Gi"}},
        "allowMultipleAllocations": True,
    },
)


@pytest.mark.parametrize(
    ("selector", "taken"),
    [
        ('device.driver == "gpu.example.com"', True),
        ('device.attributes["gpu.example.com"].model == "a100"', False),
        ('device.attributes["gpu.example.com"].shiny', True),
        ('device.attributes["other.example.com"].size == 7', True),
        ('device.attributes["gpu.example.com"].driver.isGreaterThan(semver("1.2.2"))', True),
        ('device.attributes["gpu.example.com"].zones.includes("b")', True),
        ('device.capacity["gpu.example.com"].memory.compareTo(quantity("40Gi")) >= 0', True),
        ('device.attributes["nobody.example.com"].?x.orValue(false)', False),
        ('has(device.attributes["nobody.example.com"].x)', False),
        ('"nobody.example.com" in device.attributes', False),
        ('cel.bind(a, device.attributes["gpu.example.com"], a.numa == 1 && a.model == "h200")', True),
        ("device.allowMultipleAllocations", True),
    ],
)
def test_matches(selector, taken):
    assert matches(selector, GPU) is taken


def test_a_missing_name_is_upstreams_error():
    with pytest.raises(CelRuntimeError) as caught:
        matches('device.attributes["gpu.example.com"].missing == 1', GPU)
    assert str(caught.value) == (
        "CEL runtime error: no such key: missing. consider using CEL optional chaining (.? followed by orValue()) or guarding the "
        "check with has() for optional fields"
    )


@pytest.mark.parametrize(
    ("selector", "text"),
    [
        ("device.atributes", "ERROR: <input>:1:8: undefined field 'atributes'"),
        ("device.driver", "must evaluate to bool or the unknown type, not string"),
        ("1 +", "compilation failed"),
    ],
)
def test_refused_selectors(selector, text):
    with pytest.raises(CelCompileError, match=text.replace("(", "\\(")):
        matches(selector, GPU)


def test_a_value_of_another_type_is_an_error():
    with pytest.raises(CelRuntimeError, match="CEL result of type string could not be converted to bool"):
        matches('device.attributes["gpu.example.com"].model', GPU)


def test_unreadable_facts_are_errors():
    with pytest.raises(CelRuntimeError, match="attribute v"):
        device("d", {"attributes": {"v": {"version": "x"}}})
