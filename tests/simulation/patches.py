"""Patches as the API server applies them: JSON merge patch (RFC 7386), and what schedulers use of strategic merge patch."""

MERGE_KEYS = {
    "conditions": "type",
    "containers": "name",
    "initContainers": "name",
    "volumes": "name",
    "ownerReferences": "uid",
    "taints": "key",
    "schedulingGates": "name",
    "reservedFor": "uid",
}
"""lists that strategic merge patch merges, with the field that tells their items apart"""
SETS = {"finalizers"}


class UnmodelledError(AssertionError):
    """The model does not know how the API server does this: extend the model."""


def clone(value):
    if isinstance(value, dict):
        return {key: clone(item) for key, item in value.items()}
    return [clone(item) for item in value] if isinstance(value, list) else value


def merge(target, patch):
    if not isinstance(patch, dict):
        return clone(patch)
    result = dict(target) if isinstance(target, dict) else {}
    for key, value in patch.items():
        if value is None:
            result.pop(key, None)
        else:
            result[key] = merge(result.get(key), value)
    return result


def strategic(target, patch):
    """Lists without a merge key are replaced. Directives other than `$patch` of an item and element orders are not modelled."""
    if not isinstance(patch, dict):
        return clone(patch)
    result = dict(target) if isinstance(target, dict) else {}
    for key, value in patch.items():
        if key.startswith("$setElementOrder/"):
            continue
        if key.startswith("$"):
            raise UnmodelledError(f"strategic merge patch with {key}")
        if value is None:
            result.pop(key, None)
        elif isinstance(value, list) and key in MERGE_KEYS:
            result[key] = _items(result.get(key) or [], value, MERGE_KEYS[key])
        elif isinstance(value, list) and key in SETS:
            old = result.get(key) or []
            result[key] = old + [item for item in value if item not in old]
        else:
            result[key] = strategic(result.get(key), value)
    return result


def _items(old, patch, key):
    result = {item[key]: item for item in old}
    for item in patch:
        if item.get("$patch") == "delete":
            result.pop(item[key], None)
        else:
            result[item[key]] = strategic(result.get(item[key]), item)
    return list(result.values())
